//! The controller of deadlines: begins a failover, and enforces the deadline of the failover, beside the
//! flows (RZ-32). A flow can hang, back off after errors, or wait for a slot of `--concurrent-syncs`. This
//! controller has a queue and slots of its own, and writes the same fields as the flow.
//!
//! | when | work |
//! |---|---|
//! | the Shoot asks for a zone | judge the failover, record the refusal or the deadline |
//! | refused for a passing reason | judge again, each minute at first |
//! | [`LEAD`] before the deadline | request that the Worker leaves the zone |
//! | a part of the budget after the deadline | close the network |
//!
//! Nothing is written to the seed while a move, a restoration or a deletion runs: [`SeedGates`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use api::{
    constants::{ISOLATED_ZONE_CLOSE_DEADLINE, SHOOT_ISOLATED_ZONE_CLOSE_NOW},
    extensions::{SubnetIsolation, Worker},
    gardencore::{Shoot, shoot::ZoneIsolationPhase as Phase, shoot::ZoneIsolationStatus as Status},
    meta::LastOperationType as Type,
};
use futures::future::{BoxFuture, FutureExt};
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt, runtime::Controller};
use parts::Facts;
use placement::{
    Isolation, Operation, OwnerAction, Role,
    isolation::{asked_zone, asks_to_close_now, has_deadline, is_close_now_over, recorded},
    names, role, wanted,
};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use crate::{
    context::{Context, MANAGER},
    shoot::{
        dispatch,
        ownership::{
            owner_permit::{self, PermitRefusal},
            ownership_lost::LostShoots,
            status_writer::{StatusObserver, StatusWriter},
        },
        pause::{self, EmergencyStop},
    },
    zone_isolation,
};

/// The time that the machines of the zone have to leave before the deadline, where the flow hangs.
const LEAD: SignedDuration = SignedDuration::from_mins(10);
/// Part of the budget that the flow has after the deadline, to close the network in its order: of 15 minutes
/// 45 seconds, which is longer than the Worker takes to become ready at the deadline.
const GRACE: i32 = 20;
/// Between two reports of the rest of the budget, and between two checks of a Shoot that is paused.
const REPORT_PERIOD: Duration = Duration::from_secs(60);
/// Before the next check of a failover that was just admitted or closed.
const REQUEUE_AFTER_WORK: Duration = Duration::from_secs(5);
/// Longest work on the seed. A move waits for the end of this work.
const WORK_PATIENCE: Duration = Duration::from_secs(60);

/// Runs the controller until shutdown.
pub(crate) async fn run(
    context: Arc<Context>,
    controller: Controller<Shoot>,
    gates: Arc<SeedGates>,
    lost: Arc<LostShoots>,
) {
    let (garden, settings) = (context.garden.clone(), context.runner());
    let share = context.config.project_share();
    let reconciler = Arc::new(ZoneDeadlines { context, gates, lost });
    runner::run_namespaced_by_project(controller, &garden, reconciler, settings, share).await;
}

/// Keeps this controller from the seed of a Shoot while a flow hands the Shoot over, restores or deletes the
/// Shoot. Such a flow records the operation in the Shoot first, and then passes the gate. This controller
/// reads the Shoot behind the gate.
#[derive(Debug, Default)]
pub(crate) struct SeedGates(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl SeedGates {
    /// Waits until this controller has finished its work on the seed.
    pub(crate) async fn pass(&self, shoot: &Shoot, operation: Operation) {
        if !matches!(operation, Operation::Create | Operation::Reconcile) {
            drop(self.of_shoot(shoot).lock().await);
        }
    }

    fn of_shoot(&self, shoot: &Shoot) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, gate| gate.strong_count() > 0);
        let uid = shoot.uid().unwrap_or_default();
        if let Some(gate) = all.get(&uid).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::default();
        all.insert(uid, Arc::downgrade(&gate));
        gate
    }
}

struct ZoneDeadlines {
    context: Arc<Context>,
    gates: Arc<SeedGates>,
    lost: Arc<LostShoots>,
}

/// Work on the seed that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The Worker has to leave the zone, or does not know the deadline.
    Leave,
    /// The network has to be closed.
    Close,
}

impl Reconciler<Shoot> for ZoneDeadlines {
    const NAME: &'static str = "shoot-zone";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        (asked_zone(shoot).is_some() || asks_to_close_now(shoot))
            && role(shoot, &self.context.seed_name) == Role::Owner
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let Some(shoot) = self.latest(&shoot).await? else {
            return Ok(Next::Change);
        };
        if is_close_now_over(&shoot) {
            self.forget_request(&shoot).await?;
        }
        let Some(zone) = asked_zone(&shoot).map(str::to_owned) else {
            return Ok(Next::Change);
        };
        // The end of an emergency stop changes no Shoot.
        let Some(operation) = self.operation(&shoot).await? else {
            return Ok(Next::After(REPORT_PERIOD));
        };
        if has_deadline(&shoot, &zone) {
            return Box::pin(self.enforce(&shoot, &zone, operation)).await;
        }
        if !may_begin(&shoot, &zone) {
            self.report_request(&shoot, &zone, operation).await?;
            return Ok(Next::Change);
        }
        Box::pin(self.begin(shoot, operation)).await
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl StatusObserver for ZoneDeadlines {
    fn written<'a>(&'a self, before: &'a Shoot, after: &'a Shoot) -> BoxFuture<'a, ()> {
        zone_isolation::events::report_change(&self.context, before, after).boxed()
    }
}

impl ZoneDeadlines {
    async fn latest(&self, shoot: &Shoot) -> Result<Option<Shoot>> {
        let found = self.api(shoot).get_opt(&shoot.name_any()).await;
        let found = found.context(format_args!("could not read Shoot {}", shoot.name_any()))?;
        Ok(found.filter(|found| found.uid() == shoot.uid()))
    }

    fn api(&self, shoot: &Shoot) -> Api<Shoot> {
        let namespace = shoot.namespace().unwrap_or_default();
        self.context.garden.namespaced(&namespace)
    }

    /// The operation in whose name this controller acts.
    async fn operation(&self, shoot: &Shoot) -> Result<Option<Operation>> {
        let Some(operation) = operation_of(shoot, &self.context.seed_name) else {
            return Ok(None);
        };
        // The store of the flows' controller may be behind, so the Seed is read.
        let pause = pause::find(&self.context, &EmergencyStop::new(), shoot).await?;
        let is_held = dispatch::is_held(pause, shoot, operation) || self.lost.find_loss(shoot).is_some();
        Ok((!is_held).then_some(operation))
    }

    async fn begin(&self, shoot: Shoot, operation: Operation) -> Result<Next> {
        let status_writer = StatusWriter::new(&self.context, &shoot, type_of(&shoot, operation), self);
        let mut facts = self.facts(&shoot, operation).await?;
        zone_isolation::budget::begin(&mut facts, &self.context.config, &status_writer).await?;
        if matches!(facts.isolation, Isolation::CutOff(_)) {
            return Ok(Next::After(REQUEUE_AFTER_WORK));
        }
        let newest = status_writer.newest().await?;
        let pause = zone_isolation::recheck::period_of_refusal(&newest, clock::now());
        Ok(pause.map_or(Next::Change, Next::After))
    }

    async fn enforce(&self, shoot: &Shoot, zone: &str, operation: Operation) -> Result<Next> {
        let status_writer = StatusWriter::new(&self.context, shoot, type_of(shoot, operation), self);
        let (budget, now) = (self.context.config.zone_close_within, clock::now_k8s());
        status_writer
            .write_if(|newest| Ok(zone_isolation::zone_status::admitted(newest, zone, budget, &now)))
            .await?;
        let newest = spend_on_request(&status_writer, zone).await?;
        let Some(deadline) = deadline(&newest, zone) else {
            return Ok(Next::After(REQUEUE_AFTER_WORK));
        };
        let (worker, isolation) = self.objects(&newest).await?;
        let grace = SignedDuration::try_from(budget).unwrap_or_default() / GRACE;
        let due = due(
            worker.as_ref(),
            isolation.as_ref(),
            zone,
            (deadline, grace),
            now.0,
        );
        match (&isolation, &worker) {
            (Some(isolation), _) => {
                zone_isolation::report::isolation(&status_writer, zone, isolation).await?;
            }
            (None, Some(worker)) if worker.spec.isolated_zone_id.as_deref() == Some(zone) => {
                zone_isolation::report::worker(&status_writer, zone, worker).await?;
            }
            _ => zone_isolation::report::budget(&status_writer, zone, &newest).await?,
        }
        if let Some(due) = due {
            let work = Box::pin(self.act(&newest, zone, operation, due));
            let done = tokio::time::timeout(WORK_PATIENCE, work).await;
            done.map_err(|_| Error::transient("the seed did not answer in time"))??;
        }
        self.forget_request(&newest).await?;
        Ok(Next::After(match due {
            Some(_) => REQUEUE_AFTER_WORK,
            None => pause(deadline, grace, clock::now()),
        }))
    }

    /// Works on the seed behind the gate, under the right of the owner.
    async fn act(&self, shoot: &Shoot, zone: &str, operation: Operation, due: Due) -> Result<()> {
        let gate = self.gates.of_shoot(shoot);
        let _work = gate.lock().await;
        let Some(newest) = self.latest(shoot).await? else {
            return Ok(());
        };
        if self.operation(&newest).await? != Some(operation) || !has_deadline(&newest, zone) {
            return Ok(());
        }
        let status_writer = &StatusWriter::new(&self.context, &newest, type_of(&newest, operation), self);
        let facts = self.facts(&newest, operation).await?;
        let ended = owner_permit::run_under_owner_permit(facts, |facts| {
            Box::pin(async move {
                if !zone_isolation::budget::is_asked_still(status_writer, zone).await? {
                    return Ok(());
                }
                match due {
                    Due::Leave => zone_isolation::budget::leave(&facts).await,
                    Due::Close => Box::pin(zone_isolation::budget::close(&facts, status_writer, zone)).await,
                }
            })
        });
        match Box::pin(ended).await {
            Ok(done) => done,
            // The flow reports the loss.
            Err(PermitRefusal::Lost(sentence)) => Err(Error::not_owner(sentence)),
            Err(PermitRefusal::NotNow(error)) => Err(error),
        }
    }

    async fn facts(&self, shoot: &Shoot, operation: Operation) -> Result<Facts> {
        let context = &self.context;
        let facts = Facts::new(
            context.garden.clone(),
            context.seed.clone(),
            Arc::clone(&context.settings),
            &context.seed_name,
            Arc::new(shoot.clone()),
            operation,
        );
        Box::pin(facts).await
    }

    /// The Worker and the SubnetIsolation of the shoot. A shoot without a recorded namespace has neither.
    async fn objects(&self, shoot: &Shoot) -> Result<(Option<Worker>, Option<SubnetIsolation>)> {
        let Some(namespace) = names::recorded_technical_id(shoot) else {
            return Ok((None, None));
        };
        let (seed, name) = (&self.context.seed, shoot.name_any());
        let worker = seed.namespaced::<Worker>(namespace).get_opt(&name).await;
        let isolation = seed.namespaced::<SubnetIsolation>(namespace).get_opt(&name).await;
        Ok((
            worker.context("could not read the Worker")?,
            isolation.context("could not read the SubnetIsolation")?,
        ))
    }

    /// Reports on a failover that was refused that the request to spend the budget waits for the admission.
    async fn report_request(&self, shoot: &Shoot, zone: &str, operation: Operation) -> Result<()> {
        let status_writer = StatusWriter::new(&self.context, shoot, type_of(shoot, operation), self);
        let now = clock::now_k8s();
        let reported = status_writer.write_if(|newest| {
            Ok(zone_isolation::zone_status::refused_with_request(
                newest, zone, &now,
            ))
        });
        reported.await.map(drop)
    }

    /// Removes the request to spend the budget, after the effect of the request or the end of the failover.
    async fn forget_request(&self, shoot: &Shoot) -> Result<()> {
        if asks_to_close_now(shoot) {
            MANAGER
                .annotate(
                    &self.api(shoot),
                    &shoot.name_any(),
                    SHOOT_ISOLATED_ZONE_CLOSE_NOW,
                    None,
                )
                .await?;
        }
        Ok(())
    }
}

/// Sets the deadline to the present where the user spends the rest of the budget.
async fn spend_on_request(status_writer: &StatusWriter<'_>, zone: &str) -> Result<Arc<Shoot>> {
    let mut is_new = false;
    let written = status_writer.write_if(|newest| {
        let patch = zone_isolation::zone_status::spent(newest, zone, &clock::now_k8s());
        let patch = patch.filter(|_| asks_to_close_now(newest));
        is_new = patch.is_some();
        Ok(patch)
    });
    let written = written.await?;
    if is_new {
        let note =
            format!("The rest of the budget of zone {zone} is spent on request: its network is closed now.");
        status_writer.note("ZoneBudgetSpent", &note).await;
    }
    Ok(written)
}

/// The operation in whose name the controller acts; `None` while the Shoot is handed over, restored or
/// deleted.
fn operation_of(shoot: &Shoot, own_seed: &str) -> Option<Operation> {
    if role(shoot, own_seed) != Role::Owner || shoot.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match wanted(shoot) {
        OwnerAction::Operation(operation @ (Operation::Create | Operation::Reconcile)) => Some(operation),
        _ => None,
    }
}

/// Whether the failover has not begun and may begin. A refusal that needs a change of the Shoot waits for the
/// flow after this change.
fn may_begin(shoot: &Shoot, zone: &str) -> bool {
    recorded(shoot).is_none_or(|recorded| {
        recorded.isolated_zone_id == zone
            && match (recorded.phase, recorded.status) {
                (Phase::Failover, Status::Done) => false,
                (Phase::Failover, Status::Failed) => zone_isolation::recheck::is_refused(shoot),
                _ => true,
            }
    })
}

fn deadline(shoot: &Shoot, zone: &str) -> Option<Timestamp> {
    let recorded = recorded(shoot).filter(|_| has_deadline(shoot, zone))?;
    recorded.close_deadline_time.as_ref().map(|time| time.0)
}

/// The work on the seed that no flow has done in time.
fn due(
    worker: Option<&Worker>,
    isolation: Option<&SubnetIsolation>,
    zone: &str,
    (deadline, grace): (Timestamp, SignedDuration),
    now: Timestamp,
) -> Option<Due> {
    let is_closing = isolation.is_some_and(|isolation| {
        isolation.spec.isolated_zone_id == zone && isolation.metadata.deletion_timestamp.is_none()
    });
    if !is_closing && now.duration_since(deadline) >= grace {
        return Some(Due::Close);
    }
    let worker = worker.filter(|worker| worker.metadata.deletion_timestamp.is_none());
    let left = worker.filter(|worker| worker.spec.isolated_zone_id.as_deref() == Some(zone));
    let leaves = deadline.duration_since(now) <= LEAD && worker.is_some() && left.is_none();
    let closing = isolation.filter(|_| is_closing);
    let is_behind = left.is_some_and(|worker| !has_copy(worker, deadline))
        || closing.is_some_and(|isolation| !has_copy(isolation, deadline));
    (leaves || is_behind).then_some(Due::Leave)
}

/// Whether the object has the deadline.
fn has_copy(object: &impl ResourceExt, deadline: Timestamp) -> bool {
    let known = object.annotations().get(ISOLATED_ZONE_CLOSE_DEADLINE);
    known.is_some_and(|known| *known == deadline.to_string())
}

/// The pause before the next report or the next work.
fn pause(deadline: Timestamp, grace: SignedDuration, now: Timestamp) -> Duration {
    let rest = deadline.duration_since(now);
    let next = [rest - LEAD, rest + grace]
        .into_iter()
        .filter(SignedDuration::is_positive)
        .min();
    let next = next.map_or(REPORT_PERIOD, SignedDuration::unsigned_abs);
    next.min(REPORT_PERIOD)
}

/// The type with which [`StatusWriter`] checks that no further operation has begun.
fn type_of(shoot: &Shoot, operation: Operation) -> Type {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.map_or(operation.type_(), |last| last.type_)
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
