//! Changes in the seed that affect a ShootState: yields the namespace of the shoot for each change. The
//! watches read only metadata and keep no objects, so that the memory cost is small.

use std::{borrow::Cow, fmt::Debug};

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

/// Name and watch of a kind of objects with a state.
type WatchedKind = (Cow<'static, str>, fn(&Seed) -> BoxStream<'static, String>);

/// The kinds of a shoot's namespace with a state: extension objects and machines.
fn watched_kinds() -> Vec<WatchedKind> {
    vec![
        watched_kind::<Bastion>(),
        watched_kind::<ContainerRuntime>(),
        watched_kind::<ControlPlane>(),
        watched_kind::<DNSRecord>(),
        watched_kind::<Extension>(),
        watched_kind::<Infrastructure>(),
        watched_kind::<Machine>(),
        watched_kind::<MachineClass>(),
        watched_kind::<MachineDeployment>(),
        watched_kind::<MachineSet>(),
        watched_kind::<Network>(),
        watched_kind::<OperatingSystemConfig>(),
        watched_kind::<SelfHostedShootExposure>(),
        watched_kind::<SubnetIsolation>(),
        watched_kind::<Worker>(),
    ]
}

fn watched_kind<K>() -> WatchedKind
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    (K::kind(&()), |seed| {
        changes::<K>(seed, watcher::Config::default())
    })
}

/// Namespaces with changes. For a kind that the seed does not serve, the watch is retried some times per
/// minute.
pub(super) fn namespaces(seed: &Seed) -> impl Stream<Item = String> + Send + use<> {
    let secrets = watcher::Config::default().labels(&format!("{PERSIST}=true"));
    let watches = watched_kinds().into_iter().map(|(_, watch)| watch(seed));
    select_all(watches.chain([changes::<Secret>(seed, secrets)]))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A forgotten kind would reach the ShootState only by the periodic comparison.
    #[test]
    fn each_kind_with_a_state_in_a_shoots_namespace_is_watched() {
        let mut defined: Vec<String> = api::crds_of(api::Target::Seed)
            .into_iter()
            .filter(|definition| {
                let groups = ["extensions.gardener.cloud", "machine.sapcloud.io"];
                groups.contains(&definition.spec.group.as_str()) && definition.spec.scope == "Namespaced"
            })
            .map(|definition| definition.spec.names.kind)
            .collect();
        defined.sort();
        let watched: Vec<_> = watched_kinds().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(watched, defined);
    }
}
