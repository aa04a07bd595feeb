//! The kinds that a cluster serves: asked for when they are needed, remembered, and asked for again when one is missed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
    discovery::{self, ApiCapabilities, Scope, verbs},
    error::DiscoveryError,
};

use crate::object::Key;

/// A kind that is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// How it is asked for.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it can be watched.
    pub watchable: bool,
}

impl Served {
    fn new((resource, can): (ApiResource, ApiCapabilities)) -> Self {
        Self {
            namespaced: can.scope == Scope::Namespaced,
            watchable: can.supports_operation(verbs::WATCH) && can.supports_operation(verbs::LIST),
            resource,
        }
    }
}

/// The kinds of one cluster that were asked for.
#[derive(Debug, Default)]
pub struct Kinds(Mutex<HashMap<GroupVersionKind, Arc<Served>>>);

impl Kinds {
    fn map(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, Arc<Served>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kind of an object, if it is known.
    #[must_use]
    pub fn known(&self, key: &Key) -> Option<Arc<Served>> {
        self.map().get(&key.gvk()).cloned()
    }

    /// It is not served as it was.
    pub fn forget(&self, key: &Key) {
        self.map().remove(&key.gvk());
    }

    pub(super) fn remember(&self, key: &Key, served: Served) -> Arc<Served> {
        let served = Arc::new(served);
        self.map().insert(key.gvk(), Arc::clone(&served));
        served
    }
}

/// Asks a cluster for a kind.
pub(super) async fn ask(client: Client, kind: GroupVersionKind) -> kube::Result<Option<Served>> {
    match discovery::pinned_kind(&client, &kind).await {
        Ok(found) => Ok(Some(Served::new(found))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(DiscoveryError::MissingKind(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks a cluster for a kind in whichever version it prefers.
pub(super) async fn ask_any_version(
    client: &Client,
    group: &str,
    kind: &str,
) -> kube::Result<Option<Served>> {
    match discovery::group(client, group).await {
        Ok(found) => Ok(found.recommended_kind(kind).map(Served::new)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
