//! Watches Shoots, their BackupEntries, and Seeds.

use std::{sync::Arc, time::Duration};

use api::{
    constants::finalizer::GARDENER,
    gardencore::{BackupEntry, Seed, Shoot, ShootStatus},
    meta::ErrorCode,
};
use futures::{
    StreamExt as _,
    stream::{BoxStream, iter},
};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    core::PartialObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::{entry_of_preparation, names};
use runtime::{
    Error, Result,
    client::Cluster,
    controller::{Next, Reconciler, SharedWatch, finalizer, runner},
    error::Explain as _,
};
use serde_json::json;

use super::{
    decision::{abandoned_on, former_host, heir, is_lost},
    entries::{
        OwnEntryStep, SOURCE, adoption, assignment, entry, left_note, own_entry_step, release_note, taken,
    },
    source::{SourceVerdict, is_restored, judge_source, source_end, source_seed},
    source_entry::{SourceEntryStep, holds_own_entry, source_entry_step},
};
use crate::{
    Context, MANAGER,
    changes::{self, Keys},
};

/// Requeue interval after a concurrent write.
pub(super) const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);
/// Requeue interval of an entry that is being deleted, or that a former seed has not released. The end of the
/// entry wakes this controller, except for an entry without an owner reference. No watch reports that the
/// former seed is silent.
const WAIT_REQUEUE: Duration = Duration::from_secs(30);
/// Reason of the Event about a bucket that a source BackupEntry leaves with backups.
const RELEASED: &str = "SourceBackupEntryReleased";

struct BackupEntryPlacement {
    context: Context,
    seeds: Store<Seed>,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let controller = context.shoots.controller(wakes);
    let entries: Api<PartialObjectMeta<BackupEntry>> = context.garden.all();
    let controller = controller.watches(entries, watcher::Config::default(), |entry| {
        // The destination of a preparation writes the status of the entry at any rate.
        if entry_of_preparation(entry.metadata.name.as_deref()?).is_some() {
            return None;
        }
        let namespace = entry.namespace()?;
        let owner = entry
            .owner_references()
            .iter()
            .find(|owner| owner.kind == "Shoot")?;
        Some(ObjectRef::new(&owner.name).within(&namespace))
    });
    let watch = SharedWatch::new(context.garden.all(), watcher::Config::default(), |_| {});
    let (seeds, known) = (watch.store(), controller.store());
    let hosted = changed_seeds(&watch).flat_map(move |seed| {
        let is_host = |shoot: &Arc<Shoot>| host(shoot) == Some(&seed);
        let found = known.state().into_iter().filter(is_host);
        let found: Vec<_> = found.map(|shoot| ObjectRef::from_obj(shoot.as_ref())).collect();
        iter(found)
    });
    let controller = controller.reconcile_on(hosted);
    let running = context.run(controller, |context| BackupEntryPlacement { context, seeds });
    watch.run_beside(running).await;
}

/// Names of Seeds that were created, or whose backups were configured. The store shows a Seed before the name
/// is reported, so that a Shoot that was reconciled without its Seed is reconciled again.
fn changed_seeds(watch: &SharedWatch<Seed>) -> BoxStream<'static, String> {
    let name = |seed: &Seed| Keys::from([seed.name_any()]);
    let content = |seed: &Seed| changes::hash((seed.uid(), seed.spec.backup.is_some()));
    changes::concerned(watch, name, content)
}

/// A hand-over, a step of a move, and no other change of a Shoot.
fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    let record = status.and_then(|status| status.ownership.as_ref());
    runner::fingerprint((
        shoot.uid(),
        shoot.metadata.deletion_timestamp.is_some(),
        host(shoot),
        status.map(ShootStatus::epoch),
        is_restored(shoot),
        record.map(|record| (record.source_epoch(), record.recorded_source_bucket())),
    ))
}

fn host(shoot: &Shoot) -> Option<&String> {
    let status = shoot.status.as_ref()?;
    let has_names = !status.technical_id.is_empty() && !status.uid.is_empty();
    status
        .seed_name
        .as_ref()
        .filter(|name| has_names && !name.is_empty())
}

impl Reconciler<Shoot> for BackupEntryPlacement {
    const NAME: &'static str = "backup-entry-placement";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        host(shoot).is_some()
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.place_entries(&shoot).await
    }

    /// A Shoot that is deleted in the middle of a move is restored first, and the restore needs its backups.
    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.place_entries(&shoot).await
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    /// A concurrent write came first, or a further write is due.
    Conflict,
    /// The entry is being deleted, or a former seed has not released the entry.
    Waits,
}

impl BackupEntryPlacement {
    async fn place_entries(&self, shoot: &Shoot) -> Result<Next> {
        // A Seed that is not in the cache yet wakes this controller.
        let host = host(shoot).and_then(|name| self.seeds.get(&ObjectRef::new(name)));
        let (Some(host), Some(status)) = (host, &shoot.status) else {
            return Ok(Next::Change);
        };
        let name = names::backup_entry(&status.technical_id, &status.uid);
        let source_name = format!("{SOURCE}{name}");
        // The source entry is read first: the host marks its own entry before it deletes the source entry, so
        // a source entry that is gone here is marked below.
        let source = self.read(shoot, &source_name).await?;
        let own = self.read(shoot, &name).await?;
        let end = own
            .as_ref()
            .and_then(|own| source_end(shoot, &host, own, source.is_some()));
        if let (Some(end), Some(own)) = (&end, &own) {
            self.change(shoot, own, end).await?;
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        let of_source = source_seed(shoot, &host, own.as_ref());
        let of_source = of_source.and_then(|name| self.seeds.get(&ObjectRef::new(&name)));
        let (of_source, entry) = (of_source.as_deref(), own.as_ref());
        let bucket = match judge_source(shoot, &host, of_source, entry, source.is_some()) {
            SourceVerdict::NotNeeded => None,
            SourceVerdict::Recorded(bucket) => Some(bucket),
            SourceVerdict::Record(record) => {
                let body = json!({"ownership": {"sourceBucket": record}});
                let shoots: Api<Shoot> = self
                    .context
                    .garden
                    .namespaced(&shoot.namespace().unwrap_or_default());
                if MANAGER
                    .try_merge_status_of(&shoots, shoot, &body)
                    .await?
                    .is_none()
                {
                    return Ok(Next::After(CONFLICT_REQUEUE));
                }
                Some(record.name)
            }
            SourceVerdict::Unknown(why) => {
                return Err(self.report(shoot, "SourceBucketUnknown", why).await);
            }
        };
        // The source entry comes first. An assignment removes the bucket with the only data from the own
        // entry, and after a crash or a deletion of the Shoot an entry must still name that bucket.
        let mut outcomes = Vec::new();
        if let Some(bucket) = bucket {
            let step = source_entry_step(shoot, &host, &bucket, source.as_ref(), own.as_ref());
            // A late cache shows phase `Claiming` after the end of the source entry. Created again, the entry
            // would stay, and with the entry the credentials of the former bucket.
            if step == SourceEntryStep::Create && !self.is_latest(shoot).await? {
                return Ok(Next::After(CONFLICT_REQUEUE));
            }
            let named = (source_name.as_str(), bucket.as_str());
            let written = self
                .place_source_entry(shoot, &host, named, (step, source))
                .await?;
            outcomes.push(written);
            if written == Written::Conflict || holds_own_entry(step, &host, &bucket) {
                return Ok(next_after(&outcomes));
            }
        }
        outcomes.push(self.place_own_entry(shoot, &host, &name, own.as_ref()).await?);
        Ok(next_after(&outcomes))
    }

    async fn place_own_entry(
        &self,
        shoot: &Shoot,
        host: &Seed,
        name: &str,
        own: Option<&BackupEntry>,
    ) -> Result<Written> {
        let bucket = host.uid().unwrap_or_default();
        match (own_entry_step(shoot, host, own), own) {
            (OwnEntryStep::Create, _) => self.create(shoot, &entry(shoot, host, name, &bucket)).await,
            (OwnEntryStep::Report(why), _) => Err(self.report(shoot, "BackupEntryNotOfShoot", why).await),
            (OwnEntryStep::Adopt, Some(own)) => self.change(shoot, own, &adoption(shoot)).await,
            (OwnEntryStep::Assign, Some(own)) => {
                let body = assignment(shoot, host, &bucket, own);
                let assigned = self.entries(shoot);
                let Some(assigned) = MANAGER.try_merge_of(&assigned, own, &body).await? else {
                    return Ok(Written::Conflict);
                };
                tracing::info!(
                    entry = name,
                    seed = host.name_any(),
                    "the backup entry follows its shoot"
                );
                self.take(shoot, &assigned).await
            }
            (_, Some(own)) if own.metadata.deletion_timestamp.is_some() => Ok(Written::Waits),
            (_, Some(own)) => self.take(shoot, own).await,
            (_, None) => Ok(Written::Yes),
        }
    }

    /// The source entry is assigned also to a dead destination: the next destination needs the entry.
    async fn place_source_entry(
        &self,
        shoot: &Shoot,
        host: &Seed,
        (name, bucket): (&str, &str),
        next: (SourceEntryStep, Option<BackupEntry>),
    ) -> Result<Written> {
        match next {
            (SourceEntryStep::Create, _) => self.create(shoot, &entry(shoot, host, name, bucket)).await,
            (SourceEntryStep::Release, Some(source)) => self.release(shoot, host, bucket, &source).await,
            (SourceEntryStep::Take, Some(source)) => self.take(shoot, &source).await,
            (SourceEntryStep::Assign, Some(source)) => {
                if let Some(note) = left_note(host, bucket, &source) {
                    tracing::warn!(
                        entry = name,
                        bucket = source.spec.bucket_name,
                        "a source BackupEntry leaves a bucket"
                    );
                    let events = &self.context.events;
                    events.answer_with_warning(shoot, RELEASED, &note).await;
                }
                let body = assignment(shoot, host, bucket, &source);
                match MANAGER.try_merge_of(&self.entries(shoot), &source, &body).await? {
                    Some(assigned) => self.take(shoot, &assigned).await,
                    None => Ok(Written::Conflict),
                }
            }
            _ => Ok(Written::Yes),
        }
    }

    /// Takes an entry that was assigned to the host from a seed that cannot release the entry.
    async fn take(&self, shoot: &Shoot, entry: &BackupEntry) -> Result<Written> {
        let is_lost = |name: &str| is_lost(self.seeds.get(&ObjectRef::new(name)).as_deref());
        let Some(seed) = heir(shoot, entry, is_lost) else {
            let is_released = former_host(shoot, entry).is_none();
            return Ok(if is_released { Written::Yes } else { Written::Waits });
        };
        let body = taken(entry, &seed);
        let written = MANAGER
            .try_merge_status_of(&self.entries(shoot), entry, &body)
            .await?;
        if written.is_none() {
            return Ok(Written::Conflict);
        }
        tracing::info!(
            entry = entry.name_any(),
            seed,
            "the backup entry was taken from a seed that cannot let go of it"
        );
        Ok(Written::Yes)
    }

    /// Releases the source BackupEntry of an earlier move from a seed that can no longer delete it.
    async fn release(
        &self,
        shoot: &Shoot,
        host: &Seed,
        restored_from: &str,
        source: &BackupEntry,
    ) -> Result<Written> {
        let Some(seed) = abandoned_on(shoot, source) else {
            return Ok(Written::Waits);
        };
        if !finalizer::try_remove(&self.entries(shoot), source, GARDENER).await? {
            return Ok(Written::Conflict);
        }
        let (name, bucket) = (source.name_any(), &source.spec.bucket_name);
        let note = release_note(host, seed, restored_from, source);
        tracing::warn!(entry = name, seed, bucket, "a source BackupEntry was released");
        let events = &self.context.events;
        events.warning(shoot, RELEASED, &note).await;
        // An entry of the same name may be created now.
        Ok(Written::Conflict)
    }

    async fn create(&self, shoot: &Shoot, entry: &BackupEntry) -> Result<Written> {
        let created = self.entries(shoot).create(&post_params(), entry).await;
        let is_written = is_written(created.map(drop), "could not create the BackupEntry")?;
        Ok(if is_written {
            Written::Yes
        } else {
            Written::Conflict
        })
    }

    async fn change(&self, shoot: &Shoot, entry: &BackupEntry, body: &serde_json::Value) -> Result<Written> {
        let written = MANAGER.try_merge_of(&self.entries(shoot), entry, body).await?;
        Ok(written.map_or(Written::Conflict, |_| Written::Yes))
    }

    async fn read(&self, shoot: &Shoot, name: &str) -> Result<Option<BackupEntry>> {
        self.entries(shoot)
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))
    }

    /// Whether the API server still has the residency and the phase of the cached Shoot.
    async fn is_latest(&self, shoot: &Shoot) -> Result<bool> {
        let found = self.context.latest(shoot).await?;
        Ok(found.is_some_and(|latest| is_of_same_phase(&latest, shoot)))
    }

    fn entries(&self, shoot: &Shoot) -> Api<BackupEntry> {
        self.context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default())
    }

    async fn report(&self, shoot: &Shoot, reason: &str, why: String) -> Error {
        self.context.events.answer_with_warning(shoot, reason, &why).await;
        Error::config(ErrorCode::ErrConfigurationProblem, why)
    }
}

/// Whether both versions of a Shoot are of the same residency and the same phase.
fn is_of_same_phase(latest: &Shoot, cached: &Shoot) -> bool {
    let phase = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        let record = status.and_then(|status| status.ownership.as_ref());
        (
            status.map(ShootStatus::epoch),
            record.and_then(|record| record.phase),
            is_restored(shoot),
        )
    };
    let is_same_residency = latest.uid() == cached.uid() && host(latest) == host(cached);
    is_same_residency && phase(latest) == phase(cached)
}

fn next_after(outcomes: &[Written]) -> Next {
    if outcomes.contains(&Written::Conflict) {
        Next::After(CONFLICT_REQUEUE)
    } else if outcomes.contains(&Written::Waits) {
        Next::After(WAIT_REQUEUE)
    } else {
        Next::Change
    }
}

/// The parameters of a creation.
pub(super) fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.0.to_owned()),
        ..PostParams::default()
    }
}

/// `false`: a concurrent write came first.
pub(super) fn is_written(outcome: kube::Result<()>, doing: &'static str) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(kube::Error::Api(answer)) if answer.is_already_exists() || answer.is_conflict() => Ok(false),
        Err(error) => Err(error).context(doing),
    }
}

#[cfg(test)]
#[path = "late_cache_tests.rs"]
mod late_cache_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use api::gardencore::SeedSpec;
    use http::{Request, Response};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;

    /// Else a Shoot whose Seed is on the first page would be reconciled without the Seed, and never again.
    #[tokio::test]
    async fn a_changed_seed_is_in_the_store() {
        let pages = service_fn(|request: Request<Body>| async move {
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                std::future::pending::<()>().await;
            }
            let (name, next) = if query.contains("continue=") {
                ("b", "")
            } else {
                ("a", "next")
            };
            let seed = Seed::new(name, SeedSpec::default());
            let list = json!({"kind": "SeedList", "apiVersion": "core.gardener.cloud/v1beta1",
                "metadata": {"resourceVersion": "7", "continue": next}, "items": [seed]});
            Ok::<_, std::io::Error>(Response::new(Body::from(list.to_string().into_bytes())))
        });
        let api = Api::all(Client::new(pages, "default"));
        let watch = SharedWatch::new(api, watcher::Config::default(), |_| {});
        let store = watch.store();
        let changed = changed_seeds(&watch).take(2);
        let changed = changed.map(|name| (store.get(&ObjectRef::new(&name)).is_some(), name));
        let mut changed: Vec<_> = watch.run_beside(changed.collect()).await;
        changed.sort();
        assert_eq!(changed, [(true, "a".to_owned()), (true, "b".to_owned())]);
    }
}
