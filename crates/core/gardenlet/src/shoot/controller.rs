//! Watches Shoots and runs the step that [`dispatch`] decides for each.

use std::sync::Arc;

use api::{
    constants::finalizer::GARDENER,
    gardencore::{Shoot, shoot::ShootStatus},
    meta::{ErrorCode, LastOperationState as State},
};
use futures::future;
use kube::{Api, ResourceExt};
use parts::{
    FenceClock, Fences, MoveFindings, ProvenEnd,
    shoot_state::left_out::{STATE_LEFT_OUT, STATE_NOT_RESTORED},
};
use placement::{Operation, Role, approval, is_kept, last_errors, role, traveller};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, finalizer, runner},
};
use serde_json::json;
use tracing::info;

use super::{
    dispatch::{self, Periods, ShootAction},
    flows::backup_steps,
    leaving::{leave, left_behind},
    move_obstacle,
    operation::{
        annotation, backup_grace, confirmation, domain, execution,
        failure::Failure,
        first_status,
        identity::OperationIdentity,
        metrics,
        pace::Pace,
        report::{CONFLICT_REQUEUE, write_report},
        seed_choice,
        status::{self, OperationStart, Trigger, Writer},
    },
    operation_hooks::OperationHooks,
    ownership::{
        data_loss, owner_permit,
        ownership_lost::{self, LostShoots},
        status_writer::StatusWriter,
    },
    pause::{self, EmergencyStop},
    project, state_left_out, watched,
};
use crate::{
    care::report_before_hand_over,
    context::{Context, MANAGER},
};

/// Runs the shoot controller, and the controller of the hooks, until shutdown.
pub(super) async fn run(context: Arc<Context>, hooks: Arc<dyn OperationHooks>) {
    let garden = context.garden.clone();
    let stop = EmergencyStop::new();
    let shoots = context.shoots.clone();
    let controller =
        watched::flows(&shoots, &hooks).reconcile_all_on(stop.changes(&garden, &context.seed_name));
    let (settings, share) = (context.runner(), context.config.project_share());
    let lost = Arc::<LostShoots>::default();
    let hook_controller = hooks.run(watched::of_hooks(&shoots, &hooks), Arc::clone(&lost));
    // There from the start, so that a first loss is seen as one.
    data_loss::metrics(&context.metrics);
    metrics::register(&context.metrics, &context.seed_name, &shoots.store());
    let pace = Pace::registered(&context.metrics);
    let reconciler = Arc::new(ShootReconciler {
        context,
        fences: Fences::default(),
        lost,
        hooks,
        pace,
        stop,
    });
    let flows = runner::run_namespaced_by_project(controller, &garden, reconciler, settings, share);
    shoots.run_beside(future::join(flows, hook_controller)).await;
}

struct ShootReconciler {
    context: Arc<Context>,
    fences: Fences,
    lost: Arc<LostShoots>,
    hooks: Arc<dyn OperationHooks>,
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
        let mut shoot = self.read(&shoot).await?;
        if role(&shoot, &self.context.seed_name) == Role::Owner {
            let written = finalizer::ensure(&self.api(&shoot), shoot.as_ref(), GARDENER).await?;
            shoot = written.map_or(shoot, Arc::new);
        }
        self.step(shoot).await
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let owner = role(&shoot, &self.context.seed_name) == Role::Owner;
        if owner && !is_kept(shoot.as_ref()) {
            return Ok(Next::Change);
        }
        self.step(self.read(&shoot).await?).await
    }
}

impl ShootReconciler {
    /// A pass over the Shoot that was read at the begin of the pass. Every write is bound to the version on
    /// which the write was decided.
    async fn step(&self, shoot: Arc<Shoot>) -> Result<Next> {
        // Before every action, while no flow of the Shoot runs.
        let Some(shoot) = self.hooks.answer(shoot).await? else {
            return Ok(Next::After(CONFLICT_REQUEUE));
        };
        let pause = pause::find(&self.context, &self.stop, &shoot).await?;
        let duty = dispatch::apply_pause(pause, &shoot, self.decide(&shoot));
        pause::report(&self.context, &shoot, pause, duty).await?;
        match duty {
            // The watches of the Shoot and of the Seed report the end of a pause.
            ShootAction::NotResponsible | ShootAction::GivenUp | ShootAction::Paused(_) => Ok(Next::Change),
            ShootAction::Idle(rest) => {
                let is_reported = move_obstacle::report(&self.context, &shoot).await?;
                Ok(Next::After(if is_reported { rest } else { CONFLICT_REQUEUE }))
            }
            ShootAction::Unconfirmed => {
                let report = confirmation::is_missing(&shoot, &clock::now_k8s());
                let is_reported = write_report(&self.context, &shoot, report).await?;
                Ok(if is_reported {
                    Next::Change
                } else {
                    Next::After(CONFLICT_REQUEUE)
                })
            }
            ShootAction::Leave(epoch) => {
                self.forget_metrics(&shoot);
                leave::leave(&self.context, &shoot, epoch).await
            }
            ShootAction::Run(operation) => {
                if let Some(delay) = self.hooks.delay(&shoot, operation).await? {
                    return Ok(Next::After(delay));
                }
                if let Some(sentence) = self.find_loss(&shoot, operation) {
                    let next = self.report_loss(&shoot, operation, &sentence).await?;
                    // The report of the loss answers a request.
                    let answered = annotation::take(&self.context, shoot).await?;
                    return Ok(answered.map_or(Next::After(CONFLICT_REQUEUE), |_| next));
                }
                // Boxed: the future is large, and would otherwise be on the stack of every step.
                let begun = Box::pin(self.begin(Arc::clone(&shoot), operation));
                let identity = OperationIdentity::new(&shoot, operation);
                identity.scope(begun).await
            }
        }
    }

    fn decide(&self, shoot: &Shoot) -> ShootAction {
        let periods = Periods {
            sync: self.context.config.shoot_sync_period,
        };
        let now = clock::now();
        let schedule = self.hooks.schedule(shoot, now);
        dispatch::decide(shoot, &self.context.seed_name, periods, schedule, now)
    }

    /// The text of a loss. A loss is final in this epoch (R17-49, R17-61), but a lost shoot can be handed
    /// over.
    fn find_loss(&self, shoot: &Shoot, operation: Operation) -> Option<String> {
        self.lost
            .find_loss(shoot)
            .filter(|_| owner_permit::is_for_owners(operation))
    }

    async fn report_loss(&self, shoot: &Shoot, operation: Operation, sentence: &str) -> Result<Next> {
        let status = shoot.status.as_ref();
        let recorded = status.and_then(|status| status.last_operation.as_ref());
        let type_ = recorded.map_or(operation.type_(), |last| last.type_);
        let observer = &*self.hooks;
        ownership_lost::report_loss(&self.context, &self.lost, (shoot, type_), sentence, observer).await
    }

    async fn begin(&self, shoot: Arc<Shoot>, operation: Operation) -> Result<Next> {
        let context = &self.context;
        // The next pass writes the finalizer, or ends the deletion.
        if !is_kept(shoot.as_ref()) {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        if operation == Operation::Migrate && approval(&shoot).is_none() {
            if !move_obstacle::report(context, &shoot).await? {
                return Ok(Next::After(CONFLICT_REQUEUE));
            }
            return Err(move_obstacle::not_approved(&shoot));
        }
        let type_ = operation.type_();
        if domain::ends_before_creation(&shoot, operation) {
            self.remove_finalizer(&shoot).await?;
            return Ok(Next::Change);
        }
        let project = project::name_of(&context.garden, &shoot).await?;
        let refusal = Box::pin(seed_choice::refusal(context, &shoot, &project)).await?;
        if refusal.is_some() && operation.deletes() {
            self.remove_finalizer(&shoot).await?;
            return Ok(Next::Change);
        }
        refusal.map_or(Ok(()), Err)?;
        domain::wait_until_reserved(context, &shoot, operation).await?;
        let traveller = traveller(&shoot, operation)
            .map_err(|error| Error::config(ErrorCode::ErrConfigurationProblem, error.to_string()))?;
        Box::pin(backup_grace::skip_if_never_created(context, &shoot, operation)).await?;
        let recorded = Box::pin(self.record_start(&shoot, &traveller, operation, &project));
        let Some(begun) = recorded.await? else {
            return Ok(Next::After(CONFLICT_REQUEUE));
        };
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
                begun.as_ref(),
                status::start_reason(type_),
                &format!("{type_} of Shoot cluster started"),
            )
            .await;
        let writer = StatusWriter::new(context, &begun, type_, &*self.hooks);
        let findings = MoveFindings::with_fence(self.fence(&traveller, operation));
        let run = execution::run(
            context,
            &traveller,
            operation,
            &findings,
            &writer,
            &*self.hooks,
            &self.pace,
        );
        match Box::pin(run).await {
            Ok(()) => self.succeeded(&traveller, operation, &writer, &findings).await,
            Err(Failure { lost: Some(why), .. }) => {
                self.lost.record(&begun, &why);
                self.report_loss(&begun, operation, &why).await
            }
            Err(failure) => self.failed(&begun, operation, failure, &writer).await,
        }
    }

    /// Records the start of the operation, and then removes the request of the user. `None` after a
    /// concurrent write: the next pass decides on the newer Shoot.
    ///
    /// The request stays until the start is recorded, so that a failure before the record loses no request.
    /// No flow begins before the request is removed, so that a request starts a single flow.
    async fn record_start(
        &self,
        shoot: &Shoot,
        traveller: &Shoot,
        operation: Operation,
        project: &str,
    ) -> Result<Option<Arc<Shoot>>> {
        let context = &self.context;
        let left = Box::pin(left_behind::of_move(context, shoot, operation)).await?;
        let now = clock::now_k8s();
        let cause = OperationStart::new(traveller, operation, Trigger::for_shoot(shoot));
        let first_status = first_status::compose(shoot, traveller, &left, &now, |traveller| {
            let started = status::started(traveller, project, &Writer::new(context), operation, &now);
            status::with_content(started, self.hooks.content_at_start(traveller, cause, &now))
        });
        // This write fails if the Shoot has changed since the decision.
        let begun = MANAGER
            .try_merge_status_of(&self.api(shoot), shoot, &first_status)
            .await?;
        let Some(begun) = begun.map(Arc::new) else {
            return Ok(None);
        };
        // Before the reports: a later removal would more often meet a concurrent write.
        let taken = annotation::take(context, Arc::clone(&begun)).await;
        // The reports belong to the recorded start, also if the removal failed.
        self.hooks.recorded(&begun, operation).await;
        left_behind::report(context, &begun, &left).await;
        self.hooks.written(shoot, &begun).await;
        taken
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
        writer: &StatusWriter<'_>,
        findings: &MoveFindings,
    ) -> Result<Next> {
        let context = &self.context;
        let type_ = operation.type_();
        let written = if operation == Operation::Migrate {
            Box::pin(report_before_hand_over(context, traveller)).await?;
            let written = self.hand_over(writer, &findings.end).await;
            if written.is_err() {
                Box::pin(leave::note_unanswered_hand_over(
                    context,
                    traveller,
                    &findings.end,
                ))
                .await;
            }
            let written = written?;
            leave::note_hand_over(context, &written).await;
            written
        } else {
            let settled = status::settled(traveller, operation, clock::now_k8s());
            let seed = &context.seed_name;
            writer
                .write_if(|newest| {
                    let patch = status::with_own_residency_ended(newest, seed, operation, settled.clone());
                    Ok(Some(last_errors::keep_left_behind(newest, patch)))
                })
                .await?
        };
        let seed = &context.seed_name;
        context
            .move_traces
            .operation_succeeded(traveller, operation, seed);
        let written: &Shoot = &written;
        let note = written
            .status
            .as_ref()
            .and_then(|status| status.last_operation.as_ref())
            .map(|last| last.description.clone())
            .unwrap_or_default();
        let events = &context.garden_events;
        events.normal(written, status::success_reason(type_), &note).await;
        info!(shoot = written.name_any(), operation = %type_, "operation succeeded");
        self.fences.forget(&written.uid().unwrap_or_default());
        self.lost.forget(written);
        if operation == Operation::Restore
            && let Some(lost) = data_loss::read_loss(written)
        {
            let losses = data_loss::metrics(&context.metrics);
            if let Some(seconds) = lost.seconds {
                losses.seconds.observe(f64::from(seconds));
            }
            events.warning(written, lost.reason(), &lost.sentence).await;
        }
        if operation == Operation::Restore {
            backup_steps::report_source_left_behind(context, written).await;
            state_left_out::report(context, written, STATE_NOT_RESTORED).await;
        }
        if operation.deletes() {
            left_behind::report_at_end(context, written, operation).await;
            self.remove_finalizer(written).await?;
            return Ok(Next::Change);
        }
        if operation == Operation::Migrate {
            state_left_out::report(context, written, STATE_LEFT_OUT).await;
            // The seed has role `Former` now, and begins to clean up.
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        let is_reported = move_obstacle::report(context, written).await?;
        // A request to a hook during the operation, or during a move, starts at once.
        let schedule = self.hooks.schedule(written, clock::now());
        let period = context.config.shoot_sync_period;
        Ok(Next::After(if schedule.is_due || !is_reported {
            CONFLICT_REQUEUE
        } else {
            schedule.period.map_or(period, |earlier| earlier.min(period))
        }))
    }

    /// Writes the hand-over, the point of no return. The write needs an approval that still matches the
    /// wanted move, and the end of the epoch as proved by this run.
    async fn hand_over(&self, writer: &StatusWriter<'_>, proven_end: &ProvenEnd) -> Result<Arc<Shoot>> {
        writer
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
                    None => Err(move_obstacle::not_approved(newest)),
                }
            })
            .await
    }

    /// Removes the finalizer. After each conflict with a concurrent write, a further attempt follows on a
    /// fresh read.
    async fn remove_finalizer(&self, shoot: &Shoot) -> Result<()> {
        self.forget_metrics(shoot);
        let api = self.api(shoot);
        if finalizer::try_remove(&api, shoot, GARDENER).await? {
            return Ok(());
        }
        loop {
            let Some(newest) = api.get_opt(&shoot.name_any()).await? else {
                return Ok(());
            };
            if newest.uid() != shoot.uid() || finalizer::try_remove(&api, &newest, GARDENER).await? {
                return Ok(());
            }
        }
    }

    /// The shoot is gone, or the seed leaves the shoot.
    fn forget_metrics(&self, shoot: &Shoot) {
        metrics::forget(shoot);
        self.pace.forget(&shoot.uid().unwrap_or_default());
    }

    async fn failed(
        &self,
        shoot: &Shoot,
        operation: Operation,
        failure: Failure,
        writer: &StatusWriter<'_>,
    ) -> Result<Next> {
        let type_ = operation.type_();
        let Failure {
            progress,
            errors,
            error,
            ..
        } = failure;
        // The percentage never goes back: an early failure undoes no step of an earlier attempt.
        let progress = progress.max(status::reached(shoot));
        let patch = match &error {
            // The new owner reports the status from here on.
            Error::NotOwner(_) => return Err(error),
            Error::NotReady { why, .. } => status::waiting(type_, progress, why, clock::now_k8s()),
            _ => {
                let retry = self.context.config.retry_duration;
                status::failed(shoot, type_, progress, &errors, retry, clock::now_k8s())
            }
        };
        let is_given_up = patch["lastOperation"]["state"] == json!(State::Failed);
        let is_wait = matches!(error, Error::NotReady { .. });
        let now = clock::now_k8s();
        writer
            .write_if(|newest| {
                let content = self
                    .hooks
                    .content_at_failure(newest, operation, &errors, is_given_up, &now);
                Ok(Some(status::with_content(
                    last_errors::keep_left_behind(newest, patch.clone()),
                    content.filter(|_| !is_wait),
                )))
            })
            .await?;
        Err(error)
    }

    /// The only read of a pass without concurrent writers. The cache may lag behind the last write of this
    /// controller, and a decision on an old status could run a flow twice.
    async fn read(&self, shoot: &Shoot) -> Result<Arc<Shoot>> {
        Ok(Arc::new(self.api(shoot).get(&shoot.name_any()).await?))
    }

    fn api(&self, shoot: &Shoot) -> Api<Shoot> {
        self.context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default())
    }
}
