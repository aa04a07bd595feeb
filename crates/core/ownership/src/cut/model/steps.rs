//! The decisions of the source and the destination, with the rules that a scenario switches off.

use std::sync::OnceLock;
use std::time::Duration;

use super::super::destination::{FollowProof, may_open_live, record_testimony};
use super::super::forwarding::forwarded_epoch;
use super::super::record::{FollowedEnd, SealedAttempt};
use super::super::source::{AttemptMarks, BucketMark, CutStep, SourceMark, may_begin_cut, may_open_source};
use super::rules::{CutRule, CutScenario};
use super::sides::{MoveSeed, NOW, RequestPlace, seconds};
use super::state::{CutState, Garden, epoch_of_destination, epoch_of_source};
use crate::claim::OwnershipClaim;
use crate::conditional::Conditional;
use crate::gates::Evidence;
use crate::judgement::{Answer, by_second_witness};
use crate::marks::OwnershipObject;
use crate::witness::Testimony;

/// A follower that is close, and streams without delay.
const CLOSE: Duration = Duration::from_secs(60);

/// The answer of B's witnesses: owned, or lost. `None` for Unknown.
fn owned(testimony: Testimony) -> Option<bool> {
    static CLAIM: OnceLock<OwnershipClaim> = OnceLock::new();
    let claim = CLAIM.get_or_init(|| OwnershipClaim::new("owner.a.b.example.org", "b", 2).unwrap());
    match by_second_witness(claim, "", testimony) {
        Answer::Owned { .. } => Some(true),
        Answer::Lost(_) => Some(false),
        Answer::Unknown(_) => None,
    }
}

impl CutState {
    /// The next step of the cut, if the step is possible.
    pub(super) fn cut_step(&self, scenario: &CutScenario) -> Option<CutStep> {
        let source = &self.source;
        if !source.serves || source.knows_record || !source.has_data {
            return None;
        }
        let step = source.progress.next_step()?;
        let at_etcd = self.write.filter(|write| write.place == RequestPlace::SourceEtcd);
        let counted = at_etcd.filter(|write| !(scenario.ignores_given_up_writes && write.is_given_up));
        let is_possible = match step {
            CutStep::HoldSource => self.may_begin(scenario),
            CutStep::AwaitWrites => counted.is_none() || !scenario.is_on(CutRule::WritesEnd),
            CutStep::EndStreams | CutStep::ReadEnd => true,
            CutStep::ProveFollower => self.proof(scenario).is_some(),
            CutStep::Mark => source.proof.is_some(),
        };
        is_possible.then_some(step)
    }

    fn may_begin(&self, scenario: &CutScenario) -> bool {
        if self.garden.attempt > scenario.attempts || self.source.is_volume_new {
            return false;
        }
        let attempt = self.garden.attempt;
        let in_bucket = match self.marked_attempt {
            None => BucketMark::Absent,
            Some(_) if !scenario.is_on(CutRule::AttemptInBucket) => BucketMark::Passing { attempt },
            Some(attempt) => BucketMark::Passing { attempt },
        };
        let marks = AttemptMarks {
            in_bucket,
            ..self.marks(scenario)
        };
        may_begin_cut(&self.garden, &epoch_of_source(), &marks, CLOSE, Duration::ZERO).is_ok()
    }

    /// The end that source and destination agree on, if the follower stands there.
    pub(super) fn proof(&self, scenario: &CutScenario) -> Option<FollowedEnd> {
        let destination = &self.destination;
        if !self.seeds_are_linked() || !destination.follows || destination.has_opened {
            return None;
        }
        let written = if scenario.is_on(CutRule::LastTransactionAnswered) {
            destination.log
        } else {
            let pending = destination.pending;
            pending.map_or(destination.log, |event| destination.log.with(event))
        };
        let is_answered = destination.pending.is_none() || !scenario.is_on(CutRule::LastTransactionAnswered);
        let (sent, end) = (destination.received.end(), written.end());
        let stands = Some(sent.revision) == self.source.progress.end && sent.revision == end.revision;
        let is_equal = sent == end || !scenario.is_on(CutRule::DigestCompared);
        (is_answered && stands && is_equal).then_some(end)
    }

    /// The mark after the last step of a cut.
    pub(super) fn passed_mark(&self, scenario: &CutScenario) -> Option<SourceMark> {
        let mut sealed = self.source.progress.sealed(self.source.proof?);
        if !scenario.is_on(CutRule::MarkOfBegunAttempt) {
            sealed.attempt = self.garden.attempt;
        }
        Some(SourceMark::Passed(sealed))
    }

    /// The record that the gardenlet of A would send now.
    pub(super) fn new_record(&self, scenario: &CutScenario) -> Option<Conditional<Garden>> {
        let mut report = self.source.report?;
        if !scenario.is_on(CutRule::AttemptOfReport) {
            report.attempt = self.garden.attempt;
        }
        self.garden.hand_over(&MoveSeed::A, &report, true).ok()
    }

    /// The garden after the record has met the garden.
    pub(super) fn landed(&self, scenario: &CutScenario) -> Option<Garden> {
        let mut record = self.record.clone()?;
        match scenario.off {
            Some(CutRule::TestedRecord) => return Some(record.becomes),
            Some(CutRule::TestedAttempt) => record.tests.attempt = self.garden.attempt,
            _ => {}
        }
        record.applied_to(&self.garden)
    }

    /// Whether the process beside the etcd of A opens, or opens again.
    pub(super) fn may_open_again(&self, scenario: &CutScenario) -> bool {
        let garden = self.source_reaches_garden().then_some(&self.garden);
        let marks = self.marks(scenario);
        let me = epoch_of_source();
        if may_open_source(&marks, garden, &me) {
            return true;
        }
        let shows_me = garden.is_some_and(|garden| garden.is_owned_by(&me));
        let is_cancelled = shows_me && !self.is_passing();
        match scenario.off {
            Some(CutRule::GivenUpByWrite) => shows_me && marks.beside_data.is_some(),
            Some(CutRule::NewVolumeNeedsLaterAttempt) => shows_me && marks.beside_data.is_none(),
            Some(CutRule::AttemptOutlivesCancellation) => is_cancelled,
            _ => false,
        }
    }

    /// The proof by which B decides whether to follow again.
    pub(super) fn follow_proof(&self, scenario: &CutScenario) -> FollowProof {
        let is_kept = scenario.is_on(CutRule::ProofKeptUntilGivenUp) || self.recorded.is_some();
        FollowProof {
            proved: self.destination.proved.filter(|_| is_kept),
            is_follower_closed: !self.destination.follows,
        }
    }

    pub(super) fn recorded_end(&self) -> Option<FollowedEnd> {
        self.recorded.as_ref()?.followed
    }

    /// The answer of the garden to B: owned or lost.
    pub(super) fn read_record(&self, scenario: &CutScenario) -> Option<bool> {
        let cached = self
            .recorded
            .as_ref()
            .filter(|_| !scenario.is_on(CutRule::FreshRead));
        let garden = cached.unwrap_or(&self.garden);
        owned(record_testimony(garden, &epoch_of_destination()))
    }

    /// The answer of DNS, and of B's own bucket where DNS shows an earlier epoch.
    pub(super) fn witnesses(&self) -> Option<bool> {
        match self.zone {
            1 => owned(OwnershipObject::testimony(self.own_bucket.as_ref())),
            zone => Some(zone == 2),
        }
    }

    pub(super) fn may_open_destination(&self, scenario: &CutScenario) -> bool {
        let destination = &self.destination;
        let Some(recorded) = self.recorded.as_ref().filter(|_| destination.knows_record) else {
            return false;
        };
        let mut proof = FollowProof {
            proved: destination.proved,
            is_follower_closed: !destination.follows || !scenario.is_on(CutRule::FollowerCloses),
        };
        if !scenario.is_on(CutRule::ProofMatchesRecord) {
            proof.proved = recorded.followed.map(|end| SealedAttempt { attempt: 0, end });
        }
        let seen = Evidence {
            earlier_pods_gone: true,
            final_seen: false,
            fence_passed: false,
            copied: None,
        };
        may_open_live(recorded, &epoch_of_destination(), &proof, seen).is_ok()
    }

    /// The epoch that the waiting request carries to the gate of `epoch`.
    pub(super) fn forwarded(&self, scenario: &CutScenario, epoch: i64) -> Option<i64> {
        let carried = self.write?.carried;
        match scenario.off {
            Some(CutRule::ForwardedToLaterEpoch) => Some(epoch),
            Some(CutRule::ForwardedTwice) => carried.is_none().then_some(epoch),
            _ => forwarded_epoch(carried, epoch),
        }
    }

    /// Without clocks, a third seed opens only where the owner is dead.
    pub(super) fn fence_has_passed(&self, scenario: &CutScenario) -> bool {
        if !scenario.timed {
            return true;
        }
        let fence = self.next.and_then(|next| next.fence);
        let shown = fence.map(|passed| NOW.saturating_sub(seconds(passed)));
        scenario.fence_terms().fence_has_passed(shown, NOW)
    }
}
