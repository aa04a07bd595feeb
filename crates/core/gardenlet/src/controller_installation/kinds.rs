//! Extension objects in the seed: whether objects of a kind and type exist, and when an object comes or goes.
//! The watches keep only the uids.

use std::{collections::HashSet, fmt::Debug, ops::ControlFlow, time::Duration};

use api::{
    extensions::{
        BackupBucket, BackupEntry, Bastion, ContainerRuntime, ControlPlane, DNSRecord, Extension,
        Infrastructure, Network, OperatingSystemConfig, SelfHostedShootExposure, SubnetIsolation, Worker,
    },
    gardencore::ControllerResource,
};
use futures::{
    FutureExt, Stream, StreamExt,
    stream::{BoxStream, select_all, unfold},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::{ApiResource, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use runtime::{
    Result,
    client::{Cluster, Seed},
    error::Explain,
};
use serde::de::DeserializeOwned;

/// Changes within this time count as a single change: a shoot has a dozen objects.
const TOGETHER: Duration = Duration::from_secs(1);

/// A kind of extension objects.
struct Kind {
    resource: ApiResource,
    changes: fn(&Seed) -> BoxStream<'static, ()>,
}

/// All kinds of extension objects that have a type.
fn all() -> Vec<Kind> {
    vec![
        kind::<BackupBucket>(),
        kind::<BackupEntry>(),
        kind::<Bastion>(),
        kind::<ContainerRuntime>(),
        kind::<ControlPlane>(),
        kind::<DNSRecord>(),
        kind::<Extension>(),
        kind::<Infrastructure>(),
        kind::<Network>(),
        kind::<OperatingSystemConfig>(),
        kind::<SelfHostedShootExposure>(),
        kind::<SubnetIsolation>(),
        kind::<Worker>(),
    ]
}

fn kind<K>() -> Kind
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    Kind {
        resource: ApiResource::erase::<K>(&()),
        changes: changes::<K>,
    }
}

/// The given kinds and types that have objects in the seed: a part of a sentence for each, with an example.
///
/// # Errors
/// The objects could not be listed.
pub(super) async fn in_use(seed: &Seed, resources: &[ControllerResource]) -> Result<Vec<String>> {
    let (kinds, mut found) = (all(), Vec::new());
    for wanted in resources {
        let Some(kind) = kinds.iter().find(|kind| kind.resource.kind == wanted.kind) else {
            continue;
        };
        if let Some(name) = first(seed, &kind.resource, &wanted.type_).await? {
            found.push(format!("{} {name} of type {}", wanted.kind, wanted.type_));
        }
    }
    Ok(found)
}

async fn first(seed: &Seed, kind: &ApiResource, type_: &str) -> Result<Option<String>> {
    let api: Api<DynamicObject> = Api::all_with(seed.client().clone(), kind);
    let (mut found, all) = (None, ListParams::default());
    let survey = runtime::bounds::survey(&api, &all, |object: DynamicObject| {
        let its_type = object.data.pointer("/spec/type");
        if its_type.is_none_or(|its_type| its_type != type_) {
            return ControlFlow::Continue(());
        }
        let name = object.name_any();
        found = Some(match object.namespace() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        });
        ControlFlow::Break(())
    });
    match survey.await {
        Ok(()) => Ok(found),
        // The seed does not serve this kind, so no objects exist.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error).context(format_args!("could not list {}", kind.plural)),
    }
}

/// Yields whenever extension objects came or went.
pub(super) fn come_and_go(seed: &Seed) -> impl Stream<Item = ()> + Send + use<> {
    let changes = select_all(all().into_iter().map(|kind| (kind.changes)(seed)));
    unfold(changes, |mut changes| async move {
        changes.next().await?;
        tokio::time::sleep(TOGETHER).await;
        while let Some(Some(())) = changes.next().now_or_never() {}
        Some(((), changes))
    })
}

fn changes<K>(seed: &Seed) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let mut objects = KnownObjects::default();
    watcher(seed.all::<PartialObjectMeta<K>>(), watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let changed = event.is_ok_and(|event| objects.observe(&event));
            std::future::ready(changed.then_some(()))
        })
        .boxed()
}

/// The objects of a kind, by uid.
#[derive(Debug, Default)]
struct KnownObjects {
    there: HashSet<Option<String>>,
    /// The objects before the list that has begun. A list that fails begins again, so that the objects of a
    /// partial list do not replace these objects.
    before: Option<HashSet<Option<String>>>,
}

impl KnownObjects {
    /// Records an event, and returns whether objects came or went.
    fn observe<K: ResourceExt>(&mut self, event: &Event<K>) -> bool {
        match event {
            Event::Apply(object) => self.there.insert(object.uid()),
            Event::InitApply(object) => {
                self.there.insert(object.uid());
                false
            }
            Event::Delete(object) => self.there.remove(&object.uid()),
            Event::Init => {
                let listed = std::mem::take(&mut self.there);
                self.before.get_or_insert(listed);
                false
            }
            Event::InitDone => self.before.take().unwrap_or_default() != self.there,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// An extension is removed while no object of a known kind uses the extension.
    #[test]
    fn each_kind_of_extension_objects_is_known() {
        let mut defined: Vec<String> = api::crds_of(api::Target::Seed)
            .into_iter()
            .filter(|definition| definition.spec.group == "extensions.gardener.cloud")
            .map(|definition| definition.spec.names.kind)
            // Extensions read a Cluster, and act on further kinds.
            .filter(|kind| kind != "Cluster")
            .collect();
        defined.sort();
        let known: Vec<String> = all().into_iter().map(|kind| kind.resource.kind).collect();
        assert_eq!(known, defined);
    }

    fn object(uid: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    /// The last object of a kind goes while the watch is down. The list after the outage fails between two
    /// pages, and begins again.
    #[test]
    fn a_deletion_during_an_outage_is_noticed_after_a_list_that_failed() {
        let mut objects = KnownObjects::default();
        let mut observed = |events: Vec<Event<ConfigMap>>| {
            let changed = events.iter().map(|event| objects.observe(event));
            changed.collect::<Vec<_>>()
        };
        let first = vec![
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitApply(object("b")),
            Event::InitDone,
        ];
        assert_eq!(observed(first), [false, false, false, true]);
        let again = vec![
            Event::Init,
            Event::InitApply(object("a")),
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitDone,
        ];
        assert_eq!(observed(again), [false, false, false, false, true]);
        let same = vec![Event::Init, Event::InitApply(object("a")), Event::InitDone];
        assert_eq!(observed(same), [false, false, false]);
        let changes = vec![
            Event::Apply(object("a")),
            Event::Apply(object("b")),
            Event::Delete(object("b")),
        ];
        assert_eq!(observed(changes), [false, true, true]);
    }
}
