//! Changes in the seed that affect a ShootState: yields the namespace of the shoot for each change. The
//! watches read only metadata and keep no objects, so that the memory cost is small.

use std::fmt::Debug;

use api::{
    constants::PERSIST,
    extensions::{
        Bastion, ContainerRuntime, ControlPlane, DNSRecord, Extension, Infrastructure, Network,
        OperatingSystemConfig, SelfHostedShootExposure, SubnetIsolation, Worker,
    },
    machine::{Machine, MachineClass, MachineDeployment, MachineSet},
};
use futures::{
    Stream, StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Resource, ResourceExt,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher},
};
use runtime::client::{Cluster, Seed};
use serde::de::DeserializeOwned;

/// Namespaces with changes. For a kind that the seed does not serve, the watch is retried some times per
/// minute.
pub(super) fn namespaces(seed: &Seed) -> impl Stream<Item = String> + Send + use<> {
    let secrets = watcher::Config::default().labels(&format!("{PERSIST}=true"));
    select_all([
        watch_kind::<Bastion>(seed),
        watch_kind::<ContainerRuntime>(seed),
        watch_kind::<ControlPlane>(seed),
        watch_kind::<DNSRecord>(seed),
        watch_kind::<Extension>(seed),
        watch_kind::<Infrastructure>(seed),
        watch_kind::<Network>(seed),
        watch_kind::<OperatingSystemConfig>(seed),
        watch_kind::<SelfHostedShootExposure>(seed),
        watch_kind::<SubnetIsolation>(seed),
        watch_kind::<Worker>(seed),
        watch_kind::<Machine>(seed),
        watch_kind::<MachineClass>(seed),
        watch_kind::<MachineDeployment>(seed),
        watch_kind::<MachineSet>(seed),
        changes::<Secret>(seed, secrets),
    ])
}

fn watch_kind<K>(seed: &Seed) -> BoxStream<'static, String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    changes::<K>(seed, watcher::Config::default())
}

fn changes<K>(seed: &Seed, config: watcher::Config) -> BoxStream<'static, String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watcher(seed.all::<PartialObjectMeta<K>>(), config)
        .default_backoff()
        .touched_objects()
        .filter_map(async |change| change.ok()?.namespace())
        .boxed()
}
