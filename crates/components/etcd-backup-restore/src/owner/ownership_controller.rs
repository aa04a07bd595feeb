//! Checks the ownership of the shoot, and acts on the result.

use super::flags::OwnerCheck;
use super::gate::{Gate, GateTarget};
use super::http2::{GateForwarding, Http2Proxy, PreparedClients};
use super::status::OwnershipStatus;
use super::witness::Bucket;
use crate::error::{Class, Error, Result};
use crate::metrics::Metrics;
use crate::snapshotter::{Handle, Settings, Snapshotter};
use crate::store::Store;
use futures::FutureExt;
use futures::future::{BoxFuture, Fuse, join_all, pending};
use mutation::Mutation;
use ownership::{
    Network, OwnershipLoss, Report, SecondWitness, SidecarAction, SidecarEvent, SidecarState, Standing,
    Watch, Witnesses, next_state,
};
use permit::{Clock, Permit};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch::Receiver;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How snapshots are taken under a permit.
pub type SettingsUnder = Box<dyn Fn(&Permit) -> Result<Settings> + Send + Sync>;

/// Handle of the running snapshotter. Each permit begins a new snapshotter.
pub type CurrentSnapshotter = Arc<Mutex<Handle>>;

/// Runs the owner check, and opens or shuts the gates accordingly.
pub struct OwnershipController {
    pub(super) check: OwnerCheck,
    /// In front of etcd, and of the etcd with the Events. A single permit opens and shuts all gates.
    gates: Vec<Gate>,
    pub(super) bucket: Arc<Bucket>,
    pub(super) settings: SettingsUnder,
    snapshotter: CurrentSnapshotter,
    pub(super) metrics: Arc<Metrics>,
    pub(super) status: Arc<OwnershipStatus>,
    /// The permit for work that needs no ownership: the check, the seal, and the final snapshot after the
    /// seal.
    pub(super) process_permit: Permit,
}

/// The forwarding and the snapshots under a single permit.
struct PermittedWork {
    permit: Permit,
    forwarding: Fuse<BoxFuture<'static, ()>>,
    snapshots: Fuse<BoxFuture<'static, ()>>,
}

impl PermittedWork {
    /// Runs until the forwarding or the snapshots have ended.
    async fn wait_for_end(work: &mut Option<Self>) {
        let Some(work) = work else {
            return pending().await;
        };
        tokio::select! {
            () = &mut work.forwarding => {}
            () = &mut work.snapshots => {}
        }
    }
}

/// The gate in front of etcd, and the optional gate in front of the etcd with the Events.
fn gates(check: &OwnerCheck, metrics: &Metrics) -> Result<Vec<Gate>> {
    let target = check.etcd.target;
    let http2 = match &check.forwarding {
        GateForwarding::Tcp => None,
        GateForwarding::Http2(tls) => {
            let proxy = Http2Proxy::new(target, tls.clone(), check.prepared, metrics.gate())?;
            Some(Arc::new(proxy))
        }
    };
    let etcd = Gate {
        listen: check.listen,
        target: GateTarget::Etcd(target),
        most: check.most,
        http2,
        metrics: metrics.gate(),
    };
    let events = check.events.as_ref().map(|events| Gate {
        listen: events.listen,
        target: GateTarget::Events(events.target.clone()),
        most: events.most,
        http2: None,
        metrics: metrics.events_gate(),
    });
    Ok([etcd].into_iter().chain(events).collect())
}

impl OwnershipController {
    /// Creates the controller with a shut gate; no check has run yet. `store` is the process's own store,
    /// which needs no permit of ownership.
    ///
    /// # Errors
    /// A certificate of the gate is missing or invalid.
    pub fn new(
        check: OwnerCheck,
        store: Store,
        process_permit: Permit,
        settings: SettingsUnder,
    ) -> Result<Self> {
        let metrics = Arc::<Metrics>::default();
        let epoch = store.epoch();
        let handle = Handle::idle(&store.prefix(), epoch, metrics.clone());
        let status = Arc::new(OwnershipStatus::new(
            epoch,
            *check.terms.settings(),
            check.authorities.clone(),
            metrics.clone(),
        ));
        Ok(Self {
            gates: gates(&check, &metrics)?,
            bucket: Arc::new(Bucket {
                store: Arc::new(store),
                uid: check.uid.clone(),
                status: status.clone(),
            }),
            status,
            snapshotter: Arc::new(Mutex::new(handle)),
            check,
            settings,
            metrics,
            process_permit,
        })
    }

    /// For the HTTP interface.
    #[must_use]
    pub fn view(&self) -> (CurrentSnapshotter, Arc<OwnershipStatus>) {
        (self.snapshotter.clone(), self.status.clone())
    }

    /// The certificates of preparations that the gate in front of etcd admits.
    #[must_use]
    pub fn prepared_clients(&self) -> Arc<PreparedClients> {
        let proxy = self.gates.iter().find_map(|gate| gate.http2.as_ref());
        proxy.map_or_else(
            || {
                let limits = self.check.prepared;
                Arc::new(PreparedClients::new(false, limits, self.metrics.gate()))
            },
            |proxy| proxy.prepared_clients(),
        )
    }

    /// Runs until stopped. An error concerns the settings or the machine; the gate is then shut.
    pub async fn run(self, stop: CancellationToken) -> Result<()> {
        let why = match self.sealed_before().await? {
            Some(why) => why,
            None => match self.watched(&stop).await? {
                Some(loss) => loss.to_string(),
                None => return Ok(()),
            },
        };
        self.status.seal_with_reason(&why);
        self.seal(&why, stop).await
    }

    /// Whether the epoch was sealed before this process began: on the volume, or in the bucket if the bucket
    /// answers (the volume may be new).
    async fn sealed_before(&self) -> Result<Option<String>> {
        if Mutation::SealNotRead.is_active() {
            return Ok(None);
        }
        let epoch = self.check.claim.epoch();
        if let Some(why) = self.check.marker.seal_reason(epoch)? {
            return Ok(Some(why));
        }
        let bound = self.check.terms.settings().store_timeout;
        let said = timeout(bound, self.bucket.ask()).await.ok();
        Ok(said
            .and_then(|said| said.loss(epoch))
            .map(|loss| loss.to_string()))
    }

    /// Follows the watch until the ownership is lost, or until stopped.
    async fn watched(&self, stop: &CancellationToken) -> Result<Option<OwnershipLoss>> {
        let witnesses = Witnesses {
            authorities: self.check.authorities.clone(),
            wire: Arc::new(Network),
            second: self.bucket.clone(),
        };
        let (claim, terms) = (self.check.claim.clone(), self.check.terms);
        let watch = Watch::new(claim, terms, witnesses, Clock::default())
            .map_err(|e| Error::new(Class::Configuration, e.to_string()))?
            .prompted_by(self.status.expected());
        let reports = watch.reports();
        let watching = async {
            watch.run().await;
            // The loss is in the reports.
            pending::<()>().await;
        };
        tokio::select! {
            done = self.follow(reports, stop) => done,
            () = watching => Ok(None),
        }
    }

    async fn follow(
        &self,
        mut reports: Receiver<Report>,
        stop: &CancellationToken,
    ) -> Result<Option<OwnershipLoss>> {
        let mut work: Option<PermittedWork> = None;
        loop {
            let report = reports.borrow_and_update().clone();
            self.status.record_report(&report);
            let serves = work.as_ref().is_some_and(|work| work.permit.is_valid());
            let event = SidecarEvent::from_standing(&report.standing, serves);
            let (to, actions) = next_state(self.status.state(), event);
            if to != SidecarState::Serving {
                // Readiness first: Services must not route new clients to this etcd.
                self.status.change_state(to, None);
            }
            for action in actions {
                match (action, &report.standing) {
                    (SidecarAction::Stop, _) => self.end(&mut work),
                    (SidecarAction::Serve, Standing::Owner(permit)) => {
                        work = Some(self.begin(permit, stop).await?);
                    }
                    (SidecarAction::TerminateEtcd, _) => self.terminate_etcd(),
                    // A seal follows when this has returned.
                    (SidecarAction::Serve | SidecarAction::Seal, _) => {}
                }
            }
            if let Some(work) = &work {
                self.status
                    .change_state(SidecarState::Serving, Some(work.permit.clone()));
            }
            if let Standing::Lost(loss) = &report.standing {
                return Ok(Some(loss.clone()));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.leave(work).await;
                    return Ok(None);
                }
                changed = reports.changed() => if changed.is_err() {
                    return Err(Error::new(Class::Stopping, "the owner check has ended"));
                },
                () = PermittedWork::wait_for_end(&mut work) => {}
            }
        }
    }

    /// Takes the addresses of the gates and begins to take snapshots.
    async fn begin(&self, permit: &Permit, stop: &CancellationToken) -> Result<PermittedWork> {
        let mut bound = Vec::new();
        for gate in &self.gates {
            bound.push((gate.clone(), gate.bind().await?));
        }
        let (snapshotter, handle) = Snapshotter::measured((self.settings)(permit)?, self.metrics.clone());
        self.set_handle(handle);
        let (forward, take, stop) = (permit.clone(), permit.clone(), stop.clone());
        let forwarding: BoxFuture<()> = Box::pin(async move {
            let open = bound.into_iter().map(|(gate, listener)| {
                let permit = forward.clone();
                async move { gate.forward(listener, &permit).await }
            });
            join_all(open).await;
        });
        let snapshots: BoxFuture<()> = Box::pin(async move {
            let taking = Box::pin(snapshotter.run(stop));
            if let Err(refused) = take.guard(taking).await {
                tracing::info!(%refused, "no snapshots are taken under this right any more");
            }
        });
        Ok(PermittedWork {
            permit: permit.clone(),
            forwarding: forwarding.fuse(),
            snapshots: snapshots.fuse(),
        })
    }

    /// Shuts down: first cuts the clients, so that the last stored changes are all that clients were
    /// acknowledged.
    async fn leave(&self, work: Option<PermittedWork>) {
        self.status.change_state(SidecarState::Waiting, None);
        if let Some(PermittedWork {
            forwarding,
            snapshots,
            ..
        }) = work
        {
            drop(forwarding);
            snapshots.await;
        }
    }

    pub(super) fn terminate_etcd(&self) {
        self.status.record_sigterm(&self.check.etcd.terminate());
    }

    pub(super) fn set_handle(&self, handle: Handle) {
        *self.snapshotter.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    fn end(&self, work: &mut Option<PermittedWork>) {
        *work = None;
        let store = &self.bucket.store;
        self.set_handle(Handle::idle(&store.prefix(), store.epoch(), self.metrics.clone()));
    }
}
