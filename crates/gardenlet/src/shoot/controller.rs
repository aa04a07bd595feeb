//! Watches Shoots and runs the step that [`dispatch`] decides for each.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, condition::READY_FOR_MIGRATION, finalizer::GARDENER},
    gardencore::{Shoot, shoot::ShootStatus},
    meta::{ErrorCode, LastOperationState as State},
};
use futures::future;
use kube::{Api, ResourceExt};
use parts::{FenceClock, Fences, ProvenEnd};
use placement::{Operation, OwnerAction, Pause, Role, approval, is_move_wanted, isolation, role, traveller};
use runtime::{Cluster, Error, Next, Reconciler, Result, clock, finalizer, runner};
use serde_json::json;
use tokio::time::Instant;
use tracing::info;

use super::{
    backup_steps, confirmation,
    dispatch::{self, Periods, ShootAction},
    identity, leave, left_behind, left_out, loss,
    lost::{self, LostShoots},
    operation::{self, Failure},
    pace::Pace,
    pause::{self, EmergencyStop},
    project,
    record::Record,
    right,
    status::{self, Trigger, Writer},
    watched::{self, ready_for_migration},
    zone_changes::Changes,
    zone_deadline::{self, SeedGates},
    zone_plan, zone_recheck,
    zone_record::{self, Retry},
    zone_story,
};
use crate::context::{Context, MANAGER};

/// Requeue interval for a Shoot that waits for its destination. A change of the constraint wakes the
/// controller earlier.
const WAIT_FOR_DESTINATION: Duration = Duration::from_secs(60);
/// Requeue interval after a concurrent write to the Shoot. Long enough for the cache to receive the write.
const CONFLICT_REQUEUE: Duration = Duration::from_millis(100);

/// Runs the shoot controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let garden = context.garden.clone();
    let stop = EmergencyStop::new();
    let shoots = watched::watch(&garden);
    let controller = shoots
        .flows
        .reconcile_all_on(stop.changes(&garden, &context.seed_name));
    let settings = context.runner();
    let (gates, lost) = (Arc::<SeedGates>::default(), Arc::<LostShoots>::default());
    let deadlines = zone_deadline::run(
        Arc::clone(&context),
        shoots.deadlines,
        Arc::clone(&gates),
        Arc::clone(&lost),
    );
    // There from the start, so that a first loss is seen as one.
    loss::metrics(&context.metrics);
    let reconciler = Arc::new(ShootReconciler {
        context,
        fences: Fences::default(),
        lost,
        gates,
        changes: Changes::default(),
        pace: Pace::default(),
        stop,
    });
    let flows = runner::run_namespaced(controller, &garden, reconciler, settings);
    tokio::select! {
        ((), ()) = future::join(flows, deadlines) => {}
        () = shoots.watch => {}
    }
}

struct ShootReconciler {
    context: Arc<Context>,
    fences: Fences,
    lost: Arc<LostShoots>,
    gates: Arc<SeedGates>,
    changes: Changes,
    pace: Pace,
    stop: EmergencyStop,
}

impl Reconciler<Shoot> for ShootReconciler {
    const NAME: &'static str = "shoot";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        matches!(
            role(shoot, &self.context.seed_name),
            Role::Owner | Role::Former { .. }
        )
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let shoot = self.latest(&shoot).await?;
        if role(&shoot, &self.context.seed_name) == Role::Owner {
            finalizer::ensure(&self.api(&shoot), shoot.as_ref(), GARDENER).await?;
        }
        self.step(shoot).await
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let owner = role(&shoot, &self.context.seed_name) == Role::Owner;
        if owner && !shoot.finalizers().iter().any(|finalizer| finalizer == GARDENER) {
            return Ok(Next::Change);
        }
        self.step(shoot).await
    }
}

impl ShootReconciler {
    async fn step(&self, shoot: Arc<Shoot>) -> Result<Next> {
        // The cache may lag behind our own last write; deciding on an old status could run a flow twice.
        let shoot = self.latest(&shoot).await?;
        zone_story::show(&self.context, &shoot);
        // Asked while nothing is under way, whatever comes next.
        let Some(shoot) = Box::pin(zone_plan::answer(&self.context, shoot)).await? else {
            return Ok(Next::After(CONFLICT_REQUEUE));
        };
        let pause = pause::find(&self.context, &self.stop, &shoot).await?;
        let duty = dispatch::apply_pause(pause, &shoot, self.decide(&shoot));
        pause::report(&self.context, &shoot, pause, duty).await?;
        match duty {
            // The watches of the Shoot and of the Seed report the end of a pause.
            ShootAction::NotResponsible | ShootAction::GivenUp | ShootAction::Paused(_) => Ok(Next::Change),
            ShootAction::Idle(rest) => {
                self.tell_obstacle(&shoot).await?;
                Ok(Next::After(rest))
            }
            ShootAction::Unconfirmed => {
                if let Some(patch) = confirmation::is_missing(&shoot, &clock::now_k8s()) {
                    MANAGER
                        .try_merge_status_of(&self.api(&shoot), shoot.as_ref(), &patch)
                        .await?;
                }
                Ok(Next::Change)
            }
            ShootAction::Leave(epoch) => leave::leave(&self.context, &shoot, epoch).await,
            ShootAction::Run(operation) => {
                if let Some(pause) = self.changes.hold(&self.context, &shoot, operation).await? {
                    return Ok(Next::After(pause));
                }
                let trigger = Trigger::for_shoot(&shoot);
                let shoot = self.take_operation_annotation(shoot).await?;
                // A user may have changed his mind between the two: what counts is the Shoot without the
                // annotation.
                let Some(operation) = self.decide_without_request(&shoot, pause) else {
                    return Ok(Next::After(CONFLICT_REQUEUE));
                };
                if let Some(sentence) = self.loss_of(&shoot, operation) {
                    return self.tell_loss(&shoot, operation, &sentence).await;
                }
                // Large, and on the stack of every other step otherwise.
                let begun = Box::pin(self.begin(Arc::clone(&shoot), operation, trigger));
                identity::in_operation(&shoot, operation, begun).await
            }
        }
    }

    fn decide(&self, shoot: &Shoot) -> ShootAction {
        let periods = Periods {
            sync: self.context.config.shoot_sync_period,
        };
        dispatch::decide(shoot, &self.context.seed_name, periods, clock::now())
    }

    /// What runs once the request is taken. The role may be another by now; that it was asked for stays.
    fn decide_without_request(&self, shoot: &Shoot, pause: Option<Pause>) -> Option<Operation> {
        match placement::wanted(shoot) {
            OwnerAction::Operation(operation) if role(shoot, &self.context.seed_name) == Role::Owner => {
                Some(operation).filter(|operation| !dispatch::is_held(pause, shoot, *operation))
            }
            _ => None,
        }
    }

    /// What was lost stays lost in this epoch, whoever says otherwise later (R17-49, R17-61). It can be
    /// handed over.
    fn loss_of(&self, shoot: &Shoot, operation: Operation) -> Option<String> {
        self.lost
            .find_loss(shoot)
            .filter(|_| right::is_for_owners(operation))
    }

    async fn tell_loss(&self, shoot: &Shoot, operation: Operation, sentence: &str) -> Result<Next> {
        let status = shoot.status.as_ref();
        let recorded = status.and_then(|status| status.last_operation.as_ref());
        let type_ = recorded.map_or(operation.type_(), |last| last.type_);
        lost::tell(&self.context, &self.lost, (shoot, type_), sentence).await
    }

    async fn begin(&self, shoot: Arc<Shoot>, operation: Operation, trigger: Trigger) -> Result<Next> {
        let context = &self.context;
        if operation == Operation::Migrate && approval(&shoot).is_none() {
            self.tell_obstacle(&shoot).await?;
            return Err(not_approved(&shoot));
        }
        let type_ = operation.type_();
        let project = project::name_of(&self.context.garden, &shoot).await?;
        let traveller = traveller(&shoot, operation)
            .map_err(|error| Error::config(ErrorCode::ErrConfigurationProblem, error.to_string()))?;
        let left = Box::pin(left_behind::of_move(context, &shoot, operation)).await?;
        // If the Shoot was changed since it was decided on, this write fails, and the new one is decided on.
        let now = clock::now_k8s();
        let started = status::started(&traveller, &project, &writer(context), operation, trigger, &now);
        let started = parts::with_left_behind(parts::keep_left_behind(&shoot, started), &left, &now);
        let begun = MANAGER
            .try_merge_status_of(&self.api(&shoot), shoot.as_ref(), &started)
            .await?;
        let Some(begun) = begun else {
            return Ok(Next::After(CONFLICT_REQUEUE));
        };
        self.gates.pass(&begun, operation).await;
        left_behind::report(context, &begun, &left).await;
        Box::pin(zone_story::tell(context, &shoot, &begun)).await;
        let traveller = Arc::new(Shoot {
            status: begun.status.clone(),
            metadata: kube::core::ObjectMeta {
                generation: traveller.metadata.generation,
                ..begun.metadata.clone()
            },
            spec: traveller.spec,
        });
        context
            .garden_events
            .normal(
                &begun,
                status::start_reason(type_),
                &format!("{type_} of Shoot cluster started"),
            )
            .await;
        let record = Record::new(context, &begun, type_);
        let proven_end = ProvenEnd::default();
        let run = operation::run(
            context,
            &traveller,
            operation,
            (self.fence(&traveller, operation), proven_end.clone()),
            &record,
            &self.pace,
        );
        match Box::pin(run).await {
            Ok(()) => self.succeeded(&traveller, operation, &record, &proven_end).await,
            Err(Failure { lost: Some(why), .. }) => {
                self.lost.remember(&begun, &why);
                self.tell_loss(&begun, operation, &why).await
            }
            Err(failure) => self.failed(&begun, operation, failure, &record).await,
        }
    }

    /// The clock of the fence. Repeated attempts of a restoration share the clock.
    fn fence(&self, traveller: &Shoot, operation: Operation) -> FenceClock {
        let epoch = traveller.status.as_ref().map_or(1, ShootStatus::epoch);
        match (operation, traveller.uid()) {
            (Operation::Restore, Some(uid)) => self.fences.get_clock(&uid, epoch),
            _ => FenceClock::default(),
        }
    }

    async fn succeeded(
        &self,
        traveller: &Shoot,
        operation: Operation,
        record: &Record<'_>,
        proven_end: &ProvenEnd,
    ) -> Result<Next> {
        let context = &self.context;
        let type_ = operation.type_();
        let written = if operation == Operation::Migrate {
            self.hand_over(record, proven_end).await?
        } else {
            let settled = status::settled(traveller, operation, clock::now_k8s());
            let seed = &context.seed_name;
            record
                .write_if(|newest| {
                    let patch = status::with_own_stay_ended(newest, seed, operation, settled.clone());
                    Ok(Some(parts::keep_left_behind(newest, patch)))
                })
                .await?
        };
        let note = written
            .status
            .as_ref()
            .and_then(|status| status.last_operation.as_ref())
            .map(|last| last.description.clone())
            .unwrap_or_default();
        let events = &context.garden_events;
        events
            .normal(&written, status::success_reason(type_), &note)
            .await;
        info!(shoot = written.name_any(), operation = %type_, "operation succeeded");
        self.fences.forget(&written.uid().unwrap_or_default());
        self.lost.forget(&written);
        if operation == Operation::Restore
            && let Some(lost) = loss::read_loss(&written)
        {
            let losses = loss::metrics(&context.metrics);
            if let Some(seconds) = lost.seconds {
                losses.seconds.observe(f64::from(seconds));
            }
            events.warning(&written, lost.reason(), &lost.sentence).await;
        }
        if operation == Operation::Restore {
            backup_steps::report_source_left_behind(context, &written).await;
        }
        if operation.deletes() {
            left_behind::report_at_end(context, &written, operation).await;
            zone_story::forget(context, &written);
            self.let_go(&written).await?;
            return Ok(Next::Change);
        }
        if operation == Operation::Migrate {
            left_out::report(context, &written).await;
            zone_story::forget(context, &written);
            // The seed is a former one by now, and begins to clean up.
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        self.tell_obstacle(&written).await?;
        // What was asked for meanwhile, or while the shoot moved, does not wait for its time.
        let is_due = isolation::is_due(&written);
        let recheck = zone_recheck::period(&written, clock::now());
        let period = context.config.shoot_sync_period;
        Ok(Next::After(if is_due {
            CONFLICT_REQUEUE
        } else {
            recheck.map_or(period, |recheck| recheck.min(period))
        }))
    }

    /// The point of no return. It is written only while the move is still the one that was approved, and with
    /// the end of the epoch that this run has proved.
    async fn hand_over(&self, record: &Record<'_>, proven_end: &ProvenEnd) -> Result<Shoot> {
        record
            .write_if(|newest| {
                if newest.metadata.deletion_timestamp.is_some() && placement::is_confirmed(newest) {
                    return Err(Error::not_ready(
                        CONFLICT_REQUEUE,
                        "the Shoot is being deleted: it is not handed over any more",
                    ));
                }
                let epoch = newest.status.as_ref().map_or(1, ShootStatus::epoch);
                let end = proven_end.of_epoch(epoch).ok_or_else(|| {
                    Error::transient(format!(
                        "the final snapshot of ownership epoch {epoch} was not proved in this run, so that the Shoot is not handed over"
                    ))
                })?;
                match status::handed_over(newest, &end, &clock::now_k8s()) {
                    Some(patch) => Ok(Some(patch)),
                    None => Err(not_approved(newest)),
                }
            })
            .await
    }

    /// Takes the finalizer away, whoever writes the Shoot meanwhile.
    async fn let_go(&self, shoot: &Shoot) -> Result<()> {
        let api = self.api(shoot);
        loop {
            let Some(newest) = api.get_opt(&shoot.name_any()).await? else {
                return Ok(());
            };
            if newest.uid() != shoot.uid() || finalizer::try_remove(&api, &newest, GARDENER).await? {
                return Ok(());
            }
        }
    }

    async fn failed(
        &self,
        shoot: &Shoot,
        operation: Operation,
        failure: Failure,
        record: &Record<'_>,
    ) -> Result<Next> {
        let type_ = operation.type_();
        let Failure {
            progress,
            errors,
            error,
            called_off,
            ..
        } = failure;
        // An attempt that failed early has undone nothing of what an earlier attempt has reached.
        let progress = progress.max(status::reached(shoot));
        if called_off {
            self.changes.count(shoot, Instant::now());
        }
        let patch = match &error {
            // Whose it is now tells its story.
            Error::NotOwner(_) => return Err(error),
            Error::NotReady { why, .. } => status::waiting(type_, progress, why, clock::now_k8s()),
            _ => {
                let retry = self.context.config.retry_duration;
                status::failed(shoot, type_, progress, &errors, retry, clock::now_k8s())
            }
        };
        let is_given_up = patch["lastOperation"]["state"] == json!(State::Failed);
        let retry = if is_given_up {
            Retry::Never
        } else {
            Retry::ByItself
        };
        let is_wait = matches!(error, Error::NotReady { .. });
        let now = clock::now_k8s();
        record
            .write_if(|newest| {
                let of_zone = zone_record::failed(newest, operation, &errors, retry, &now);
                Ok(Some(zone_record::and(
                    parts::keep_left_behind(newest, patch.clone()),
                    of_zone.filter(|_| !is_wait),
                )))
            })
            .await?;
        Err(error)
    }

    /// A move that cannot begin changes nothing (I8) but what is told of it: users look for errors in
    /// `lastErrors`.
    async fn tell_obstacle(&self, shoot: &Shoot) -> Result<()> {
        if !is_move_wanted(shoot) || approval(shoot).is_some() {
            return Ok(());
        }
        let constraint = shoot
            .status
            .as_ref()
            .and_then(|status| status.constraint(READY_FOR_MIGRATION));
        let obstacle =
            constraint.and_then(|constraint| status::move_cannot_begin(shoot, constraint, &clock::now_k8s()));
        if let Some(patch) = obstacle {
            // Whoever has written meanwhile wakes this again.
            MANAGER
                .try_merge_status_of(&self.api(shoot), shoot, &patch)
                .await?;
        }
        Ok(())
    }

    async fn latest(&self, shoot: &Shoot) -> Result<Arc<Shoot>> {
        Ok(Arc::new(self.api(shoot).get(&shoot.name_any()).await?))
    }

    /// What the annotation asks for begins now; asking again while it runs asks for another run.
    async fn take_operation_annotation(&self, shoot: Arc<Shoot>) -> Result<Arc<Shoot>> {
        if !shoot.annotations().contains_key(OPERATION) {
            return Ok(shoot);
        }
        MANAGER
            .annotate(&self.api(&shoot), &shoot.name_any(), OPERATION, None)
            .await
            .map(Arc::new)
    }

    fn api(&self, shoot: &Shoot) -> Api<Shoot> {
        self.context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default())
    }
}

/// Why a move does not go on (R7-46, I8).
fn not_approved(shoot: &Shoot) -> Error {
    let why = match ready_for_migration(shoot) {
        Some((false, message)) => {
            format!("destination Seed is not available to host the control plane: {message}")
        }
        _ => "waiting for confirmation that destination Seed is available (constraint ReadyForMigration, status.migration)"
            .to_owned(),
    };
    Error::not_ready(WAIT_FOR_DESTINATION, why)
}

fn writer(context: &Context) -> Writer {
    Writer {
        id: context.config.instance_id.clone(),
        name: "gardenlet",
        version: env!("CARGO_PKG_VERSION"),
        seed: context.seed_name.clone(),
    }
}
