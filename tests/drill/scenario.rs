//! A Shoot on the way through a flow.

use std::ops::Deref;

use api::constants::CONFIRMATION_FORCE_DELETION;
use flow::{Cause, FlowError, Interceptor, Report, TaskFailure, Undisturbed};
use flow_drill::{Moment, Scenario};
use gardenlet::shoot::flows::leave_flow;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use parts::{Cluster, MoveFindings, ShootState};
use placement::Operation;
use runtime::{Error, Result};
use serde_json::{Value, json};

use crate::evidence::Evidence;
use crate::garden;
use crate::machines;
use crate::refusal;
use crate::seed::RunningSeed;
use crate::sidecar::LAST_REVISION;
use crate::subject::{Subject, transient};
use crate::world::{DOMAIN, World};
use crate::zones;

/// The flow that is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drilled {
    Create,
    Migrate,
    /// The source revives the shoot after a move that was nearly handed over: in a new epoch.
    CancelMove,
    /// The seed keeps the shoot in a new epoch, after the deletion of the owner record.
    Renew,
    Restore,
    /// The destination takes over a shoot whose source is silent, with all objects of the source left there
    /// (R17-20..31).
    TakeOver,
    /// The source cleans up after the hand-over.
    Leave,
    Hibernate,
    /// The destination takes over a hibernated shoot. At the end, the shoot wakes up there.
    RestoreAsleep,
    Delete,
    /// The cloud and the DNS server refuse, and the cloud keeps the instance of a machine.
    ForceDelete,
    /// A zone is isolated (RZ-10, RZ-11).
    Failover,
    /// The zone is taken back (RZ-12, RZ-22).
    Failback,
    /// The user requests a second zone while a zone is isolated.
    AnotherZone,
    /// The destination restores a shoot with an isolated zone.
    RestoreIsolated,
    /// As `RestoreIsolated`, with a silent source.
    TakeOverIsolated,
    /// A shoot with an isolated zone is deleted (RZ-14).
    DeleteIsolated,
}

impl Drilled {
    pub const ALL: [Self; 17] = [
        Self::Create,
        Self::Migrate,
        Self::CancelMove,
        Self::Renew,
        Self::Restore,
        Self::TakeOver,
        Self::Leave,
        Self::Hibernate,
        Self::RestoreAsleep,
        Self::Delete,
        Self::ForceDelete,
        Self::Failover,
        Self::Failback,
        Self::AnotherZone,
        Self::RestoreIsolated,
        Self::TakeOverIsolated,
        Self::DeleteIsolated,
    ];

    /// Whether `only` contains the name. For an empty `only`, flows left to `make e2e-all` are skipped,
    /// because most of their tasks are tasks of the remaining flows.
    pub fn is_wanted(self, only: &str) -> bool {
        let is_like_others = matches!(
            self,
            Self::Create
                | Self::CancelMove
                | Self::Renew
                | Self::Leave
                | Self::Hibernate
                | Self::RestoreAsleep
        );
        let name = format!("{self:?}");
        only.split(',').any(|wanted| wanted == name)
            || only.is_empty() && !is_like_others && !self.is_of_zones()
    }

    /// Whether the flow deletes the Shoot.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::ForceDelete | Self::DeleteIsolated)
    }

    /// Whether the hand-over of the Shoot comes before.
    pub fn follows_hand_over(self) -> bool {
        matches!(
            self,
            Self::Restore | Self::RestoreAsleep | Self::RestoreIsolated | Self::Leave
        )
    }

    /// Whether the source is silent when the destination begins.
    pub fn takes_over(self) -> bool {
        matches!(self, Self::TakeOver | Self::TakeOverIsolated)
    }

    /// Whether a zone is isolated, before or by the drilled flow.
    pub fn is_of_zones(self) -> bool {
        self == Self::Failover || self.begins_isolated()
    }

    fn begins_isolated(self) -> bool {
        matches!(
            self,
            Self::Failback
                | Self::AnotherZone
                | Self::RestoreIsolated
                | Self::TakeOverIsolated
                | Self::DeleteIsolated
        )
    }

    /// Whether the Shoot has nodes. A shoot that moves during hibernation has none, so that a shoot without
    /// nodes is drilled, too.
    fn has_nodes(self) -> bool {
        self != Self::RestoreAsleep
    }

    fn is_on_destination(self) -> bool {
        matches!(self, Self::Restore | Self::RestoreAsleep | Self::RestoreIsolated) || self.takes_over()
    }

    fn operation(self) -> Operation {
        match self {
            Self::Create => Operation::Create,
            Self::Migrate => Operation::Migrate,
            Self::CancelMove
            | Self::Renew
            | Self::Restore
            | Self::RestoreAsleep
            | Self::RestoreIsolated
            | Self::TakeOver
            | Self::TakeOverIsolated
            | Self::Leave => Operation::Restore,
            Self::Hibernate | Self::Failover | Self::Failback | Self::AnotherZone => Operation::Reconcile,
            Self::Delete | Self::DeleteIsolated => Operation::Delete,
            Self::ForceDelete => Operation::ForceDelete,
        }
    }
}

/// A separate Shoot. The Shoot is created on the first seed and moves to the second.
pub struct ShootScenario<'w> {
    subject: Subject<'w>,
    pub drilled: Drilled,
    /// Whether the Shoot has nodes.
    pub has_nodes: bool,
    /// Whether the user takes the zone back while the shoot moves.
    pub asks_no_more: bool,
    /// The state that must survive; known after the creation of the Shoot.
    pub evidence: Option<Evidence>,
}

impl<'w> ShootScenario<'w> {
    pub fn new(world: &'w World, drilled: Drilled) -> Self {
        Self {
            subject: Subject::new(world),
            drilled,
            has_nodes: drilled.has_nodes(),
            asks_no_more: false,
            evidence: None,
        }
    }

    /// As [`Self::new`], for cases that do not involve nodes.
    pub fn without_nodes(world: &'w World, drilled: Drilled) -> Self {
        Self {
            has_nodes: false,
            ..Self::new(world, drilled)
        }
    }

    /// As [`Self::new`], with a user who takes the zone back on the way.
    pub fn asking_no_more(world: &'w World, drilled: Drilled) -> Self {
        Self {
            asks_no_more: true,
            ..Self::new(world, drilled)
        }
    }

    /// The seed of the drilled flow.
    pub fn drilled_seed(&self) -> &'w RunningSeed {
        &self.world.seeds[usize::from(self.drilled.is_on_destination())]
    }

    /// Deletes like a user; a user requests force only as the last resort.
    async fn delete(&self) -> Result<()> {
        let mut metadata = json!({"finalizers": ["gardener"]});
        if self.drilled == Drilled::ForceDelete {
            refusal::begin(self).await?;
            self.world.instances.hold_first(&self.namespace());
            metadata["annotations"] = json!({(CONFIRMATION_FORCE_DELETION): "true"});
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        self.shoots().delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Writes the status of the Shoot.
    pub async fn status(&self, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        self.shoots()
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Changes the hibernation like a user.
    async fn wants_sleep(&self, enabled: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"hibernation": {"enabled": enabled}}}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Wakes the Shoot up in the present seed.
    pub async fn wake(&self) -> Result<()> {
        self.wants_sleep(false).await?;
        self.status(json!({"hibernated": false})).await?;
        self.flow_on(self.drilled_seed(), Operation::Reconcile, &Undisturbed)
            .await
            .map(|_| ())
            .map_err(|error| Error::transient(error.to_string()))
    }

    /// Runs a flow as the gardenlet does.
    async fn flow(
        &self,
        which: Drilled,
        interceptor: &dyn Interceptor<Error>,
    ) -> Result<Report, FlowError<Error>> {
        let seed = &self.world.seeds[usize::from(which.is_on_destination())];
        let operation = which.operation();
        if which != Drilled::Leave {
            return self.flow_on(seed, operation, interceptor).await;
        }
        let facts = Box::pin(self.facts(seed, operation))
            .await
            .map_err(|error| around("Collecting facts", error))?;
        let given = leave_flow::LeaveInputs {
            namespace_is_active: true,
            awaits_final_snapshot: false,
        };
        leave_flow::build(&facts.residency, given)
            .into_flow()
            .run_with(|_| (), interceptor)
            .await
    }

    /// As [`Self::flow`], on this seed. For zones, the drill also writes the gardenlet's records.
    pub async fn flow_on(
        &self,
        seed: &RunningSeed,
        operation: Operation,
        interceptor: &dyn Interceptor<Error>,
    ) -> Result<Report, FlowError<Error>> {
        if self.drilled.is_of_zones() {
            self.zone_begins(operation)
                .await
                .map_err(|error| around("Recording which zone is cut off", error))?;
        }
        let facts = Box::pin(self.facts(seed, operation))
            .await
            .map_err(|error| around("Collecting facts", error))?;
        Cluster::sync(&facts)
            .await
            .map_err(|error| around("Syncing Cluster resource", error))?;
        let findings = MoveFindings::default();
        let flow = gardenlet::shoot::build(&facts, &findings)
            .await
            .map_err(|error| around("facts", error))?;
        let report = flow.run_with(|_| (), interceptor).await?;
        if operation.deletes() {
            Cluster::destroy(&facts.residency)
                .await
                .map_err(|error| around("Deleting Cluster resource", error))?;
        }
        if self.drilled.is_of_zones() {
            self.zone_ends(seed, operation)
                .await
                .map_err(|error| around("Recording what has become of the zone", error))?;
        }
        Ok(report)
    }

    /// The source's status write at the hand-over.
    async fn hand_over(&self) -> Result<()> {
        let former = json!([{"name": "seed-a", "epoch": 1}]);
        let mut ownership = granted();
        ownership["drained"] = json!(true);
        ownership["sealed"] =
            json!({"epoch": 1, "revision": LAST_REVISION, "snapshot": "s.final", "sha256": "0".repeat(64)});
        self.status(json!({"seedName": "seed-b", "ownership": ownership, "formerSeeds": former}))
            .await
    }

    /// The garden's state at the time of the silence of the source, followed by the write of
    /// garden-controller-manager.
    async fn is_taken(&self) -> Result<()> {
        let facts = Box::pin(self.facts(&self.world.seeds[0], Operation::Reconcile)).await?;
        ShootState::persist(&facts).await?;
        let former = json!([{"name": "seed-a", "epoch": 1}]);
        self.status(json!({"seedName": "seed-b", "ownership": granted(), "formerSeeds": former}))
            .await
    }

    /// Removes the owner record.
    async fn is_forgotten_by_dns(&self) -> Result<()> {
        let owner = self.owner_name();
        let epoch = format!("epoch.{owner}");
        let names: [(&str, &[&str]); 2] = [(&owner, &[]), (&epoch, &[])];
        self.world
            .dns
            .write_texts(DOMAIN, &names)
            .await
            .map_err(transient)
    }

    /// The write of garden-controller-manager after a cancellation with a sealed epoch, or after a person's
    /// request for a new epoch.
    async fn is_granted_anew(&self) -> Result<()> {
        self.status(json!({"ownership": granted()})).await
    }

    async fn settled(&self, which: Drilled) -> Result<()> {
        self.flow(which, &Undisturbed)
            .await
            .map(|_| ())
            .map_err(|error| Error::transient(error.to_string()))
    }
}

impl<'w> Deref for ShootScenario<'w> {
    type Target = Subject<'w>;

    fn deref(&self) -> &Subject<'w> {
        &self.subject
    }
}

/// The content of `status.ownership` after a grant, for any new owner.
fn granted() -> Value {
    json!({"epoch": 2, "phase": "Claiming", "source": {"name": "seed-a", "epoch": 1}, "chain": null})
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
        let mut shoot = garden::shoot(&self.name);
        if self.has_nodes {
            shoot["spec"]["provider"]["workers"] = machines::pools();
        }
        garden::apply(&self.world.garden(), shoot)
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
        if self.drilled.begins_isolated() {
            self.asks_for(Some(zones::SICK)).await?;
            self.settled(Drilled::Failover).await?;
        }
        self.evidence = Some(Evidence::collect(self, &self.world.seeds[0]).await?);
        if self.drilled.deletes() {
            return self.delete().await;
        }
        match self.drilled {
            Drilled::Failover => return self.asks_for(Some(zones::SICK)).await,
            Drilled::Failback => return self.asks_for(None).await,
            Drilled::AnotherZone => return self.asks_for(Some(zones::OTHER)).await,
            _ => {}
        }
        if self.drilled == Drilled::Renew {
            self.is_forgotten_by_dns().await?;
            return self.is_granted_anew().await;
        }
        if matches!(self.drilled, Drilled::Hibernate | Drilled::RestoreAsleep) {
            self.wants_sleep(true).await?;
        }
        if self.drilled == Drilled::Hibernate {
            return Ok(());
        }
        if self.drilled == Drilled::RestoreAsleep {
            self.settled(Drilled::Hibernate).await?;
            self.status(json!({"hibernated": true})).await?;
        }
        let destination = Patch::Merge(json!({"spec": {"seedName": "seed-b"}}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &destination)
            .await?;
        if self.drilled.takes_over() {
            Box::pin(self.is_taken()).await?;
        } else if self.drilled != Drilled::Migrate {
            self.settled(Drilled::Migrate).await?;
        }
        if self.asks_no_more {
            self.asks_for(None).await?;
        }
        if self.drilled.follows_hand_over() {
            self.hand_over().await?;
        }
        if self.drilled == Drilled::CancelMove {
            self.is_granted_anew().await?;
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
