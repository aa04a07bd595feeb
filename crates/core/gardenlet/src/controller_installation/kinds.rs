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
    let mut there = HashSet::new();
    let mut before = HashSet::new();
    watcher(seed.all::<PartialObjectMeta<K>>(), watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let changed = event.is_ok_and(|event| match event {
                Event::Apply(object) => there.insert(object.uid()),
                Event::InitApply(object) => {
                    there.insert(object.uid());
                    false
                }
                Event::Delete(object) => there.remove(&object.uid()),
                Event::Init => {
                    before = std::mem::take(&mut there);
                    false
                }
                Event::InitDone => before != there,
            });
            std::future::ready(changed.then_some(()))
        })
        .boxed()
}
