//! One Shoot on its way through one of the flows.

use std::sync::Arc;

use api::constants::CONFIRMATION_FORCE_DELETION;
use api::gardencore::Shoot;
use api::meta::LastOperationType as Type;
use botanist::{Botanist, Operation};
use flow::drill::{Moment, Scenario};
use flow::{Cause, FlowError, Interceptor, Report, TaskFailure, Undisturbed};
use gardenlet::shoot::dispatch::Step;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use runtime::{Error, Garden, Result, Seed};
use serde_json::{Value, json};

use crate::evidence::Evidence;
use crate::garden::{self, PROJECT};
use crate::refusal;
use crate::seed::RunningSeed;
use crate::world::World;

/// The flow that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drilled {
    Create,
    Migrate,
    Restore,
    Delete,
    /// While the cloud and the DNS server refuse.
    ForceDelete,
}

impl Drilled {
    /// Whether nothing of the Shoot is wanted any more.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::ForceDelete)
    }
}

/// A Shoot of its own. It is created on the first seed and moves to the second.
pub struct ShootScenario<'w> {
    pub world: &'w World,
    pub drilled: Drilled,
    pub name: String,
    /// What must survive; known once the Shoot was created.
    pub evidence: Option<Evidence>,
}

impl<'w> ShootScenario<'w> {
    pub fn new(world: &'w World, drilled: Drilled) -> Self {
        Self {
            world,
            drilled,
            name: world.shoot_name(),
            evidence: None,
        }
    }

    pub fn shoots(&self) -> Api<Shoot> {
        Api::namespaced(self.world.garden(), PROJECT)
    }

    /// Namespace in the seed.
    pub fn namespace(&self) -> String {
        format!("shoot--dev--{}", self.name)
    }

    /// The seed on which the drilled flow runs.
    pub fn place(&self) -> &'w RunningSeed {
        &self.world.seeds[usize::from(self.drilled == Drilled::Restore)]
    }

    /// As its user does, who asks for force where nothing else helps.
    async fn delete(&self) -> Result<()> {
        let mut metadata = json!({"finalizers": ["gardener"]});
        if self.drilled == Drilled::ForceDelete {
            refusal::begin(self).await?;
            metadata["annotations"] = json!({(CONFIRMATION_FORCE_DELETION): "true"});
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        self.shoots().delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    async fn status(&self, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.shoots()
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Runs a flow as the gardenlet does.
    async fn flow(
        &self,
        which: Drilled,
        interceptor: &dyn Interceptor<Error>,
    ) -> Result<Report, FlowError<Error>> {
        let seed = &self.world.seeds[usize::from(which == Drilled::Restore)];
        let (step, type_, operation) = match which {
            Drilled::Create => (Step::Reconcile(Type::Create), Type::Create, Operation::Reconcile),
            Drilled::Migrate => (Step::Migrate, Type::Migrate, Operation::Migrate),
            Drilled::Restore => (Step::Reconcile(Type::Restore), Type::Restore, Operation::Restore),
            Drilled::Delete => (Step::Delete, Type::Delete, Operation::Delete),
            Drilled::ForceDelete => (Step::ForceDelete, Type::Delete, Operation::Delete),
        };
        let botanist = Box::pin(self.botanist(seed, operation))
            .await
            .map_err(|error| around("Create botanist", error))?;
        botanist
            .sync_cluster()
            .await
            .map_err(|error| around("Syncing Cluster resource", error))?;
        let flow = gardenlet::shoot::build(&botanist, step, type_)
            .await
            .map_err(|error| around("facts", error))?;
        let report = flow.run_with(|_| (), interceptor).await?;
        if which.deletes() || which == Drilled::Migrate {
            botanist
                .delete_cluster()
                .await
                .map_err(|error| around("Deleting Cluster resource", error))?;
        }
        Ok(report)
    }

    pub async fn botanist(&self, seed: &RunningSeed, operation: Operation) -> Result<Botanist> {
        Botanist::new(
            Garden::new(self.world.garden()),
            Seed::new(seed.client()),
            seed.settings.clone(),
            seed.name,
            Arc::new(self.shoots().get(&self.name).await?),
            operation,
        )
        .await
    }

    async fn settled(&self, which: Drilled) -> Result<()> {
        self.flow(which, &Undisturbed)
            .await
            .map(|_| ())
            .map_err(|error| Error::transient(error.to_string()))
    }
}

/// A failure outside of the flow.
fn around(doing: &'static str, error: Error) -> FlowError<Error> {
    let failure = TaskFailure {
        task: doing,
        cause: Cause::Error(error),
        attempts: 1,
    };
    FlowError {
        flow: "around the flow",
        failures: vec![failure],
        report: Report::default(),
    }
}

impl Scenario for ShootScenario<'_> {
    type Error = Error;

    fn injected(&self, message: String) -> Error {
        Error::transient(message)
    }

    async fn reset(&mut self) -> Result<()> {
        garden::apply(&self.world.garden(), garden::shoot(&self.name))
            .await
            .map_err(transient)?;
        let uid = self.shoots().get(&self.name).await?.uid();
        self.status(json!({"technicalID": self.namespace(), "uid": uid, "seedName": "seed-a"}))
            .await?;
        if self.drilled == Drilled::Create {
            return Ok(());
        }
        self.settled(Drilled::Create).await?;
        refusal::back_up(self).await?;
        self.evidence = Some(Evidence::collect(self, &self.world.seeds[0]).await?);
        if self.drilled.deletes() {
            return self.delete().await;
        }
        let destination = Patch::Merge(json!({"spec": {"seedName": "seed-b"}}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &destination)
            .await?;
        if self.drilled == Drilled::Restore {
            self.settled(Drilled::Migrate).await?;
            self.status(json!({"seedName": "seed-b"})).await?;
        }
        Ok(())
    }

    async fn run(&mut self, interceptor: &dyn Interceptor<Error>) -> Result<Report, FlowError<Error>> {
        self.flow(self.drilled, interceptor).await
    }

    async fn check(&mut self, moment: Moment) -> Result<()> {
        match moment {
            Moment::Disturbed(_) => self.check_always().await,
            Moment::Finished(_) => self.check_end().await,
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // given to map_err
pub fn transient(error: anyhow::Error) -> Error {
    Error::transient(format!("{error:#}"))
}
