//! What a seed does that was given a shoot, from the hand-over until it acts as any other: it fences whoever
//! had the shoot before, chooses the data that it begins with, and says so in the Shoot's `status.ownership`
//! (docs/understand/ownership.md, "The destination"). What may follow what is decided in the crate
//! `ownership`.
//!
//! Only where phases are recorded. A move whose source hands the shoot over by itself needs no fence: it has
//! stopped, and proved its final snapshot, before it could.

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
    Chain, Conditional, Evidence, Ownership, Phase, Refused, Stay, Step, Wait, Writer, may_act, may_open,
};
use placement::record;
use runtime::{Cluster, Error, Result, clock, error::Explain};
use serde_json::{Value, json};

use crate::{FIELD_MANAGER, Facts, configuration_problem, etcd_ended, lost, planned_copy};

/// garden-controller-manager watches Shoots: it has answered by then.
const WAIT_FOR_GRANT: Duration = Duration::from_secs(5);

/// The steps of a claimant that the garden knows of.
#[derive(Debug)]
pub struct Claim;

/// What of the protocol a flow has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPlan {
    /// Nothing: the seed holds the shoot, or nobody records phases.
    Nothing,
    /// The source has handed the shoot over by itself: both gates are open.
    Given,
    /// It has not: it is fenced.
    Taken,
    /// The same, and its data are this seed's own, which had the shoot in that epoch: a move was called off
    /// after its epoch had been sealed, or the destination did not open them.
    Returned,
    /// The seed had begun to leave, and keeps the shoot in the epoch that it has.
    Kept,
}

impl ClaimPlan {
    /// What follows from what the Shoot records, whatever stands in its way.
    pub(crate) fn of(shoot: &Shoot) -> Self {
        record::ownership(shoot).map_or(Self::Nothing, |recorded| plan_of(&recorded))
    }

    /// Whether there are the steps of a new epoch to record.
    #[must_use]
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::Given | Self::Taken | Self::Returned)
    }

    /// Whether the source may still act, for all that anybody knows.
    #[must_use]
    pub fn fences(self) -> bool {
        matches!(self, Self::Taken | Self::Returned)
    }

    /// Whether the data are where they are wanted.
    #[must_use]
    pub fn returns(self) -> bool {
        self == Self::Returned
    }
}

impl Claim {
    /// Whether the shoot's epoch goes on. A seed that has sealed it keeps the shoot in the next one, once
    /// that is granted.
    ///
    /// # Errors
    /// It has ended, and there is no other one yet.
    pub fn has_not_ended(shoot: &Shoot) -> Result<()> {
        match record::ownership(shoot) {
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

    /// Finds out what there is to keep, before a flow is built that deploys. `copies`: whether it copies the
    /// source's backups.
    pub fn plan(f: &Facts, copies: bool) -> Result<ClaimPlan> {
        Self::has_not_ended(&f.shoot)?;
        let Ok(recorded) = record::ownership(&f.shoot) else {
            return Ok(ClaimPlan::Nothing);
        };
        let plan = plan_of(&recorded);
        if plan.is_recorded() {
            let checks = f.seed_object.spec.checks_owners();
            check(&recorded, checks, copies).map_err(configuration_problem)?;
        }
        Ok(plan)
    }

    /// "Recording with which backups the shoot begins": gate E, and phase `Opening`. It must come after the
    /// copy, which must come after the fence: what is copied then is all there will ever be. Chosen once in
    /// an epoch: what is recorded stands. The choice relies on what the copy has read and hashed, and
    /// reports.
    pub async fn open(f: &Facts) -> Result<()> {
        let earlier_pods_gone = etcd_ended::has_ended(f).await?;
        let fence_passed = f.fence.has_passed(&f.owner_check);
        let fenced = fenced(f);
        let copied = f.copied.get();
        let accepted = planned_copy::accepted_loss(&f.newest_shoot().await?);
        let tell = |becomes: &Ownership<String>| lost::of(becomes, copied.as_ref(), fenced);
        advance_telling(f, tell, |now| {
            let earlier_pods_gone = earlier_pods_gone || now.phase != Phase::Claiming;
            let evidence = evidence(now, copied.as_ref(), accepted, fence_passed);
            let evidence = Evidence {
                earlier_pods_gone,
                ..evidence
            };
            let chain =
                may_open(now, &stay(f), evidence).map_err(|wait| waits("etcd is not opened", wait))?;
            match now.phase {
                Phase::Claiming => now.step(&writer(f), Step::Open(chain)).map(Some).map_err(refused),
                _ => Ok(None),
            }
        })
        .await
    }

    /// "Recording that the seed holds the shoot": gate C, and phase `Held`. Whatever touches a cloud or the
    /// shoot's names comes after it (R17-31).
    pub async fn hold(f: &Facts) -> Result<()> {
        let fence_passed = f.fence.has_passed(&f.owner_check);
        advance(f, |now| {
            if now.phase == Phase::Held {
                return Ok(None);
            }
            if !may_act(now, &stay(f), fence_passed) {
                return Err(waits("nothing outside of the seed is touched", Wait::Source));
            }
            now.step(&writer(f), Step::Hold).map(Some).map_err(refused)
        })
        .await
    }
}

fn plan_of(recorded: &Ownership<String>) -> ClaimPlan {
    match recorded.phase {
        Phase::Claiming | Phase::Opening => match &recorded.source {
            Some(source) if source.seed == recorded.now.seed => ClaimPlan::Returned,
            _ if recorded.drained => ClaimPlan::Given,
            _ => ClaimPlan::Taken,
        },
        Phase::Leaving => ClaimPlan::Kept,
        Phase::Held | Phase::Sealing => ClaimPlan::Nothing,
    }
}

/// What stands in the way of a claim from its begin.
fn check(recorded: &Ownership<String>, checks: bool, copies: bool) -> std::result::Result<(), String> {
    let own = &recorded.now.seed;
    if plan_of(recorded).fences() && !checks {
        return Err(format!(
            "the shoot was taken over without the help of its source, and Seed {own} does not say whose its shoots are, so that \
             nothing keeps the source from acting: set spec.settings.ownerChecks.enabled to true there"
        ));
    }
    let returns = plan_of(recorded).returns();
    if recorded.phase == Phase::Claiming && !copies && !returns {
        return Err(format!(
            "seed {own} would not begin with the data of the shoot's source: it keeps no backups, or has an Etcd etcd-main of the \
             shoot from before: make sure that this one is of no use, and delete it"
        ));
    }
    Ok(())
}

/// What this seed has seen of its source, as gate E has it. Only the report of the copy shows that data are
/// there: that the source handed the shoot over, or that the fence has passed, says nothing of the bucket.
/// What is recorded was judged before, and stands.
fn evidence(
    recorded: &Ownership<String>,
    copied: Option<&CopiedChain>,
    accepted: Option<i64>,
    fence_passed: bool,
) -> Evidence {
    let brought = if Mutation::CopyEvidenceIgnored.is_active() {
        Some(Chain::Final)
    } else if plan_of(recorded).returns() {
        // Nothing is copied: the data are in the seed's own bucket and on its volume.
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
    // A copy of less than the source's hand-over recorded ends well only where a person accepts the loss.
    let loss_is_accepted =
        copied.is_some_and(|copied| !copied.complete && planned_copy::is_loss_accepted(copied, accepted));
    Evidence::after_copy(recorded, brought, loss_is_accepted, fence_passed)
}

fn stay(f: &Facts) -> Stay<String> {
    Stay {
        seed: f.seed_object.name_any(),
        epoch: f.epoch(),
    }
}

pub(crate) fn writer(f: &Facts) -> Writer<String> {
    Writer::Seed(f.seed_object.name_any())
}

/// When the fence had passed: a bound for the source under the condition that all its processes ask the
/// servers of the fence. Where the fence was not counted, the bound is now.
fn fenced(f: &Facts) -> Timestamp {
    let now = clock::now();
    let behind = f.fence.behind(&f.owner_check);
    behind
        .and_then(|behind| now.checked_sub(behind).ok())
        .unwrap_or(now)
}

/// Takes a step from what the garden has now, or finds that it was taken. A write that was overtaken is
/// decided on anew.
pub(crate) async fn advance(
    f: &Facts,
    decide: impl FnMut(&Ownership<String>) -> Result<Option<Conditional<Ownership<String>>>> + Send,
) -> Result<()> {
    advance_telling(f, |_| None, decide).await
}

impl Facts {
    /// The Shoot as it is now.
    pub(crate) async fn newest_shoot(&self) -> Result<Shoot> {
        let name = self.shoot.name_any();
        let api = self.garden.namespaced::<Shoot>(&self.shoot_namespace());
        let newest = api.get_opt(&name).await.context("could not read the Shoot")?;
        let newest = newest.filter(|newest| newest.uid() == self.shoot.uid());
        newest.ok_or_else(|| Error::NotOwner(format!("Shoot {name} is gone")))
    }
}

/// The same; the step says what is lost.
async fn advance_telling(
    f: &Facts,
    tell: impl Fn(&Ownership<String>) -> Option<RestoredData> + Send,
    mut decide: impl FnMut(&Ownership<String>) -> Result<Option<Conditional<Ownership<String>>>> + Send,
) -> Result<()> {
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let name = f.shoot.name_any();
    loop {
        let newest = f.newest_shoot().await?;
        let now = owned(&newest, &stay(f), f.operation)?;
        let Some(write) = decide(&now)? else {
            return Ok(());
        };
        // All of the record but the approval, which stays as it is. The version of the Shoot tests all of
        // what was read.
        let stands = newest
            .status
            .as_ref()
            .and_then(|status| status.ownership.as_ref());
        let patch = json!({"ownership": told(&write.becomes, tell(&write.becomes), stands)});
        let written = FIELD_MANAGER.try_merge_status_of(&api, &newest, &patch).await?;
        if written.is_some() {
            tracing::info!(shoot = name, phase = ?write.becomes.phase, epoch = write.becomes.now.epoch, "ownership goes on");
            return Ok(());
        }
    }
}

/// The record as it is written, with what is lost by this epoch and not by one before it, which stands beside
/// it from then on.
fn told(becomes: &Ownership<String>, restored: Option<RestoredData>, stands: Option<&Recorded>) -> Value {
    let ownership = record::recorded(becomes);
    let source = ownership.source.clone();
    let mut told = json!(ownership);
    if let Some(restored) = restored {
        let restored = lost::restored_patch(&RestoredData { source, ..restored }, stands);
        for (field, value) in restored.as_object().into_iter().flatten() {
            told[field] = value.clone();
        }
    }
    told
}

/// The record, if the shoot is still this seed's, in this epoch and in the operation that the flow is about.
fn owned(newest: &Shoot, me: &Stay<String>, operation: crate::Operation) -> Result<Ownership<String>> {
    let status = newest.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let now = record::ownership(newest)
        .ok()
        .filter(|now| now.now == *me || Mutation::EndedEpochContinued.is_active());
    now.filter(|_| last.is_none_or(|last| last.type_ == operation.type_()))
        .ok_or_else(|| {
            Error::NotOwner(format!(
                "{} of Shoot {} is over for seed {} in epoch {}",
                operation.type_(),
                newest.name_any(),
                me.seed,
                me.epoch
            ))
        })
}

fn waits(what: &str, wait: Wait) -> Error {
    match wait {
        Wait::NotGranted => Error::NotOwner(wait.to_string()),
        _ => Error::transient(format!("{what} yet: {wait}")),
    }
}

pub(crate) fn refused(refused: Refused) -> Error {
    Error::bug(format!("a step that its gate lets pass is none: {refused}"))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
