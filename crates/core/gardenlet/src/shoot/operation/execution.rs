//! A single run of a flow for a Shoot: facts, graph, progress, outcome.

use std::{sync::Arc, time::Duration};

use api::gardencore::Shoot;
use parts::{
    AppliedTerms, ClaimSteps, Cluster, Etcds, Facts, FenceClock, HandOverVerdict, KubeApiserver,
    MoveFindings, NamespaceState, OpenedEpoch, OwnerRecord,
};
use placement::Operation;
use runtime::{Error, Result};

use super::{
    failure::{Failure, outside},
    pace::Pace,
    progress, seed_choice, status,
};
use crate::{
    context::Context,
    move_trace::OperationTrace,
    seed::without_shoots::{self, SeedUse},
    shoot::{
        flows::{delete_flow, force_delete_flow, graph::ShootFlow, migrate_flow, reconcile_flow, sleep_flow},
        operation_hooks::{OperationHooks, PlanSteps},
        ownership::{
            owner_permit::{self, PermitRefusal},
            status_writer::StatusWriter,
        },
    },
};

/// Requeue interval after a doubted hand-over. Long enough for the cache to receive the new record.
const REQUEUE_AFTER_DOUBT: Duration = Duration::from_secs(1);

/// Runs the flow of an operation. `traveller`: the Shoot with the approved spec, which the flow reads.
/// `findings`: has the fence of the epoch, and receives the proof of the final snapshot of a migration.
pub(crate) async fn run(
    context: &Context,
    traveller: &Arc<Shoot>,
    operation: Operation,
    findings: &MoveFindings,
    status_writer: &StatusWriter<'_>,
    hooks: &dyn OperationHooks,
    pace: &Pace,
) -> Result<(), Failure> {
    if operation.deploys() {
        let recorded = without_shoots::record(context, SeedUse::InUse).await;
        recorded.map_err(|error| outside("Collecting facts", error))?;
    }
    let mut facts = Facts::new(
        context.garden.clone(),
        context.seed.clone(),
        Arc::clone(&context.settings),
        &context.seed_name,
        Arc::clone(traveller),
        operation,
    )
    .await
    .map_err(|error| outside("Collecting facts", error))?;
    let checked = seed_choice::check(&facts).await;
    checked.map_err(|error| outside("Checking taints and selectors of the seed", error))?;
    hooks.begin(&mut facts, status_writer).await?;
    let trace = context
        .move_traces
        .operation(traveller, operation, &context.seed_name);
    let trace = trace.as_ref();
    let ended = Box::pin(owner_permit::run_under_owner_permit(facts, |facts| {
        // Boxed: the future is large, and is moved several times.
        Box::pin(act(facts, findings, status_writer, hooks, pace, trace))
    }));
    ended.await.unwrap_or_else(|refusal| {
        Err(match refusal {
            PermitRefusal::Lost(sentence) => Failure {
                lost: Some(sentence.clone()),
                ..outside(status::OWNERSHIP, Error::not_owner(sentence))
            },
            PermitRefusal::NotNow(error) => outside(status::OWNERSHIP, error),
        })
    })
}

async fn act(
    facts: Facts,
    findings: &MoveFindings,
    status_writer: &StatusWriter<'_>,
    hooks: &dyn OperationHooks,
    pace: &Pace,
    trace: Option<&OperationTrace>,
) -> Result<(), Failure> {
    let (facts, operation) = (&facts, facts.operation);
    let mut built = None;
    if operation == Operation::Restore {
        // Before the Cluster, from which providers learn whether the source was fenced. The question may take
        // seconds, and the reads in the seed do not wait for the answer.
        let (confirmed, flow) = tokio::join!(
            Box::pin(confirm_hand_over(facts, &findings.claim.fence, status_writer)),
            Box::pin(build(facts, findings, hooks.steps())),
        );
        confirmed?;
        built = Some(flow);
    }
    if !operation.deletes() {
        // A move deletes Etcd etcd-main, so the note comes first.
        OpenedEpoch::keep(&facts.residency, &facts.shoot)
            .await
            .map_err(|error| outside(status::OWNERSHIP, error))?;
    }
    if operation.deploys() {
        AppliedTerms::withdraw_other(facts)
            .await
            .map_err(|error| outside("Withdrawing owner terms that no longer apply", error))?;
    }
    if !operation.deletes() || exists(facts).await? {
        Cluster::sync(facts)
            .await
            .map_err(|error| outside("Syncing Cluster resource", error))?;
    }
    let flow = match built {
        Some(flow) => flow,
        None => build(facts, findings, hooks.steps()).await,
    };
    let flow = flow.map_err(|error| outside("Looking at what is there", error))?;
    let flow = match trace {
        Some(trace) => trace.observe(flow),
        None => flow.into_flow(),
    };
    let work = Box::pin(progress::run_and_report(
        pace,
        operation.type_(),
        flow,
        status_writer,
    ));
    hooks
        .supervise_flow(facts, operation, status_writer, work)
        .await?;
    if operation.deploys() {
        AppliedTerms::record(facts)
            .await
            .map_err(|error| outside(status::OWNER_TERMS, error))?;
    }
    if operation.deletes() {
        Cluster::destroy(&facts.residency)
            .await
            .map_err(|error| outside(status::CLUSTER_DELETION, error))?;
    }
    Ok(())
}

/// Refuses to restore on a hand-over that the owner record contradicts. The record of the Shoot has changed
/// then, and the next attempt fences the source.
async fn confirm_hand_over(
    facts: &Facts,
    fence: &FenceClock,
    status_writer: &StatusWriter<'_>,
) -> Result<(), Failure> {
    let asked = ClaimSteps::confirm_hand_over(facts, fence).await;
    match asked.map_err(|error| outside(status::OWNERSHIP, error))? {
        HandOverVerdict::Confirmed => Ok(()),
        HandOverVerdict::Doubted(sentence) => {
            status_writer.warn("HandOverNotConfirmed", &sentence).await;
            let again = Error::not_ready(REQUEUE_AFTER_DOUBT, sentence);
            Err(outside(status::OWNERSHIP, again))
        }
    }
}

/// Reads the present state in the seed, and builds the flow of the operation.
pub(crate) async fn build<'a>(
    f: &'a Facts,
    findings: &'a MoveFindings,
    planner: &dyn PlanSteps,
) -> Result<ShootFlow<'a>> {
    let operation = f.operation;
    let is_active = f.residency.namespace_state().await? == NamespaceState::Active;
    // kube-apiserver of a hibernated shoot exists with zero replicas.
    let is_up = is_active && KubeApiserver::exists(&f.residency).await?;
    let owner_record = OwnerRecord::plan(f).await?;
    let flow = match operation {
        Operation::Migrate => migrate_flow::build(
            f,
            &findings.end,
            migrate_flow::MigrateInputs {
                control_plane_is_up: is_up,
                keeps_phases: owner_record.may_be_there(),
            },
        ),
        Operation::Delete => {
            let steps = planner.plan(f, operation, is_active).await?;
            delete_flow::build(
                f,
                delete_flow::DeleteInputs {
                    namespace_is_active: is_active,
                    control_plane_is_up: is_up,
                    control_plane_may_sleep: f.may_sleep(),
                    owner_record: is_active && owner_record.may_be_there(),
                    hooks: &*steps,
                },
            )
        }
        Operation::ForceDelete => force_delete_flow::build(f),
        Operation::Create | Operation::Reconcile | Operation::Restore => {
            let restoring = operation == Operation::Restore;
            let has_backup = f.has_backup();
            let copy_is_required = restoring && f.is_copy_of_backups_required().await?;
            let claim = ClaimSteps::plan(f, copy_is_required)?;
            let steps = planner.plan(f, operation, is_active).await?;
            let hooks = &*steps;
            if f.is_to_sleep() && sleeps(f, is_active).await? {
                let given = sleep_flow::SleepInputs {
                    restoring,
                    has_backup,
                    copy_is_required,
                    etcd_is_awake: is_active && Etcds::are_awake(&f.residency).await?,
                    owner_record,
                    claim,
                    hooks,
                };
                return Ok(sleep_flow::build(f, &findings.claim, given));
            }
            reconcile_flow::build(
                f,
                &findings.claim,
                reconcile_flow::ReconcileInputs {
                    restoring,
                    has_backup,
                    copy_is_required,
                    sleeps: f.is_to_sleep(),
                    owner_record,
                    claim,
                    hooks,
                },
            )
        }
    };
    Ok(flow)
}

/// Whether no machine is left, so that the API need not wake. Either the whole shoot sleeps, in this seed or
/// in the source seed, or the API sleeps in this seed: the API stops after the last machine is gone.
async fn sleeps(f: &Facts, namespace_is_active: bool) -> Result<bool> {
    Ok(
        placement::is_asleep(&f.shoot)
            || (namespace_is_active && KubeApiserver::sleeps(&f.residency).await?),
    )
}

async fn exists(f: &Facts) -> Result<bool, Failure> {
    let state = f
        .residency
        .namespace_state()
        .await
        .map_err(|error| outside("Retrieve Shoot namespace", error))?;
    Ok(state != NamespaceState::Missing)
}
