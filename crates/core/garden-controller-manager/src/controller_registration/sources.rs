//! The watched objects for the choice of extensions.

use std::sync::Arc;

use api::{
    constants::SHOOT_ISOLATED_ZONE,
    gardencore::{BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Seed, Shoot},
};
use futures::{
    Stream, StreamExt,
    stream::{BoxStream, select_all},
};
use kube::{
    Api, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use runtime::{
    Error, Result,
    client::{Cluster, apply::Object},
    controller::{SharedWatch, runner},
};
use tokio::sync::OnceCell;

use super::{choice, need};
use crate::{
    Context, backup_entries,
    changes::{self, Keys, cache, cache_trimmed, concerned},
};

/// What is known of the garden.
pub struct Sources {
    pub shoots: SharedWatch<Shoot>,
    pub registrations: Store<ControllerRegistration>,
    pub installations: Store<ControllerInstallation>,
    pub buckets: Store<BackupBucket>,
    pub entries: SharedWatch<BackupEntry>,
    listed: OnceCell<()>,
}

impl Sources {
    /// Begins to watch, and tells which seeds have to be looked at.
    pub fn watch(
        context: &Context,
        seeds: Store<Seed>,
    ) -> (Self, impl Stream<Item = ObjectRef<Seed>> + Send + use<>) {
        let garden = &context.garden;
        let (shoots, entries) = (context.shoots.clone(), context.backup_entries.clone());
        let of_shoots = concerned(&shoots, need::seeds_of, content);
        // A registration concerns all seeds: which one it fits is for the choice to say.
        let (registrations, of_registrations) = watched(garden.all(), move |_| {
            seeds.state().iter().map(|seed| seed.name_any()).collect()
        });
        let (installations, of_installations) = cache_trimmed(
            garden.all(),
            runner::few_at_a_time(),
            choice::trim_installation,
            |installation| {
                choice::seed_of(installation)
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            },
        );
        let (buckets, of_buckets) = watched(garden.all(), |bucket: &BackupBucket| {
            bucket.spec.seed_name.iter().cloned().collect()
        });
        let of_entries = concerned(&entries, seeds_of_entry, backup_entries::content);
        let all = select_all([
            of_shoots,
            of_registrations,
            of_installations,
            of_buckets,
            of_entries,
        ]);
        let sources = Self {
            shoots,
            registrations,
            installations,
            buckets,
            entries,
            listed: OnceCell::new(),
        };
        (sources, all.map(|name| ObjectRef::new(&name)))
    }

    /// Until everything was listed once: before that nothing can be decided. One asks for all: a store wakes
    /// only one of those who wait for it.
    pub async fn ready(&self) -> Result<()> {
        self.listed.get_or_try_init(|| self.all_listed()).await?;
        Ok(())
    }

    async fn all_listed(&self) -> Result<()> {
        let gone = |_| Error::transient("the watch of the garden has ended");
        self.shoots.wait_until_ready().await?;
        self.registrations.wait_until_ready().await.map_err(gone)?;
        self.installations.wait_until_ready().await.map_err(gone)?;
        self.buckets.wait_until_ready().await.map_err(gone)?;
        self.entries.wait_until_ready().await
    }

    /// The shoots that a seed has, is to have, or still cleans up after.
    pub fn shoots_of(&self, seed: &str) -> Vec<Arc<Shoot>> {
        let all = self.shoots.store().state().into_iter();
        all.filter(|shoot| need::seeds_of(shoot).contains(seed)).collect()
    }
}

fn watched<K>(
    api: Api<K>,
    seeds: impl Fn(&K) -> Keys + Send + 'static,
) -> (Store<K>, BoxStream<'static, String>)
where
    K: Object + Sync,
{
    cache(api, runner::few_at_a_time(), seeds)
}

fn seeds_of_entry(entry: &BackupEntry) -> Keys {
    let has = entry.status.as_ref().and_then(|status| status.seed_name.clone());
    entry.spec.seed_name.iter().cloned().chain(has).collect()
}

/// The fields of a Shoot on which the choice depends. Some fields of the spec in the store belong to further
/// controllers and change seldom.
fn content(shoot: &Shoot) -> u64 {
    let status = shoot.status.as_ref();
    changes::hash((
        shoot.uid(),
        need::seeds_of(shoot),
        shoot.annotations().get(SHOOT_ISOLATED_ZONE),
        // An object from an API can always be written as JSON.
        serde_json::to_string(&shoot.spec).unwrap_or_default(),
        serde_json::to_string(&status.map(|status| &status.zone_isolation)).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(change: impl Fn(&mut Value)) -> Shoot {
        let mut shoot = json!({
            "metadata": {"name": "web", "resourceVersion": "1"},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "metal"}, "kubernetes": {}},
            "status": {"seedName": "a", "hibernated": false},
        });
        change(&mut shoot);
        serde_json::from_value(shoot).unwrap()
    }

    /// A flow writes its progress each second.
    #[test]
    fn the_choice_is_made_again_for_a_change_of_its_inputs_alone() {
        let before = content(&shoot(|_| {}));
        let is_same = |change: fn(&mut Value)| content(&shoot(change)) == before;
        assert!(is_same(|shoot| {
            shoot["metadata"]["resourceVersion"] = json!("2");
            shoot["metadata"]["annotations"] = json!({"a": "b"});
            shoot["status"]["hibernated"] = json!(true);
        }));
        assert!(!is_same(|shoot| {
            shoot["metadata"]["annotations"] = json!({(SHOOT_ISOLATED_ZONE): "z"});
        }));
        assert!(!is_same(
            |shoot| shoot["spec"]["networking"] = json!({"type": "calico"})
        ));
        assert!(!is_same(|shoot| shoot["status"]["seedName"] = json!("b")));
        assert!(!is_same(|shoot| {
            shoot["status"]["zoneIsolation"] = json!({"isolatedZoneID": "z", "phase": "Failover", "status": "Done",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
        }));
    }
}
