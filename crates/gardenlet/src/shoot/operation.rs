//! One run of one flow for one Shoot: facts, graph, progress, outcome.

use std::sync::Arc;

use api::{
    gardencore::Shoot,
    meta::{LastError, LastOperationType as Type},
};
use botanist::{Botanist, NamespaceState, Operation as BotanistOperation};
use flow::{Flow, FlowError, Progress};
use runtime::{Cluster, Error, Result, clock, wait};
use tokio::sync::watch;

use super::{delete_flow, dispatch::Step, force_delete_flow, migrate_flow, reconcile_flow, status};
use crate::{context::Context, shoot_state};

/// How far a flow got and what stood in the way.
pub(super) struct Failure {
    /// Percent.
    pub(super) progress: i32,
    /// One a task.
    pub(super) errors: Vec<LastError>,
    /// The class that decides about the next try.
    pub(super) error: Error,
}

/// The operation that a step is recorded as.
pub(super) fn type_of(step: Step) -> Option<Type> {
    match step {
        Step::Reconcile(type_) => Some(type_),
        Step::Migrate => Some(Type::Migrate),
        Step::Delete | Step::ForceDelete => Some(Type::Delete),
        Step::NotResponsible | Step::Idle(_) | Step::GivenUp => None,
    }
}

/// Runs the flow of a step.
pub(super) async fn run(
    context: &Context,
    shoot: &Arc<Shoot>,
    step: Step,
    type_: Type,
) -> Result<(), Failure> {
    let botanist = Botanist::new(
        context.garden.clone(),
        context.seed.clone(),
        Arc::clone(&context.settings),
        &context.seed_name,
        Arc::clone(shoot),
        botanist_operation(type_),
    )
    .await
    .map_err(|error| outside("Create botanist", error))?;
    if !matches!(step, Step::Delete | Step::ForceDelete) || exists(&botanist).await? {
        botanist
            .sync_cluster()
            .await
            .map_err(|error| outside("Syncing Cluster resource", error))?;
    }
    let flow = build(&botanist, step, type_)
        .await
        .map_err(|error| outside("Collecting facts", error))?;
    observed(context, shoot, type_, flow).await?;
    finish(&botanist, step)
        .await
        .map_err(|error| outside("Deleting Cluster resource", error))
}

/// What remains after the outcome was recorded. A crash between the two is completed by the next run.
pub(super) async fn after_recorded(context: &Context, shoot: &Shoot, step: Step) -> Result<()> {
    // The state is needed until the restore is *recorded* as succeeded: a crash in between must be able to restore again.
    if matches!(step, Step::Reconcile(_)) {
        shoot_state::delete_of(&context.garden, shoot).await
    } else {
        Ok(())
    }
}

/// Looks at what is there and builds the flow of a step.
pub async fn build(b: &Botanist, step: Step, type_: Type) -> Result<Flow<'_, Error>> {
    let is_active = b.namespace_state().await? == NamespaceState::Active;
    let is_up = is_active && b.kube_apiserver_exists().await?;
    Ok(match step {
        Step::Migrate => {
            let entry = b.core_backup_entry().await?;
            let is_ours = entry.is_some_and(|entry| entry.spec.seed_name == b.seed_object.metadata.name);
            let facts = migrate_flow::Facts {
                namespace_is_active: is_active,
                control_plane_is_up: is_up,
                snapshot_is_due: is_active && is_ours,
            };
            migrate_flow::build(b, facts)
        }
        Step::Delete => {
            let facts = delete_flow::Facts {
                namespace_is_active: is_active,
                control_plane_is_up: is_up,
            };
            delete_flow::build(b, facts)
        }
        Step::ForceDelete => force_delete_flow::build(b),
        _ => {
            let restoring = type_ == Type::Restore;
            let facts = reconcile_flow::Facts {
                restoring,
                has_backup: b.has_backup(),
                copy_is_required: restoring && b.is_copy_of_backups_required().await?,
            };
            reconcile_flow::build(b, facts)
        }
    })
}

/// Runs a flow and writes its progress. Writes are coalesced: a slow garden delays the progress, never the flow.
async fn observed(
    context: &Context,
    shoot: &Shoot,
    type_: Type,
    flow: Flow<'_, Error>,
) -> Result<(), Failure> {
    let (sender, mut receiver) = watch::channel(None::<Progress>);
    let work = async move {
        flow.run(|progress| {
            sender.send_replace(Some(progress));
        })
        .await
    };
    let writer = async {
        let mut percent = 0;
        while receiver.changed().await.is_ok() {
            let Some(progress) = receiver.borrow_and_update().clone() else {
                continue;
            };
            percent = i32::from(progress.percent);
            let patch = status::progressed(type_, &progress, clock::now_k8s());
            if let Err(error) = super::controller::write_status(context, shoot, &patch).await {
                tracing::debug!(%error, "progress could not be written");
            }
        }
        percent
    };
    let (outcome, progress) = tokio::join!(work, writer);
    outcome.map(|_| ()).map_err(|error| from_flow(&error, progress))
}

/// The Cluster object goes last, since extension controllers read it until then.
async fn finish(b: &Botanist, step: Step) -> Result<()> {
    if matches!(step, Step::Migrate | Step::Delete | Step::ForceDelete) {
        b.delete_cluster().await?;
        let clusters = b.seed.cluster_wide::<api::extensions::Cluster>();
        wait::until_gone(&clusters, &b.namespace, std::time::Duration::from_secs(30)).await?;
    }
    Ok(())
}

async fn exists(b: &Botanist) -> Result<bool, Failure> {
    let state = b
        .namespace_state()
        .await
        .map_err(|error| outside("Retrieve Shoot namespace", error))?;
    Ok(state != NamespaceState::Missing)
}

fn botanist_operation(type_: Type) -> BotanistOperation {
    match type_ {
        Type::Restore => BotanistOperation::Restore,
        Type::Migrate => BotanistOperation::Migrate,
        Type::Delete => BotanistOperation::Delete,
        _ => BotanistOperation::Reconcile,
    }
}

/// A failure before or after the flow.
pub(super) fn outside(task: &str, error: Error) -> Failure {
    Failure {
        progress: 0,
        errors: vec![status::single_error(task, &error, &clock::now_k8s())],
        error,
    }
}

fn from_flow(error: &FlowError<Error>, progress: i32) -> Failure {
    let errors = status::last_errors(error, &clock::now_k8s());
    Failure {
        progress,
        errors,
        error: Error::transient(error.to_string()),
    }
}
