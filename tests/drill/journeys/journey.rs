//! A Shoot with the actions of a user, and the waits for results.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::constants::CONFIRMATION_DELETION;
use api::constants::condition::{
    BACKUP_BUCKETS_READY, GARDENLET_READY, READY_FOR_MIGRATION, SEED_SYSTEM_COMPONENTS_HEALTHY,
};
use api::gardencore::{Seed, Shoot};
use api::meta::{ConditionStatus, LastOperationState as State, LastOperationType as Type, find_condition};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use testkit::eventually;

use super::mortals::Mortals;
use super::rules::{epoch, host, last};
use super::witness::Witness;
use crate::evidence::Evidence;
use crate::garden;
use crate::refusal;
use crate::subject::Subject;
use crate::world::World;

/// Bounds a step of a journey, with all journeys beside, on a busy machine.
const STEP_WITHIN: Duration = Duration::from_secs(600);
/// Rest after a watch that failed.
const WATCHED_ANEW_AFTER: Duration = Duration::from_millis(200);
/// An API server searches every half minute for a kind that a policy needs, and refuses all requests until
/// then.
const SET_WITHIN: Duration = Duration::from_secs(120);

/// The state shared by all journeys.
pub struct Stage<'w> {
    pub world: &'w Arc<World>,
    pub mortals: Mortals<'w>,
    pub witness: Witness,
}

impl Stage<'_> {
    /// Waits until both seeds report the conditions that a preflight needs.
    pub async fn is_set(&self) -> Result<()> {
        let seeds: Api<Seed> = Api::all(self.world.garden());
        for seed in &self.world.seeds {
            let is_well = |found: Option<&Seed>| {
                let conditions = found.and_then(|found| Some(found.status.as_ref()?.conditions.as_slice()));
                let holds = |type_| {
                    let found = find_condition(conditions.unwrap_or_default(), type_);
                    found.is_some_and(|condition| condition.status == ConditionStatus::True)
                };
                [
                    GARDENLET_READY,
                    SEED_SYSTEM_COMPONENTS_HEALTHY,
                    BACKUP_BUCKETS_READY,
                ]
                .into_iter()
                .all(holds)
            };
            let waiting = Box::pin(await_condition(seeds.clone(), seed.name, is_well));
            let waiting = testkit::timeout(SET_WITHIN, waiting).await;
            waiting.with_context(|| format!("{} is not well", seed.name))??;
        }
        Ok(())
    }
}

/// A Shoot on a journey.
pub struct Journey<'w> {
    pub stage: &'w Stage<'w>,
    subject: Subject<'w>,
}

impl<'w> Deref for Journey<'w> {
    type Target = Subject<'w>;

    fn deref(&self) -> &Subject<'w> {
        &self.subject
    }
}

impl<'w> Journey<'w> {
    pub fn new(stage: &'w Stage<'w>) -> Self {
        Self {
            stage,
            subject: Subject::new(stage.world),
        }
    }

    /// A Shoot with this unique name.
    pub fn named(stage: &'w Stage<'w>, name: &str) -> Self {
        let subject = Subject::named(stage.world, name);
        Self { stage, subject }
    }

    /// Creates the Shoot on the first seed, and returns the state that must survive.
    pub async fn begin(&self) -> Result<Evidence> {
        self.begin_as(&garden::shoot(&self.name)).await
    }

    /// As [`Self::begin`], with this manifest.
    pub async fn begin_as(&self, shoot: &Value) -> Result<Evidence> {
        eventually("the Shoot is accepted", SET_WITHIN, || async {
            let made = garden::apply(&self.world.garden(), shoot.clone()).await;
            made.map_err(|error| format!("{error:#}"))
        })
        .await?;
        self.settled(0).await?;
        refusal::back_up(self).await?;
        Ok(Evidence::collect(self, &self.world.seeds[0]).await?)
    }

    /// The user names a new seed.
    pub async fn send_to(&self, seed: &str) -> Result<Shoot> {
        self.edit(json!({"seedName": seed})).await
    }

    /// The user edits the specification.
    pub async fn edit(&self, spec: Value) -> Result<Shoot> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let edited = self
            .shoots()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await;
        edited.with_context(|| format!("the edit {spec} was refused"))
    }

    /// The user deletes the Shoot with a confirmation; a deletion without confirmation is refused.
    pub async fn delete(&self) -> Result<()> {
        self.delete_with(&DeleteParams::default()).await
    }

    /// As [`Self::delete`], with a policy for the dependents.
    pub async fn delete_with(&self, how: &DeleteParams) -> Result<()> {
        let dry = DeleteParams {
            dry_run: true,
            ..DeleteParams::default()
        };
        let refused = self.shoots().delete(&self.name, &dry).await.is_err();
        ensure!(refused, "a deletion that nobody confirmed is let through");
        let confirmed = Patch::Merge(json!({"metadata": {"annotations": {(CONFIRMATION_DELETION): "true"}}}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &confirmed)
            .await?;
        self.shoots().delete(&self.name, how).await?;
        Ok(())
    }

    /// Waits until the Shoot is complete on this seed in the present specification, without leftovers of a
    /// move.
    pub async fn settled(&self, seed: usize) -> Result<Shoot> {
        let seed = self.world.seeds[seed].name;
        self.until(&format!("it is settled on {seed}"), |shoot| {
            is_settled(shoot, seed)
        })
        .await
    }

    /// Waits until the condition holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Shoot) -> bool) -> Result<Shoot> {
        let waiting = self.watched(|found| found.is_none_or(&holds));
        match testkit::timeout(STEP_WITHIN, waiting).await {
            Ok(Some(shoot)) => Ok(shoot),
            Ok(None) => bail!("{what}: the Shoot is gone"),
            Err(_) => bail!("{what}: not so within {STEP_WITHIN:?}: {}", self.report().await),
        }
    }

    /// Waits for a moment of the move that begins in this epoch.
    pub async fn reaches(&self, moment: Moment, leaving: i64) -> Result<Shoot> {
        self.until(&format!("it is at {moment}"), |shoot| {
            moment.is_reached(shoot, leaving)
        })
        .await
    }

    /// The present status in the user's view.
    async fn report(&self) -> String {
        let found = self.shoots().get(&self.name).await;
        let (generation, status) = match found {
            Ok(found) => (found.metadata.generation, found.status.unwrap_or_default()),
            Err(error) => return error.to_string(),
        };
        let unsettled = format!(
            "generation {generation:?}, observed {:?}, former seeds {:?}, migration {:?}",
            status.observed_generation, status.former_seeds, status.migration
        );
        let last = status.last_operation.map(|last| last.description);
        let errors = status.last_errors.into_iter().map(|error| error.description);
        let said = last.into_iter().chain(errors).chain([unsettled]);
        said.collect::<Vec<_>>().join("; ")
    }

    /// Waits until the Shoot is gone.
    pub async fn ends(&self) -> Result<()> {
        let waiting = self.watched(|found| found.is_none());
        if testkit::timeout(STEP_WITHIN, waiting).await.is_err() {
            bail!(
                "the Shoot is not gone within {STEP_WITHIN:?}: {}",
                self.report().await
            )
        }
        Ok(())
    }

    /// The Shoot once the condition holds. A connection that the server closes at the moment of use, because
    /// the connection was idle, is no statement about the Shoot.
    async fn watched(&self, holds: impl Fn(Option<&Shoot>) -> bool) -> Option<Shoot> {
        loop {
            match Box::pin(await_condition(self.shoots(), &self.name, &holds)).await {
                Ok(found) => return found,
                Err(error) => eprintln!("{}: watched anew: {error}", self.name),
            }
            tokio::time::sleep(WATCHED_ANEW_AFTER).await;
        }
    }
}

/// A point of a move.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// The source is so many percent through.
    Migrate(i32),
    /// The source has handed over.
    HandedOver,
    /// The destination is so many percent through.
    Restore(i32),
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Migrate(percent) => write!(f, "Migrate {percent} %"),
            Self::HandedOver => write!(f, "the hand-over"),
            Self::Restore(percent) => write!(f, "Restore {percent} %"),
        }
    }
}

impl Moment {
    /// Whether the move that begins in this epoch has reached the point.
    fn is_reached(self, shoot: &Shoot, leaving: i64) -> bool {
        let handed_over = epoch(shoot) > leaving;
        match (self, last(shoot)) {
            (Self::Migrate(percent), Some((Type::Migrate, _, now))) => handed_over || now >= percent,
            (Self::Restore(percent), Some((Type::Restore, _, now))) => handed_over && now >= percent,
            (Self::Restore(_), Some((Type::Migrate, ..))) => false,
            _ => handed_over,
        }
    }
}

fn is_settled(shoot: &Shoot, seed: &str) -> bool {
    let status = shoot.status.clone().unwrap_or_default();
    let succeeded = matches!(
        last(shoot),
        Some((
            Type::Create | Type::Reconcile | Type::Restore,
            State::Succeeded,
            _
        ))
    );
    let observed = status.observed_generation == shoot.metadata.generation;
    let wanted = shoot.spec.seed_name.as_deref() == Some(seed);
    let at_rest = status.former_seeds.is_empty() && status.migration.is_none();
    succeeded && observed && wanted && at_rest && host(shoot) == seed
}

/// The reason of the constraint why the move does not begin or continue.
pub fn obstacle(shoot: &Shoot) -> Option<&str> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    (constraint.status == ConditionStatus::False).then_some(constraint.reason.as_str())
}
