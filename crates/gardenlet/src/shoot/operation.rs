//! One run of one flow for one Shoot: facts, graph, progress, outcome.

use std::sync::Arc;

use api::{
    gardencore::Shoot,
    meta::{LastError, LastOperationType as Type},
};
use flow::{Cause, Flow, FlowError};
use parts::{
    AppliedTerms, ClaimSteps, Cluster, Etcds, Facts, FenceClock, KubeApiserver, NamespaceState, OwnerRecord,
    ProvenEnd, SubnetIsolation,
};
use placement::Operation;
use runtime::{Error, Result, clock};

use super::{
    delete_flow, force_delete_flow, migrate_flow,
    pace::Pace,
    progress::{self, Ended},
    reconcile_flow,
    record::Record,
    right::{self, PermitRefusal},
    sleep_flow, status, zone_budget,
    zone_steps::Zones,
    zone_watch,
};
use crate::{
    context::Context,
    seed::in_use::{self, SeedUse},
};

/// The progress of a failed operation, and the errors.
pub(super) struct Failure {
    /// Percent.
    pub(super) progress: i32,
    /// At most one error for each task.
    pub(super) errors: Vec<LastError>,
    /// The error whose class decides about the next attempt.
    pub(super) error: Error,
    /// The text of an ownership loss: this epoch has no next attempt.
    pub(super) lost: Option<String>,
    /// The operation was stopped because the user changed the zone to isolate.
    pub(super) called_off: bool,
}

/// Runs the flow of an operation. `traveller`: the Shoot with the approved spec, which the flow reads.
/// `fence`: the fence of the epoch. `proven_end`: receives the proof of the final snapshot of a migration.
pub(super) async fn run(
    context: &Context,
    traveller: &Arc<Shoot>,
    operation: Operation,
    (fence, proven_end): (FenceClock, ProvenEnd),
    record: &Record<'_>,
    pace: &Pace,
) -> Result<(), Failure> {
    if operation.deploys() {
        let recorded = in_use::record(context, SeedUse::InUse).await;
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
    facts.fence = fence;
    facts.proven_end = proven_end;
    zone_budget::begin(&mut facts, &context.config.zone_id_labels, record)
        .await
        .map_err(|error| outside(zone_watch::TASK, error))?;
    let ended = Box::pin(right::run_under_owner_permit(facts, |facts| {
        // Large, and moved on its way.
        Box::pin(async move { Box::pin(act(&facts, operation, record, pace)).await })
    }));
    ended.await.unwrap_or_else(|refusal| {
        Err(match refusal {
            PermitRefusal::Lost(sentence) => Failure {
                lost: Some(sentence.clone()),
                ..outside(status::OWNERSHIP, Error::NotOwner(sentence))
            },
            PermitRefusal::NotNow(error) => outside(status::OWNERSHIP, error),
        })
    })
}

async fn act(facts: &Facts, operation: Operation, record: &Record<'_>, pace: &Pace) -> Result<(), Failure> {
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
    let flow = build(facts, operation)
        .await
        .map_err(|error| outside("Looking at what is there", error))?;
    let work = Box::pin(observed(pace, operation.type_(), flow, record));
    let done = Box::pin(zone_watch::during(facts, operation, record, work)).await;
    done.map_err(|error| Failure {
        called_off: zone_watch::is_changed(&error),
        ..outside(zone_watch::TASK, error)
    })??;
    if operation.deploys() {
        AppliedTerms::record(facts)
            .await
            .map_err(|error| outside(status::OWNER_TERMS, error))?;
    }
    if operation.deletes() {
        Cluster::destroy(facts)
            .await
            .map_err(|error| outside(status::CLUSTER_DELETION, error))?;
    }
    Ok(())
}

/// Looks at what is there and builds the flow of an operation.
pub async fn build(f: &Facts, operation: Operation) -> Result<Flow<'_, Error>> {
    let is_active = f.namespace_state().await? == NamespaceState::Active;
    // Of a shoot that sleeps it is there and does not run.
    let is_up = is_active && KubeApiserver::exists(f).await?;
    let owner_record = OwnerRecord::plan(f).await?;
    Ok(match operation {
        Operation::Migrate => migrate_flow::build(
            f,
            migrate_flow::MigrateInputs {
                control_plane_is_up: is_up,
                keeps_phases: owner_record.may_be_there(),
            },
        ),
        Operation::Delete => delete_flow::build(
            f,
            delete_flow::DeleteInputs {
                namespace_is_active: is_active,
                control_plane_is_up: is_up,
                control_plane_may_sleep: f.may_sleep(),
                owner_record: is_active && owner_record.may_be_there(),
                zone_is_closed: is_active && SubnetIsolation::is_there(f).await?,
            },
        ),
        Operation::ForceDelete => force_delete_flow::build(f),
        Operation::Create | Operation::Reconcile | Operation::Restore => {
            let restoring = operation == Operation::Restore;
            let has_backup = f.has_backup();
            let copy_is_required = restoring && f.is_copy_of_backups_required().await?;
            let claim = ClaimSteps::plan(f, copy_is_required)?;
            let zones = Zones::plan(f, is_active, restoring).await?;
            if f.is_to_sleep() && sleeps(f, is_active).await? {
                let given = sleep_flow::SleepInputs {
                    restoring,
                    has_backup,
                    copy_is_required,
                    etcd_is_awake: is_active && Etcds::are_awake(f).await?,
                    owner_record,
                    claim,
                    zones,
                };
                return Ok(sleep_flow::build(f, given));
            }
            reconcile_flow::build(
                f,
                reconcile_flow::ReconcileInputs {
                    restoring,
                    has_backup,
                    copy_is_required,
                    sleeps: f.is_to_sleep(),
                    owner_record,
                    claim,
                    zones,
                },
            )
        }
    })
}

/// Whether no machine is left, and the API need not be woken: the whole shoot slept before this, here or on
/// the seed that it comes from; or the API was put to sleep here, which happens after the last machine has
/// gone.
async fn sleeps(f: &Facts, namespace_is_active: bool) -> Result<bool> {
    Ok(placement::is_asleep(&f.shoot) || (namespace_is_active && KubeApiserver::sleeps(f).await?))
}

/// Runs a flow under the eyes of the Shoot's users.
async fn observed(
    pace: &Pace,
    type_: Type,
    flow: Flow<'_, Error>,
    record: &Record<'_>,
) -> Result<(), Failure> {
    let ended = progress::run_and_report(pace, type_, flow, record).await;
    let Ended { outcome, percent } = ended.map_err(|error| outside("Writing progress", error))?;
    outcome.map(drop).map_err(|error| from_flow(&error, percent))
}

async fn exists(f: &Facts) -> Result<bool, Failure> {
    let state = f
        .namespace_state()
        .await
        .map_err(|error| outside("Retrieve Shoot namespace", error))?;
    Ok(state != NamespaceState::Missing)
}

/// A failure before or after the flow.
pub(super) fn outside(task: &str, error: Error) -> Failure {
    Failure {
        progress: 0,
        errors: vec![status::single_error(task, &error, &clock::now_k8s())],
        error,
        lost: None,
        called_off: false,
    }
}

fn from_flow(error: &FlowError<Error>, progress: i32) -> Failure {
    let errors = status::last_errors(error, &clock::now_k8s());
    Failure {
        progress,
        errors,
        error: class_of(error),
        lost: None,
        called_off: false,
    }
}

/// The error of a flow keeps the class of what happened: it ended because this seed is not the owner any
/// more; it failed; or all that stands in the way is that something is awaited.
pub(super) fn class_of(error: &FlowError<Error>) -> Error {
    let causes = error.failures.iter().map(|failure| match &failure.cause {
        Cause::Error(error) => Some(error),
        // Having waited in vain for its whole time is a failure, unless the last try says whose.
        Cause::TimedOut { last, .. } => last.as_ref().filter(|last| !last.is_retryable()),
    });
    let mut waits = None;
    let mut codes = Vec::new();
    let mut all_wait = true;
    for cause in causes {
        match cause {
            Some(Error::NotOwner(why)) => return Error::NotOwner(why.clone()),
            Some(Error::NotReady { after, .. }) => waits = waits.min(Some(*after)).or(Some(*after)),
            Some(Error::Config { codes: more, .. }) => {
                all_wait = false;
                codes.extend_from_slice(more);
            }
            _ => all_wait = false,
        }
    }
    let message = error.to_string();
    match waits {
        Some(after) if all_wait => Error::NotReady { after, why: message },
        _ if !codes.is_empty() => Error::Config { codes, message },
        _ => Error::Transient(message),
    }
}
