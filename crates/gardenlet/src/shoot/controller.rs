//! Watches Shoots and runs the step that [`dispatch`] decides for each.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, condition::READY_FOR_MIGRATION, finalizer::GARDENER},
    gardencore::Shoot,
    meta::{ConditionStatus, LastOperationType as Type},
};
use kube::{Api, ResourceExt, runtime::watcher};
use runtime::{Cluster, Error, Events, Next, Reconciler, Result, clock, finalizer, runner};
use serde_json::Value;
use tracing::info;

use super::{
    dispatch::{self, Periods, Step},
    operation::{self, Failure},
    status::{self, Writer},
};
use crate::context::{Context, MANAGER};

/// Pause before a Shoot that waits for its destination is looked at again; the constraint's change wakes it earlier.
const WAIT_FOR_DESTINATION: Duration = Duration::from_secs(60);

/// Runs the shoot controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let garden = context.garden.clone();
    let controller = runner::controller(garden.all::<Shoot>(), watcher::Config::default(), wakes);
    let settings = context.runner();
    let api_of = move |shoot: &Shoot| garden.namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
    runner::run(
        controller,
        api_of,
        Arc::new(ShootReconciler { context }),
        settings,
    )
    .await;
}

/// What of a Shoot wakes the controller: not its own writes of progress and errors.
fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    runner::fingerprint((
        shoot.metadata.generation,
        shoot.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        shoot.annotations(),
        status.and_then(|status| status.seed_name.as_deref()),
        ready_for_migration(shoot).map(|(ready, message)| (ready, message.to_owned())),
    ))
}

struct ShootReconciler {
    context: Arc<Context>,
}

impl Reconciler<Shoot> for ShootReconciler {
    const NAME: &'static str = "shoot";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        dispatch::responsible_seed(shoot) == Some(&self.context.seed_name)
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        finalizer::ensure(&self.api(&shoot), shoot.as_ref(), GARDENER).await?;
        self.step(shoot).await
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        if !shoot.finalizers().iter().any(|finalizer| finalizer == GARDENER) {
            return Ok(Next::Change);
        }
        self.step(shoot).await
    }
}

impl ShootReconciler {
    async fn step(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let context = &self.context;
        let shoot = self.latest(&shoot).await?;
        let periods = Periods {
            sync: context.config.shoot_sync_period,
        };
        let step = dispatch::decide(&shoot, &context.seed_name, periods, clock::now());
        let Some(type_) = operation::type_of(step) else {
            return Ok(if let Step::Idle(rest) = step {
                Next::After(rest)
            } else {
                Next::Change
            });
        };
        if step == Step::Migrate
            && let Err(error) = preflight(&shoot)
        {
            self.tell_obstacle(&shoot).await?;
            return Err(error);
        }
        let shoot = self.take_operation_annotation(shoot).await?;
        // A user may have taken the move back since it was read: then this write fails, and the new object is decided on.
        let started = status::started(&shoot, &writer(context), type_, &clock::now_k8s());
        let shoot = Arc::new(
            MANAGER
                .merge_status_of(&self.api(&shoot), shoot.as_ref(), &started)
                .await?,
        );
        let events = &context.garden_events;
        events
            .normal(
                shoot.as_ref(),
                start_reason(type_),
                &format!("{type_} of Shoot cluster started"),
            )
            .await;
        match operation::run(context, &shoot, step, type_).await {
            Ok(()) => self.succeeded(&shoot, step, type_, events).await,
            Err(failure) => self.failed(&shoot, type_, failure).await,
        }
    }

    async fn succeeded(&self, shoot: &Shoot, step: Step, type_: Type, events: &Events) -> Result<Next> {
        let context = &self.context;
        let patch = status::succeeded(shoot, type_, clock::now_k8s());
        write_status(context, shoot, &patch).await?;
        let note = patch["lastOperation"]["description"].as_str().unwrap_or_default();
        events.normal(shoot, success_reason(type_), note).await;
        info!(shoot = shoot.name_any(), operation = %type_, "operation succeeded");
        operation::after_recorded(context, shoot, step).await?;
        if matches!(step, Step::Delete | Step::ForceDelete) {
            finalizer::remove(&self.api(shoot), &*self.latest(shoot).await?, GARDENER).await?;
            return Ok(Next::Change);
        }
        // A migration is over here; anything else is looked at again after the sync period.
        Ok(if step == Step::Migrate {
            Next::Change
        } else {
            Next::After(context.config.shoot_sync_period)
        })
    }

    async fn failed(&self, shoot: &Shoot, type_: Type, failure: Failure) -> Result<Next> {
        let context = &self.context;
        let Failure {
            progress,
            errors,
            error,
        } = failure;
        let retry = context.config.retry_duration;
        let patch = status::failed(shoot, type_, progress, &errors, retry, clock::now_k8s());
        write_status(context, shoot, &patch).await?;
        Err(error)
    }

    /// A move that cannot begin changes nothing (I8) but what is told of it: users look for errors in `lastErrors`.
    async fn tell_obstacle(&self, shoot: &Shoot) -> Result<()> {
        let constraint = shoot
            .status
            .as_ref()
            .and_then(|status| status.constraint(READY_FOR_MIGRATION));
        let obstacle =
            constraint.and_then(|constraint| status::move_cannot_begin(shoot, constraint, &clock::now_k8s()));
        if let Some(patch) = obstacle {
            write_status(&self.context, shoot, &patch).await?;
        }
        Ok(())
    }

    /// The cache may lag behind our own last write; deciding on an old status could run a flow twice.
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

/// Merges into the status of a Shoot and returns what the garden has now.
pub(super) async fn write_status(context: &Context, shoot: &Shoot, patch: &Value) -> Result<Shoot> {
    let api = context
        .garden
        .namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
    MANAGER.merge_status(&api, &shoot.name_any(), patch).await
}

/// R7-46, I8: nothing is touched until the destination was confirmed.
fn preflight(shoot: &Shoot) -> Result<()> {
    match ready_for_migration(shoot) {
        Some((true, _)) => Ok(()),
        Some((false, message)) => Err(Error::not_ready(
            WAIT_FOR_DESTINATION,
            format!("destination Seed is not available to host the control plane: {message}"),
        )),
        None => Err(Error::not_ready(
            WAIT_FOR_DESTINATION,
            "waiting for confirmation that destination Seed is available (constraint ReadyForMigration)",
        )),
    }
}

fn ready_for_migration(shoot: &Shoot) -> Option<(bool, &str)> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some((
        constraint.status == ConditionStatus::True,
        constraint.message.as_str(),
    ))
}

fn writer(context: &Context) -> Writer {
    Writer {
        id: context.config.instance_id.clone(),
        name: "gardenlet",
        version: env!("CARGO_PKG_VERSION"),
        seed: context.seed_name.clone(),
    }
}

fn start_reason(type_: Type) -> &'static str {
    match type_ {
        Type::Migrate => "Migrating",
        Type::Restore => "Restoring",
        Type::Delete => "Deleting",
        _ => "Reconciling",
    }
}

fn success_reason(type_: Type) -> &'static str {
    match type_ {
        Type::Migrate => "MigrationPrepared",
        Type::Restore => "Restored",
        Type::Delete => "Deleted",
        _ => "Reconciled",
    }
}
