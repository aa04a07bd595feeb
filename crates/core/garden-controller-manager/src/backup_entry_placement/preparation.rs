//! Places the BackupEntry of a preparation, and removes the entry when the grant has ended.
//!
//! The decision follows from the Shoot as read and from the names of entries, and no process remembers an
//! entry. So the removal also runs after a restart, without `--preparations-per-seed`, and for a destination
//! that is dead. The garbage collector deletes the entry of a Shoot that is gone.

use std::{sync::Arc, time::Duration};

use api::{
    constants::finalizer::GARDENER,
    gardencore::{BackupEntry, Seed, Shoot, shoot::MigrationPreparation},
};
use futures::{StreamExt as _, stream::iter};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
    runtime::reflector::ObjectRef,
};
use placement::{entry_of_preparation, preparation};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, finalizer, runner},
    error::Explain as _,
};

use super::{
    controller::{is_written, post_params},
    prepared_entry::{
        PreparedEntryStep, grant, is_of_preparation, own_name, prepared_entry_step, wanted_entry,
    },
};
use crate::{
    Context, backup_entries,
    changes::{Keys, concerned},
};

/// Requeue interval after a concurrent write, and while an entry is being deleted. The end of the entry wakes
/// this controller.
const RETRY_PERIOD: Duration = Duration::from_secs(10);
/// The longest wait for an expiry, so that the controller follows a correction of the clock, and the requeue
/// interval while the Seed of the destination has no bucket.
const CHECK_PERIOD: Duration = Duration::from_secs(60);

struct PreparedEntries {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let controller = context.shoots.controller(wakes);
    let entries = context.backup_entries.clone();
    let known = controller.store();
    let changed = concerned(&entries, key_of_entry, backup_entries::content);
    let changed = changed.flat_map(move |key| {
        let found = known.find(|shoot| key_of_shoot(shoot).as_ref() == Some(&key));
        iter(found.map(|shoot| ObjectRef::from_obj(shoot.as_ref())))
    });
    let controller = controller.reconcile_on(changed);
    let running = context.run(controller, |context| PreparedEntries { context });
    entries.run_beside(running).await;
}

/// A grant, the end of a grant, and no further change of a Shoot.
fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    let granted = preparation(shoot).map(|granted| {
        let seeds = (&granted.source, &granted.destination);
        (seeds, granted.epoch, granted.expiry.0)
    });
    runner::fingerprint((
        shoot.uid(),
        shoot.metadata.deletion_timestamp.is_some(),
        status.map(|status| (&status.seed_name, status.epoch())),
        own_name(shoot),
        granted,
    ))
}

/// The namespace and the name of the shoot's own entry, for an entry of a preparation alone.
fn key_of_entry(entry: &BackupEntry) -> Keys {
    let name = entry.metadata.name.as_deref().unwrap_or_default();
    let own = entry_of_preparation(name);
    own.map(|own| key(entry.metadata.namespace.as_deref(), own))
        .into_iter()
        .collect()
}

fn key_of_shoot(shoot: &Shoot) -> Option<String> {
    own_name(shoot).map(|own| key(shoot.metadata.namespace.as_deref(), &own))
}

fn key(namespace: Option<&str>, own: &str) -> String {
    format!("{}/{own}", namespace.unwrap_or_default())
}

impl Reconciler<Shoot> for PreparedEntries {
    const NAME: &'static str = "backup-entry-preparation";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        preparation(shoot).is_some() || self.has_entry(shoot)
    }

    /// The grant is read from the API server: the cached Shoot may be older than the entry.
    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        // Else the entry of an earlier grant is not known.
        self.context.backup_entries.wait_until_ready().await?;
        let Some(shoot) = self.context.latest(&shoot).await? else {
            return Ok(Next::Change);
        };
        let now = clock::now();
        let granted = grant(&shoot, now);
        let wanted = match granted {
            Some(granted) => self.wanted(&shoot, granted).await?,
            None => None,
        };
        let mut is_settled = self.remove_others(&shoot, wanted.as_ref()).await?;
        if let Some(wanted) = &wanted {
            is_settled &= self.place_entry(&shoot, wanted).await?;
        }
        Ok(match granted {
            _ if !is_settled => Next::After(RETRY_PERIOD),
            Some(granted) => Next::After(pause_until(granted.expiry.0, now)),
            None => Next::Change,
        })
    }

    /// The grant of a Shoot in deletion is void.
    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Box::pin(self.apply(shoot)).await
    }
}

impl PreparedEntries {
    fn has_entry(&self, shoot: &Shoot) -> bool {
        let Some(own) = own_name(shoot) else {
            return false;
        };
        let entries = self.context.backup_entries.store();
        entries
            .find(|entry| is_of_preparation(shoot, &own, entry))
            .is_some()
    }

    /// The entry for this grant; `None` while the Seed of the destination has no bucket.
    async fn wanted(&self, shoot: &Shoot, granted: &MigrationPreparation) -> Result<Option<BackupEntry>> {
        let (seeds, name): (Api<Seed>, _) = (self.context.garden.cluster_wide(), &granted.destination);
        let found = seeds.get_opt(name).await;
        let found = found.context(format_args!("could not read Seed {name}"))?;
        Ok(found.and_then(|seed| wanted_entry(shoot, &seed, granted)))
    }

    /// Removes the entries of all further grants. `false`: an entry is still there.
    async fn remove_others(&self, shoot: &Shoot, wanted: Option<&BackupEntry>) -> Result<bool> {
        let Some(own) = own_name(shoot) else {
            return Ok(true);
        };
        let kept = wanted.map(ResourceExt::name_any);
        let entries = self.entries(shoot);
        let mut is_settled = true;
        let known = self.context.backup_entries.store().state().into_iter();
        for entry in known.filter(|entry| is_of_preparation(shoot, &own, entry)) {
            let name = entry.name_any();
            if kept.as_ref() != Some(&name) {
                is_settled &= remove(&entries, &name).await?;
            }
        }
        Ok(is_settled)
    }

    /// `false`: a further write is due.
    async fn place_entry(&self, shoot: &Shoot, wanted: &BackupEntry) -> Result<bool> {
        let (entries, name) = (self.entries(shoot), wanted.name_any());
        let found = read(&entries, &name).await?;
        match prepared_entry_step(shoot, wanted, found.as_ref()) {
            PreparedEntryStep::Keep => Ok(true),
            PreparedEntryStep::Create => {
                let created = entries.create(&post_params(), wanted).await;
                is_written(
                    created.map(drop),
                    "could not create the BackupEntry of a preparation",
                )
            }
            PreparedEntryStep::Remove => remove(&entries, &name).await,
        }
    }

    fn entries(&self, shoot: &Shoot) -> Api<BackupEntry> {
        self.context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default())
    }
}

/// Deletes exactly the entry that was read. `true`: there is no such entry.
async fn remove(entries: &Api<BackupEntry>, name: &str) -> Result<bool> {
    let Some(found) = read(entries, name).await? else {
        return Ok(true);
    };
    if found.metadata.deletion_timestamp.is_some() {
        // A former version has set the finalizer, and would wait for the seed. The entry names no backup.
        finalizer::try_remove(entries, &found, GARDENER).await?;
        return Ok(false);
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: found.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match entries.delete(name, &params).await {
        Ok(_) => {
            tracing::info!(entry = name, "the backup entry of a preparation is removed");
            Ok(false)
        }
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(false),
        Err(error) => Err(error).context(format_args!("could not delete BackupEntry {name}")),
    }
}

async fn read(entries: &Api<BackupEntry>, name: &str) -> Result<Option<BackupEntry>> {
    let found = entries.get_opt(name).await;
    found.context(format_args!("could not read BackupEntry {name}"))
}

fn pause_until(expiry: Timestamp, now: Timestamp) -> Duration {
    let rest = expiry.duration_since(now).unsigned_abs();
    rest.clamp(Duration::from_secs(1), CHECK_PERIOD)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::sync::Mutex;

    use http::{Method, Request, Response};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    const NAME: &str = "prepared-3-100-shoot--dev--web--s";

    fn entry(metadata: &Value) -> BackupEntry {
        let mut entry = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
            "metadata": {"name": NAME, "namespace": "garden-dev", "uid": "e", "resourceVersion": "7"},
            "spec": {"bucketName": "bucket-b", "seedName": "b"},
        });
        json_patch::merge(&mut entry["metadata"], metadata);
        serde_json::from_value(entry).unwrap()
    }

    /// Removes the entry from a simulated garden. Returns the writes.
    async fn remove_from_garden(entry: &BackupEntry) -> Vec<(Method, Value)> {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let (recorded, found) = (Arc::clone(&writes), json!(entry));
        let service = service_fn(move |request: Request<Body>| {
            let (recorded, found) = (Arc::clone(&recorded), found.clone());
            async move {
                let (parts, body) = request.into_parts();
                if parts.method != Method::GET {
                    let body = body.collect_bytes().await.unwrap();
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    recorded.lock().unwrap().push((parts.method, body));
                }
                Ok::<_, std::io::Error>(Response::new(Body::from(found.to_string().into_bytes())))
            }
        });
        let context = Context::of_simulated_garden(&Client::new(service, "default"));
        let entries: Api<BackupEntry> = context.garden.namespaced("garden-dev");
        let is_gone = remove(&entries, NAME).await.unwrap();
        assert!(!is_gone, "the entry was there");
        writes.lock().unwrap().clone()
    }

    /// An entry of the same name may exist since the read.
    #[tokio::test]
    async fn the_entry_that_was_read_is_deleted() {
        let writes = Box::pin(remove_from_garden(&entry(&json!({})))).await;
        let methods: Vec<_> = writes.iter().map(|(method, _)| method.clone()).collect();
        assert_eq!(methods, [Method::DELETE]);
        assert_eq!(writes[0].1["preconditions"], json!({"uid": "e"}));
    }

    /// A dead destination cannot remove the finalizer.
    #[tokio::test]
    async fn the_finalizer_of_a_seed_keeps_no_entry_of_a_preparation() {
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y", GARDENER]});
        let writes = Box::pin(remove_from_garden(&entry(&going))).await;
        let methods: Vec<_> = writes.iter().map(|(method, _)| method.clone()).collect();
        assert_eq!(methods, [Method::PATCH]);
        assert_eq!(writes[0].1["metadata"]["finalizers"], json!(["x/y"]));
    }

    /// Otherwise an entry that appears after the end of the grant would stay.
    #[test]
    fn an_entry_wakes_its_shoot() {
        let shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "technicalID": "shoot--dev--web", "uid": "s"},
        }))
        .unwrap();
        let woken: Vec<_> = key_of_entry(&entry(&json!({}))).into_iter().collect();
        assert_eq!(woken, [key_of_shoot(&shoot).unwrap()]);
        for name in ["shoot--dev--web--s", "source-shoot--dev--web--s"] {
            assert!(key_of_entry(&entry(&json!({"name": name}))).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_check_comes_at_the_expiry() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let pauses = [100, 130, 1000].map(|expiry| pause_until(at(expiry), at(100)).as_secs());
        assert_eq!(pauses, [1, 30, 60]);
    }
}
