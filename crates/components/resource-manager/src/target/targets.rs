//! The target clusters of all present ManagedResources.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::api::core::v1::Secret;
use runtime::{
    Error, Result,
    client::{Cluster, Seed, Shoot},
    error::Explain,
    workload::rollout::checksum,
};

use super::{Target, Way, kubeconfig};
use crate::{
    kinds::Catalogue,
    names::KUBECONFIG_SECRET,
    object::Owner,
    watches::{Scope, Watcher, Watches},
};

/// The reason why a cluster has no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The Secret with the kubeconfig of the shoot does not exist yet, or was deleted.
    NoSecret,
    /// The content of the Secret is invalid.
    Useless(String),
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSecret => write!(
                f,
                "there is no way into the shoot: the Secret {KUBECONFIG_SECRET} of this namespace is awaited, which the gardenlet writes"
            ),
            Self::Useless(why) => write!(f, "there is no way into the shoot: {why}"),
        }
    }
}

struct Known {
    checksum: String,
    /// Whether the Secret may have changed since.
    doubted: bool,
    target: Arc<Target>,
}

/// The target clusters of all present ManagedResources.
pub struct Targets {
    seed: Seed,
    of_seed: Arc<Target>,
    watcher: Watcher,
    catalogue: Arc<Catalogue>,
    shoots: Mutex<HashMap<String, Known>>,
    /// Number of observed changes of kubeconfig Secrets.
    changes: AtomicU64,
}

impl Targets {
    /// Contains only the seed at first.
    #[must_use]
    pub fn new(seed: Seed, watcher: Watcher) -> Self {
        let catalogue = Arc::default();
        let of_seed = Target::new(
            Way::Seed(seed.clone()),
            Scope::Seed,
            Watches::new(watcher.clone()),
            &catalogue,
        );
        of_seed.gate.answered();
        Self {
            seed,
            of_seed,
            watcher,
            catalogue,
            shoots: Mutex::default(),
            changes: AtomicU64::default(),
        }
    }

    fn shoots(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.shoots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of shoots with a connection.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shoots().len()
    }

    /// The target cluster of a ManagedResource's objects.
    ///
    /// # Errors
    /// The Secret cannot be read from the seed.
    pub async fn find_target(&self, owner: &Owner) -> Result<Result<Arc<Target>, Unreachable>> {
        if owner.in_seed {
            return Ok(Ok(Arc::clone(&self.of_seed)));
        }
        let namespace = &owner.namespace;
        if let Some(known) = self.shoots().get(namespace).filter(|known| !known.doubted) {
            return Ok(Ok(Arc::clone(&known.target)));
        }
        // If a change is observed while the Secret is read, the read may have missed that change.
        let as_of = self.changes.load(Ordering::SeqCst);
        let secrets = self.seed.namespaced::<Secret>(namespace);
        let found = secrets
            .get_opt(KUBECONFIG_SECRET)
            .await
            .context(format_args!("could not read the Secret {KUBECONFIG_SECRET}"))?;
        let Some(secret) = found else {
            self.leave(namespace);
            return Ok(Err(Unreachable::NoSecret));
        };
        let data: BTreeMap<String, Vec<u8>> = secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, bytes)| (key, bytes.0))
            .collect();
        let checksum = checksum(&data);
        if let Some(target) = self.same(namespace, &checksum, as_of) {
            return Ok(Ok(target));
        }
        let connection = match kubeconfig::connection(&data).await {
            Ok(connection) => connection,
            Err(why) => {
                self.leave(namespace);
                return Ok(Err(Unreachable::Useless(why)));
            }
        };
        let way = Way::Shoot(Shoot::new(connection, self.seed.permit()));
        let target = Target::new(
            way,
            Scope::Shoot(namespace.as_str().into()),
            Watches::new(self.watcher.clone()),
            &self.catalogue,
        );
        // A second ManagedResource of this namespace may have been faster: a single connection is enough.
        if let Some(first) = self.same(namespace, &checksum, as_of) {
            return Ok(Ok(first));
        }
        let known = Known {
            checksum,
            doubted: self.changes.load(Ordering::SeqCst) != as_of,
            target: Arc::clone(&target),
        };
        self.shoots().insert(namespace.clone(), known);
        Ok(Ok(target))
    }

    /// The known target with a Secret of the same content.
    fn same(&self, namespace: &str, checksum: &str, as_of: u64) -> Option<Arc<Target>> {
        let mut shoots = self.shoots();
        let known = shoots
            .get_mut(namespace)
            .filter(|known| known.checksum == checksum)?;
        known.doubted = self.changes.load(Ordering::SeqCst) != as_of;
        Some(Arc::clone(&known.target))
    }

    /// The Secret of this namespace was written or deleted: the Secret is read again before the next use.
    pub fn doubt(&self, namespace: &str) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if let Some(known) = self.shoots().get_mut(namespace) {
            known.doubted = true;
        }
    }

    /// A watch of this cluster was lost: the next work first probes the API server.
    pub fn lost_watch(&self, scope: &Scope) {
        if let Scope::Shoot(namespace) = scope
            && let Some(known) = self.shoots().get(&**namespace)
        {
            known.target.gate.doubt();
        }
    }

    /// No ManagedResource needs this shoot any more.
    pub fn leave(&self, namespace: &str) {
        self.shoots().remove(namespace);
    }
}

impl From<Unreachable> for Error {
    fn from(why: Unreachable) -> Self {
        Error::not_ready(std::time::Duration::from_secs(60), why.to_string())
    }
}
