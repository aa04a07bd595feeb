//! What is watched for the choice of extensions. Of Shoots only what the choice depends on is kept.

use std::sync::Arc;

use api::{
    constants::SHOOT_ISOLATED_ZONE,
    gardencore::{
        BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Seed, Shoot, ShootSpec,
        ShootStatus,
        shoot::{Networking, Provider, Worker},
    },
};
use futures::{
    Stream, StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, ResourceExt,
    runtime::reflector::{Lookup, ObjectRef, Store},
};
use runtime::{
    Error, Result,
    client::{Cluster, Garden, apply::Object},
    controller::runner,
};
use tokio::sync::OnceCell;

use super::{choice, need};
use crate::changes::{Keys, cache, without_managed_fields};

/// What is known of the garden.
pub struct Sources {
    pub shoots: Store<Shoot>,
    pub registrations: Store<ControllerRegistration>,
    pub installations: Store<ControllerInstallation>,
    pub buckets: Store<BackupBucket>,
    pub entries: Store<BackupEntry>,
    listed: OnceCell<()>,
}

impl Sources {
    /// Begins to watch, and tells which seeds have to be looked at.
    pub fn watch(
        garden: &Garden,
        seeds: Store<Seed>,
    ) -> (Self, impl Stream<Item = ObjectRef<Seed>> + Send + use<>) {
        let (shoots, of_shoots) = watched(garden.all(), slim, need::seeds_of);
        // A registration concerns all seeds: which one it fits is for the choice to say.
        let (registrations, of_registrations) = watched(garden.all(), without_managed_fields, move |_| {
            seeds.state().iter().map(|seed| seed.name_any()).collect()
        });
        let (installations, of_installations) =
            watched(garden.all(), without_managed_fields, |installation| {
                choice::seed_of(installation)
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            });
        let (buckets, of_buckets) = watched(garden.all(), without_managed_fields, |bucket: &BackupBucket| {
            bucket.spec.seed_name.iter().cloned().collect()
        });
        let (entries, of_entries) = watched(garden.all(), without_managed_fields, |entry: &BackupEntry| {
            let has = entry.status.as_ref().and_then(|status| status.seed_name.clone());
            entry.spec.seed_name.iter().cloned().chain(has).collect()
        });
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
        self.shoots.wait_until_ready().await.map_err(gone)?;
        self.registrations.wait_until_ready().await.map_err(gone)?;
        self.installations.wait_until_ready().await.map_err(gone)?;
        self.buckets.wait_until_ready().await.map_err(gone)?;
        self.entries.wait_until_ready().await.map_err(gone)
    }

    /// The shoots that a seed has, is to have, or still cleans up after.
    pub fn shoots_of(&self, seed: &str) -> Vec<Arc<Shoot>> {
        let all = self.shoots.state().into_iter();
        all.filter(|shoot| need::seeds_of(shoot).contains(seed)).collect()
    }
}

fn watched<K>(
    api: Api<K>,
    slim: fn(&mut K),
    seeds: impl Fn(&K) -> Keys + Send + 'static,
) -> (Store<K>, BoxStream<'static, String>)
where
    K: Object + Lookup<DynamicType = ()> + Sync,
{
    cache(api, runner::few_at_a_time(), slim, seeds)
}

/// Where it is, and what it needs.
pub(super) fn slim(shoot: &mut Shoot) {
    let (meta, spec) = (&mut shoot.metadata, &mut shoot.spec);
    let annotations = meta.annotations.take().map(|mut annotations| {
        annotations.retain(|key, _| key == SHOOT_ISOLATED_ZONE);
        annotations
    });
    shoot.metadata = ObjectMeta {
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        uid: meta.uid.take(),
        resource_version: meta.resource_version.take(),
        annotations: annotations.filter(|annotations| !annotations.is_empty()),
        ..ObjectMeta::default()
    };
    let workers = spec.provider.workers.drain(..).map(|mut worker| {
        for runtime in worker.cri.iter_mut().flat_map(|cri| &mut cri.container_runtimes) {
            runtime.provider_config = None;
        }
        if let Some(image) = &mut worker.machine.image {
            image.provider_config = None;
        }
        Worker {
            name: worker.name,
            machine: worker.machine,
            cri: worker.cri,
            ..Worker::default()
        }
    });
    let mut extensions = std::mem::take(&mut spec.extensions);
    for extension in &mut extensions {
        extension.provider_config = None;
    }
    shoot.spec = ShootSpec {
        seed_name: spec.seed_name.take(),
        provider: Provider {
            workers: workers.collect(),
            type_: std::mem::take(&mut spec.provider.type_),
            ..Provider::default()
        },
        networking: spec.networking.take().map(|networking| Networking {
            type_: networking.type_,
            ..Networking::default()
        }),
        dns: spec.dns.take(),
        extensions,
        ..ShootSpec::default()
    };
    shoot.status = shoot.status.take().map(|status| ShootStatus {
        seed_name: status.seed_name,
        former_seeds: status.former_seeds,
        zone_isolation: status.zone_isolation,
        ..ShootStatus::default()
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// Or a provider would be taken away that is to open a zone again.
    #[test]
    fn a_zone_that_is_cut_off_is_kept() {
        let isolation = json!({"isolatedZoneID": "z", "phase": "Failover", "status": "Done",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let mut shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": {"a": "b", (SHOOT_ISOLATED_ZONE): "z"}},
            "spec": {"region": "r", "provider": {"type": "metal"}},
            "status": {"hibernated": true, "zoneIsolation": isolation},
        }))
        .unwrap();
        slim(&mut shoot);
        assert_eq!(
            json!(shoot.metadata.annotations),
            json!({(SHOOT_ISOLATED_ZONE): "z"})
        );
        let status = shoot.status.unwrap();
        assert!(status.zone_isolation.is_some() && !status.hibernated);
    }
}
