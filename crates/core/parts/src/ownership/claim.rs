//! The steps of a destination seed, from the hand-over until the seed acts like an owner. The steps fence the
//! former owner, choose the data for the start, and record the choice in the Shoot's `status.ownership`
//! (docs/understand/ownership.md, "The destination"). The crate `ownership` decides the order of the phases.
//!
//! The steps apply only to a Shoot with recorded phases. A source that hands the shoot over in a planned move
//! needs no fence. Such a source has stopped, and has proved the final snapshot, before the hand-over.

use std::time::Duration;

use api::{
    druid::CopiedChain,
    gardencore::{
        Shoot,
        shoot::{Ownership as Recorded, RestoredData},
    },
};
use jiff::Timestamp;
use kube::ResourceExt;
use mutation::Mutation;
use ownership::{
    Chain, Conditional, Evidence, Ownership, Phase, Refused, SeedEpoch, Step, Terms, Wait, Writer, may_act,
    may_open,
};
use placement::ownership_status;
use runtime::{Error, Result, client::Cluster, clock, error::Explain};
use serde_json::{Value, json};

use crate::{
    ClaimEvidence, ConflictLimit, FIELD_MANAGER, Facts, FenceClock, configuration_problem,
    etcd::{
        ended,
        planned_copy::{self, LossConsent},
        source_bucket,
    },
    ownership::{data_loss, opened_epoch::OpenedEpoch},
    task::{NONE, PartTask},
};

/// Requeue interval for the next epoch: garden-controller-manager watches Shoots, and has granted the epoch
/// by then.
const WAIT_FOR_GRANT: Duration = Duration::from_secs(5);

/// The steps of a claim that the gardenlet records in the garden.
#[derive(Debug)]
pub struct ClaimSteps;

/// The steps of the ownership protocol that a flow has to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPlan {
    /// None: the seed holds the shoot, or the Shoot records no phases.
    Nothing,
    /// The source has handed the shoot over, so no fence is needed. etcd opens after the copy of the backups.
    AfterHandOver,
    /// The source has not handed the shoot over: the seed fences the source.
    AfterTakeover,
    /// Like `AfterTakeover`, but the data are this seed's own data from the source epoch. A move was
    /// cancelled after the seed had sealed the epoch, or the destination never opened the data.
    NewEpochSameSeed,
    /// The seed had begun to leave, and keeps the shoot in the present epoch.
    DepartureCancelled,
}

impl ClaimPlan {
    /// The plan from the Shoot's record, without a check of obstacles.
    pub(crate) fn from_shoot(shoot: &Shoot) -> Self {
        ownership_status::ownership(shoot).map_or(Self::Nothing, |recorded| plan_of(&recorded))
    }

    /// Whether the flow records the steps of a new epoch.
    #[must_use]
    pub fn begins_epoch(self) -> bool {
        matches!(
            self,
            Self::AfterHandOver | Self::AfterTakeover | Self::NewEpochSameSeed
        )
    }

    /// Whether the source may still act, as far as the record shows.
    #[must_use]
    pub fn fences(self) -> bool {
        matches!(self, Self::AfterTakeover | Self::NewEpochSameSeed)
    }

    /// Whether the data are already in this seed.
    #[must_use]
    pub fn returns(self) -> bool {
        self == Self::NewEpochSameSeed
    }
}

impl ClaimSteps {
    /// [`Self::open`], as a task.
    pub const OPEN: PartTask<Facts, ClaimEvidence> = PartTask::exchanging(
        "Recording with which backups the shoot begins",
        NONE,
        |input, evidence| Box::pin(Self::open(input, evidence)),
    );
    /// [`Self::hold`], as a task.
    pub const HOLD: PartTask<Facts, FenceClock> =
        PartTask::exchanging("Recording that the seed holds the shoot", NONE, |input, fence| {
            Box::pin(Self::hold(input, fence))
        });

    /// Fails when the shoot's epoch has ended. A seed that has sealed the epoch keeps the shoot in the next
    /// epoch, once garden-controller-manager grants that epoch.
    ///
    /// # Errors
    /// The epoch has ended, and no new epoch is granted yet.
    pub fn check_not_sealing(shoot: &Shoot) -> Result<()> {
        match ownership_status::ownership(shoot) {
            Ok(recorded) if recorded.phase == Phase::Sealing => Err(Error::not_ready(
                WAIT_FOR_GRANT,
                format!(
                    "epoch {} of the shoot has ended in seed {}, and garden-controller-manager has not given it a new one yet",
                    recorded.now.epoch, recorded.now.seed
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Derives the plan before a deploying flow is built, and checks the obstacles of a claim. `copies`:
    /// whether the flow copies the source's backups.
    pub fn plan(f: &Facts, copies: bool) -> Result<ClaimPlan> {
        Self::check_not_sealing(&f.shoot)?;
        let Ok(recorded) = ownership_status::ownership(&f.shoot) else {
            return Ok(ClaimPlan::Nothing);
        };
        let plan = plan_of(&recorded);
        if plan.begins_epoch() {
            let checks = f.seed_object.spec.checks_owners();
            check(&recorded, checks, copies).map_err(configuration_problem)?;
        }
        Ok(plan)
    }

    /// "Recording with which backups the shoot begins": checks the condition to open etcd
    /// ([`ownership::may_open`]), and records phase `Opening`. This step must come after the copy, and the
    /// copy after the fence: then the source can add no data after the copy. The choice is made once per
    /// epoch, and a recorded choice stays. The choice relies on the report of the copy about the data that
    /// the copy read and hashed. The gardenlet notes the choice in the seed first ([`OpenedEpoch`]).
    pub async fn open(f: &Facts, evidence: &ClaimEvidence) -> Result<()> {
        let ClaimEvidence { fence, copy } = evidence;
        let earlier_pods_gone = ended::has_ended(f).await?;
        let fence_passed = fence.has_passed(&f.owner_check);
        let fenced = fenced(fence, &f.owner_check);
        let copied = copy.read();
        let newest = f.newest_shoot().await?;
        let home = f.residency.read_namespace().await?;
        let has_opened = OpenedEpoch::is_shown(&f.residency, home.as_ref(), f.epoch()).await?;
        let recorded = owned(&newest, &stay(f), f.operation)?;
        if plan_of(&recorded.as_noted(has_opened)).returns() {
            source_bucket::check_without_copy(f, &newest).await?;
        }
        let accepted = LossConsent::from_shoot(&newest);
        let choose = |now: &Ownership<String>| {
            let relied_on = now.as_noted(has_opened);
            let earlier_pods_gone = earlier_pods_gone || relied_on.phase != Phase::Claiming;
            let evidence = judge_copy(&relied_on, copied.as_ref(), accepted, fence_passed);
            let evidence = Evidence {
                earlier_pods_gone,
                ..evidence
            };
            may_open(&relied_on, &stay(f), evidence).map_err(|wait| waits("etcd is not opened", wait))
        };
        let chosen = choose(&recorded)?;
        // The note comes before the phase: a gardenlet that ends in between repeats the fence.
        OpenedEpoch::note(&f.residency, f.epoch()).await?;
        let loss_of = |becomes: &Ownership<String>| {
            let begun = Ownership {
                chain: Some(chosen),
                ..becomes.clone()
            };
            data_loss::assess_loss(&begun, copied.as_ref(), fenced)
        };
        Box::pin(advance_with_loss(f, loss_of, |now| {
            let chain = choose(now)?;
            match now.phase {
                Phase::Claiming => now.step(&writer(f), Step::Open(chain)).map(Some).map_err(refused),
                // The phase stays, and the loss is recorded beside the phase.
                _ if !has_opened => Ok(Some(unchanged(now))),
                _ => Ok(None),
            }
        }))
        .await
    }

    /// "Recording that the seed holds the shoot": checks the condition to touch external resources
    /// ([`ownership::may_act`]), and records phase `Held`. Every step that touches a cloud or the shoot's
    /// names must come after this step (R17-31).
    pub async fn hold(f: &Facts, fence: &FenceClock) -> Result<()> {
        let fence_passed = fence.has_passed(&f.owner_check);
        advance(f, |now| {
            let step = match now.phase {
                Phase::Held => return Ok(None),
                // Not recorded by this gardenlet. The gardenlet has fenced the source all the same.
                Phase::Leaving if fence_passed => Step::CancelLeave,
                _ if may_act(now, &stay(f), fence_passed) => Step::Hold,
                _ => return Err(waits("nothing outside of the seed is touched", Wait::Source)),
            };
            now.step(&writer(f), step).map(Some).map_err(refused)
        })
        .await
    }
}

/// A write that changes no phase.
fn unchanged(now: &Ownership<String>) -> Conditional<Ownership<String>> {
    Conditional {
        tests: now.clone(),
        becomes: now.clone(),
    }
}

fn plan_of(recorded: &Ownership<String>) -> ClaimPlan {
    match recorded.phase {
        Phase::Claiming | Phase::Opening => match &recorded.source {
            Some(source) if source.seed == recorded.now.seed => ClaimPlan::NewEpochSameSeed,
            _ if recorded.drained => ClaimPlan::AfterHandOver,
            _ => ClaimPlan::AfterTakeover,
        },
        Phase::Leaving => ClaimPlan::DepartureCancelled,
        Phase::Held | Phase::Sealing => ClaimPlan::Nothing,
    }
}

/// The obstacle to a claim at the start, if any.
fn check(recorded: &Ownership<String>, checks: bool, copies: bool) -> std::result::Result<(), String> {
    let own = &recorded.now.seed;
    if plan_of(recorded).fences() && !checks {
        return Err(format!(
            "the shoot was taken over without the help of its source, and Seed {own} checks no owners, so no fence stops the source: \
             set spec.settings.ownerChecks.enabled to true in Seed {own}"
        ));
    }
    let returns = plan_of(recorded).returns();
    if recorded.phase == Phase::Claiming && !copies && !returns {
        return Err(format!(
            "seed {own} would not begin with the data of the shoot's source: Seed {own} has no backups configured, or the shoot's \
             namespace has an Etcd etcd-main from before. Make sure that no data of this Etcd are needed, and delete the Etcd"
        ));
    }
    Ok(())
}

/// The evidence about the source for the condition to open etcd. Only the report of the copy shows that data
/// exist: neither the source's hand-over nor a passed fence proves the content of the bucket. A recorded
/// choice was judged before, and stays.
fn judge_copy(
    recorded: &Ownership<String>,
    copied: Option<&CopiedChain>,
    accepted: Option<LossConsent>,
    fence_passed: bool,
) -> Evidence {
    let brought = if Mutation::CopyEvidenceIgnored.is_active() {
        Some(Chain::Final)
    } else if plan_of(recorded).returns() {
        // No copy runs: the data are in the seed's own bucket and on the seed's own volume.
        Some(Chain::Last)
    } else {
        copied.map(|copied| {
            if copied.complete {
                Chain::Final
            } else {
                Chain::Last
            }
        })
    };
    // A copy with less data than the source recorded at the hand-over succeeds only when a user accepts the
    // loss.
    let loss_is_accepted =
        copied.is_some_and(|copied| !copied.complete && planned_copy::is_loss_accepted(copied, accepted));
    Evidence::after_copy(recorded, brought, loss_is_accepted, fence_passed)
}

fn stay(f: &Facts) -> SeedEpoch<String> {
    SeedEpoch {
        seed: f.seed_object.name_any(),
        epoch: f.epoch(),
    }
}

pub(crate) fn writer(f: &Facts) -> Writer<String> {
    Writer::Seed(f.seed_object.name_any())
}

/// Time when the fence had passed. The time bounds the source, provided that all processes of the source ask
/// the servers of the fence. When the fence was not counted, the bound is the present time.
fn fenced(fence: &FenceClock, terms: &Terms) -> Timestamp {
    let now = clock::now();
    let behind = fence.behind(terms);
    behind
        .and_then(|behind| now.checked_sub(behind).ok())
        .unwrap_or(now)
}

/// Records a step on the newest record of the garden, unless the step is already recorded. When a concurrent
/// write wins, `decide` runs again on the new record.
pub(crate) async fn advance(
    f: &Facts,
    decide: impl FnMut(&Ownership<String>) -> Result<Option<Conditional<Ownership<String>>>> + Send,
) -> Result<()> {
    advance_with_loss(f, |_| None, decide).await
}

impl Facts {
    /// Reads the Shoot from the garden's API.
    pub(crate) async fn newest_shoot(&self) -> Result<Shoot> {
        let name = self.shoot.name_any();
        let api = self.garden.namespaced::<Shoot>(&self.shoot_namespace());
        let newest = api.get_opt(&name).await.context("could not read the Shoot")?;
        let newest = newest.filter(|newest| newest.uid() == self.shoot.uid());
        newest.ok_or_else(|| Error::not_owner(format!("Shoot {name} is gone")))
    }
}

/// Like [`advance`]; `loss_of` adds the data loss of this epoch to the record.
async fn advance_with_loss(
    f: &Facts,
    loss_of: impl Fn(&Ownership<String>) -> Option<RestoredData> + Send,
    mut decide: impl FnMut(&Ownership<String>) -> Result<Option<Conditional<Ownership<String>>>> + Send,
) -> Result<()> {
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let name = f.shoot.name_any();
    let mut conflicts = ConflictLimit::default();
    loop {
        let newest = f.newest_shoot().await?;
        let now = owned(&newest, &stay(f), f.operation)?;
        let Some(write) = decide(&now)? else {
            return Ok(());
        };
        // The patch sets all fields of the record except the approval, which stays. The write is conditional
        // on the Shoot's resourceVersion, which covers all fields that were read.
        let current = newest
            .status
            .as_ref()
            .and_then(|status| status.ownership.as_ref());
        let patch = json!({"ownership": build_record(&write.becomes, loss_of(&write.becomes), current)});
        let written = FIELD_MANAGER.try_merge_status_of(&api, &newest, &patch).await?;
        if written.is_some() {
            tracing::info!(shoot = name, phase = ?write.becomes.phase, epoch = write.becomes.now.epoch, "recorded ownership phase");
            return Ok(());
        }
        conflicts.count("Shoot", &name)?;
    }
}

/// The record to write. The data loss of this epoch is added, and the losses of earlier epochs stay beside it
/// in `restoredBefore`. A merge patch keeps each field that the patch omits, so a doubted hand-over removes
/// the two reports of the source.
fn build_record(
    becomes: &Ownership<String>,
    restored: Option<RestoredData>,
    current: Option<&Recorded>,
) -> Value {
    let ownership = ownership_status::recorded(becomes);
    let source = ownership.source.clone();
    let mut told = json!(ownership);
    if current.is_some_and(|current| current.drained) && !becomes.drained {
        told["drained"] = Value::Null;
        told["sealed"] = Value::Null;
    }
    if let Some(restored) = restored {
        let restored = data_loss::restored_patch(&RestoredData { source, ..restored }, current);
        for (field, value) in restored.as_object().into_iter().flatten() {
            told[field] = value.clone();
        }
    }
    told
}

/// The record, while this seed still has the shoot in this epoch and in the operation of the flow.
fn owned(newest: &Shoot, me: &SeedEpoch<String>, operation: crate::Operation) -> Result<Ownership<String>> {
    let status = newest.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let now = ownership_status::ownership(newest)
        .ok()
        .filter(|now| now.now == *me || Mutation::EndedEpochContinued.is_active());
    now.filter(|_| last.is_none_or(|last| last.type_ == operation.type_()))
        .ok_or_else(|| {
            Error::not_owner(format!(
                "{} of Shoot {} cannot continue: seed {} no longer has the shoot in ownership epoch {}, or a different \
                 operation has begun",
                operation.type_(),
                newest.name_any(),
                me.seed,
                me.epoch
            ))
        })
}

fn waits(what: &str, wait: Wait) -> Error {
    match wait {
        Wait::NotGranted => Error::not_owner(wait.to_string()),
        _ => Error::transient(format!("{what} yet: {wait}")),
    }
}

pub(crate) fn refused(refused: Refused) -> Error {
    Error::bug(format!(
        "the ownership protocol refuses a step whose condition holds: {refused}"
    ))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
