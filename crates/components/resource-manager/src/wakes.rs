//! The sources that wake the controller besides ManagedResources: Secrets, and the watches of applied
//! objects.

use std::sync::Arc;

use api::resources::ManagedResource;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::PartialObjectMeta,
    runtime::{WatchStreamExt, reflector::ObjectRef, watcher},
};
use runtime::client::{Cluster, Seed};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    ledger::Ledger,
    names::KUBECONFIG_SECRET,
    object::Owner,
    target::Targets,
    watches::{Event, Scope},
};

/// The ManagedResources that the watches' events wake.
pub fn by_watches(
    events: UnboundedReceiver<Event>,
    ledger: Arc<Ledger>,
    targets: Arc<Targets>,
) -> impl Stream<Item = ObjectRef<ManagedResource>> + Send {
    let events = stream::unfold(events, |mut events| async move {
        events.recv().await.map(|event| (event, events))
    });
    events.flat_map(move |event| refs(whom(event, &ledger, &targets)))
}

fn whom(event: Event, ledger: &Ledger, targets: &Targets) -> Vec<Owner> {
    match event {
        Event::Drifted(owner) => {
            ledger.mark(&owner);
            vec![owner]
        }
        Event::Judged(owner) => vec![owner],
        Event::Listed(scope) => ledger.of_scope(&scope),
        Event::Lost(scope) => {
            targets.lost_watch(&scope);
            ledger.of_scope(&scope)
        }
    }
}

/// The ManagedResources that changes of Secrets in the seed wake. The watch receives only metadata and keeps
/// none: each woken reconcile reads the content (a shoot has some thirty Secrets).
pub fn by_secrets(
    seed: &Seed,
    ledger: Arc<Ledger>,
    targets: Arc<Targets>,
) -> impl Stream<Item = ObjectRef<ManagedResource>> + Send + use<> {
    let secrets: Api<PartialObjectMeta<Secret>> = Api::all(seed.client().clone());
    watcher(secrets, watcher::Config::default())
        .default_backoff()
        .flat_map(move |event| {
            refs(match event {
                Ok(watcher::Event::Apply(secret) | watcher::Event::InitApply(secret)) => touched(
                    &secret,
                    secret.metadata.resource_version.as_deref(),
                    &ledger,
                    &targets,
                ),
                Ok(watcher::Event::Delete(secret)) => touched(&secret, None, &ledger, &targets),
                Ok(watcher::Event::Init | watcher::Event::InitDone) => Vec::new(),
                Err(error) => {
                    tracing::debug!(%error, "the watch of Secrets failed");
                    Vec::new()
                }
            })
        })
}

fn touched(
    secret: &PartialObjectMeta<Secret>,
    version: Option<&str>,
    ledger: &Ledger,
    targets: &Targets,
) -> Vec<Owner> {
    let (namespace, name) = (secret.namespace().unwrap_or_default(), secret.name_any());
    let mut owners = ledger.reading(&namespace, &name, version);
    if name == KUBECONFIG_SECRET {
        targets.doubt(&namespace);
        owners.extend(ledger.of_scope(&Scope::Shoot(namespace.as_str().into())));
    }
    owners
}

fn refs(owners: Vec<Owner>) -> impl Stream<Item = ObjectRef<ManagedResource>> + Send {
    stream::iter(owners).map(|owner| owner.to_ref())
}
