//! A target cluster of objects: the seed, or a shoot. Each target has a separate connection, back-off and
//! share of the work, so that a silent target delays no other target.

mod answer;
mod gate;
mod kubeconfig;
mod targets;

use std::{future::Future, sync::Arc};

use kube::{Api, Client};
use permit::Permit;
use runtime::client::{Cluster, Seed, Shoot};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

pub use answer::Refused;
pub use gate::{Gate, GateState};
pub use targets::Targets;

use crate::{
    kinds::{self, Catalogue, Kinds, Served},
    live::Live,
    names::ANSWER_WITHIN,
    object::Key,
    watches::{Scope, Watches},
};

/// Bound of a probe. Shorter than the bound of a request with work, because such a request may be large.
const PROBE_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);
/// ManagedResources of a single shoot that are worked on at the same time.
const TURNS_OF_SHOOT: usize = 2;

/// The client of the cluster.
#[derive(Clone, Debug)]
enum Way {
    Seed(Seed),
    Shoot(Shoot),
}

impl Way {
    fn under(&self, further: &Permit) -> Self {
        match self {
            Self::Seed(seed) => Self::Seed(seed.under(further)),
            Self::Shoot(shoot) => Self::Shoot(shoot.under(further)),
        }
    }
}

/// A target cluster of objects.
pub struct Target {
    /// The ManagedResources with objects in this cluster.
    pub scope: Scope,
    /// Whether the API server answers.
    pub gate: Arc<Gate>,
    /// The kinds that the cluster serves.
    pub kinds: Arc<Kinds>,
    /// The watches in the cluster.
    pub watches: Arc<Watches>,
    way: Way,
    /// The target that outlives the work: watches run under this target's permit.
    lookout: Option<Arc<Self>>,
    turns: Arc<Semaphore>,
}

impl Target {
    fn new(way: Way, scope: Scope, watches: Watches, catalogue: &Arc<Catalogue>) -> Arc<Self> {
        let turns = if scope.in_seed() {
            Semaphore::MAX_PERMITS
        } else {
            TURNS_OF_SHOOT
        };
        Arc::new(Self {
            way,
            scope,
            watches: Arc::new(watches),
            gate: Arc::default(),
            kinds: Arc::new(Kinds::new(Arc::clone(catalogue))),
            lookout: None,
            turns: Arc::new(Semaphore::new(turns)),
        })
    }

    /// The same cluster under an additional permit. Both targets share all knowledge about the cluster.
    #[must_use]
    pub fn under(self: &Arc<Self>, further: &Permit) -> Arc<Self> {
        Arc::new(Self {
            way: self.way.under(further),
            scope: self.scope.clone(),
            watches: Arc::clone(&self.watches),
            gate: Arc::clone(&self.gate),
            kinds: Arc::clone(&self.kinds),
            lookout: Some(Arc::clone(self)),
            turns: Arc::clone(&self.turns),
        })
    }

    /// The target for watches: a watch continues after the work under an additional permit has ended.
    #[must_use]
    pub fn lookout(&self) -> &Self {
        self.lookout.as_deref().unwrap_or(self)
    }

    /// The client for requests to the cluster.
    #[must_use]
    pub fn client(&self) -> &Client {
        match &self.way {
            Way::Seed(seed) => seed.client(),
            Way::Shoot(shoot) => shoot.client(),
        }
    }

    /// The permit of the client.
    #[must_use]
    pub fn permit(&self) -> &Permit {
        match &self.way {
            Way::Seed(seed) => seed.permit(),
            Way::Shoot(shoot) => shoot.permit(),
        }
    }

    /// Waits for a share of the cluster's work, and probes the API server where the state is unknown.
    ///
    /// # Errors
    /// The API server does not answer: the time until the next try, and the reason.
    pub async fn turn(&self) -> Result<SemaphorePermit<'_>, (std::time::Duration, String)> {
        let turn = self.turns.acquire().await;
        if let GateState::Closed { after, why } = self.gate.check() {
            return Err((after, why));
        }
        if let GateState::Ask = self.gate.check() {
            match timeout(PROBE_WITHIN, self.client().apiserver_version()).await {
                Err(_) => self.gate.failed(format!("no answer within {PROBE_WITHIN:?}")),
                Ok(Err(error)) => match Refused::from(error) {
                    Refused::Away(why) => self.gate.failed(why),
                    _ => self.gate.answered(),
                },
                Ok(Ok(_)) => self.gate.answered(),
            }
        }
        match (self.gate.check(), turn) {
            (GateState::Closed { after, why }, _) => Err((after, why)),
            (_, Ok(turn)) => Ok(turn),
            (_, Err(closed)) => Err((ANSWER_WITHIN, closed.to_string())),
        }
    }

    /// Awaits the answer to a request, for a bounded time.
    ///
    /// # Errors
    /// No answer arrived, or the request was refused.
    pub async fn ask<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Refused> {
        let refused = match timeout(ANSWER_WITHIN, request).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Refused::from(error),
            Err(_) => Refused::Away(format!("no answer within {ANSWER_WITHIN:?}")),
        };
        if let Refused::Away(why) = &refused {
            self.gate.failed(why.clone());
        }
        Err(refused)
    }

    /// The kind of an object; `None` where the kind is not served.
    pub async fn served(&self, key: &Key) -> Result<Option<Arc<Served>>, Refused> {
        if let Some(known) = self.kinds.find_cached(key) {
            return Ok(Some(known));
        }
        match self.ask(kinds::ask(self.client().clone(), key.gvk())).await? {
            Some(found) => Ok(Some(self.kinds.remember(key, found))),
            None => Ok(None),
        }
    }

    /// The kind of an object that was applied once. If the cluster no longer serves the object's version, a
    /// different version is used.
    pub async fn served_in_any_version(&self, key: &Key) -> Result<Option<Arc<Served>>, Refused> {
        match self.served(key).await? {
            Some(served) => Ok(Some(served)),
            None if key.group.is_empty() => Ok(None),
            None => {
                let group = key.group.clone();
                Ok(self
                    .ask(kinds::ask_any_version(self.client(), &group, &key.kind))
                    .await?
                    .map(Arc::new))
            }
        }
    }

    /// The API for objects of a kind, in the namespace of `key`.
    #[must_use]
    pub fn api(&self, served: &Served, key: &Key) -> Api<Live> {
        let client = self.client().clone();
        match &key.namespace {
            Some(namespace) if served.namespaced => Api::namespaced_with(client, namespace, &served.resource),
            _ => Api::all_with(client, &served.resource),
        }
    }
}
