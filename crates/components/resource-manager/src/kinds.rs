//! The kinds that a cluster serves: discovered on demand, cached, and discovered again when a kind is
//! missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kube::{
    Client,
    core::{ApiResource, GroupVersionKind},
    discovery::{self, ApiCapabilities, Scope, verbs},
    error::DiscoveryError,
};

use crate::object::Key;

/// A served kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Group, version, kind and plural name for requests.
    pub resource: ApiResource,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
    /// Whether the kind supports watches.
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

    /// Whether this object is of the kind.
    fn is_of(&self, key: &Key) -> bool {
        let kind = &self.resource;
        kind.kind == key.kind && kind.group == key.group && kind.version == key.version
    }
}

/// The served kinds of all clusters, stored once for clusters with the same properties: most shoots are
/// equal.
#[derive(Debug, Default)]
pub struct Catalogue(Mutex<Vec<Weak<Served>>>);

impl Catalogue {
    fn entry(&self, served: Served) -> Arc<Served> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        let alike = all
            .iter()
            .filter_map(Weak::upgrade)
            .find(|known| **known == served);
        alike.unwrap_or_else(|| {
            let new = Arc::new(served);
            all.push(Arc::downgrade(&new));
            new
        })
    }
}

/// The discovered kinds of a single cluster; only a few.
#[derive(Debug)]
pub struct Kinds {
    known: Mutex<Vec<Arc<Served>>>,
    catalogue: Arc<Catalogue>,
}

impl Kinds {
    pub(crate) fn new(catalogue: Arc<Catalogue>) -> Self {
        Self {
            known: Mutex::default(),
            catalogue,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Served>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kind of an object, if cached.
    #[must_use]
    pub fn find_cached(&self, key: &Key) -> Option<Arc<Served>> {
        self.lock().iter().find(|served| served.is_of(key)).cloned()
    }

    /// Drops a kind that the cluster does not serve as cached.
    pub fn forget(&self, key: &Key) {
        self.lock().retain(|served| !served.is_of(key));
    }

    pub(crate) fn remember(&self, key: &Key, served: Served) -> Arc<Served> {
        let served = self.catalogue.entry(served);
        let mut known = self.lock();
        known.retain(|other| !other.is_of(key));
        known.push(Arc::clone(&served));
        served
    }
}

/// Discovers a kind in a cluster.
pub(crate) async fn ask(client: Client, kind: GroupVersionKind) -> kube::Result<Option<Served>> {
    match discovery::pinned_kind(&client, &kind).await {
        Ok(found) => Ok(Some(Served::new(found))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(DiscoveryError::MissingKind(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Discovers a kind in the version that the cluster prefers.
pub(crate) async fn ask_any_version(
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

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
