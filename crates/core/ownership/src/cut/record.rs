//! The steps of a live move in the garden.

use crate::conditional::Conditional;
use crate::phase::{Approval, Chain, Ownership, Phase, Refused, SeedEpoch, Step, Writer};

/// The running digest over all revisions of an etcd: key, value, version, revisions, lease and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryDigest(pub [u8; 32]);

/// The last revision of the source, and the digest of the history up to this revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FollowedEnd {
    /// The last revision.
    pub revision: i64,
    /// The digest at that revision.
    pub digest: HistoryDigest,
}

/// An attempt with a proved end: beside the source's data the mark of the shut gate and the report for the
/// record, beside the destination's data the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SealedAttempt {
    /// The attempt of the mark. The record tests this number, never the number that the garden shows when the
    /// record is written: the report may be of an attempt that was given up.
    pub attempt: u32,
    /// The end of the source's history.
    pub end: FollowedEnd,
}

/// The ownership of a shoot whose move can be live. The part is read, tested and written as a whole.
///
/// While a cut is possible, the phase is `Leaving` and `passing_to` names the destination ("phase Passing").
/// So a process that knows phases alone treats the shoot as in `Leaving`: the move can be cancelled in the
/// same epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LiveOwnership<S> {
    /// Epoch, phase, chain and the earlier owner.
    pub ownership: Ownership<S>,
    /// The destination of the present attempt.
    pub passing_to: Option<S>,
    /// The number of the present attempt, or of the last attempt of this epoch. Never goes back within an
    /// epoch: a record of an earlier attempt may be under way for any time.
    pub attempt: u32,
    /// The proved end with which this epoch begins, where the epoch began with a record.
    pub followed: Option<FollowedEnd>,
}

impl<S: Clone + PartialEq> LiveOwnership<S> {
    /// The ownership without a live move.
    #[must_use]
    pub fn of_epoch(ownership: Ownership<S>) -> Self {
        Self {
            ownership,
            passing_to: None,
            attempt: 0,
            followed: None,
        }
    }

    /// The leaving owner begins an attempt.
    ///
    /// # Errors
    /// The writer is not the owner, or the owner does not leave.
    pub fn begin_passing(&self, by: &S, to: S) -> Result<Conditional<Self>, Refused> {
        self.check_owner(by)?;
        if self.ownership.phase != Phase::Leaving || self.passing_to.is_some() {
            return Err(Refused::Phase);
        }
        Ok(self.becomes(Self {
            passing_to: Some(to),
            ..self.in_next_attempt()
        }))
    }

    /// The owner gives the present attempt up and begins the next attempt. After this write the record of the
    /// given up attempt is refused, so the owner may open again.
    ///
    /// # Errors
    /// The writer is not the owner, or no attempt was begun.
    pub fn give_up(&self, by: &S) -> Result<Conditional<Self>, Refused> {
        self.check_passing(by)?;
        Ok(self.becomes(self.in_next_attempt()))
    }

    /// The owner cancels the move and continues in the same epoch. That ends the attempt, too.
    ///
    /// # Errors
    /// The writer is not the owner, or the owner does not leave.
    pub fn cancel(&self, by: &S) -> Result<Conditional<Self>, Refused> {
        let held = self
            .ownership
            .step(&Writer::Seed(by.clone()), Step::CancelLeave)?;
        Ok(self.becomes(Self {
            ownership: held.becomes,
            passing_to: None,
            ..self.in_next_attempt()
        }))
    }

    /// The record: hands the shoot over to the destination of the sealed attempt. The point of no return.
    /// `drained`: no request of this owner to a cloud is unanswered, and none will leave.
    ///
    /// # Errors
    /// The writer is not the owner, or the sealed attempt is not the present attempt.
    pub fn hand_over(
        &self,
        by: &S,
        sealed: &SealedAttempt,
        drained: bool,
    ) -> Result<Conditional<Self>, Refused> {
        let to = self.check_passing(by)?;
        if self.attempt != sealed.attempt {
            return Err(Refused::Phase);
        }
        let granted = self.ownership.granted(to, drained);
        Ok(self.becomes(Self {
            ownership: Ownership {
                phase: Phase::Opening,
                chain: Some(Chain::Final),
                ..granted
            },
            passing_to: None,
            attempt: 0,
            followed: Some(sealed.end),
        }))
    }

    /// A hand-over without the source, as in every move: no destination of an attempt becomes the owner by
    /// this write.
    ///
    /// # Errors
    /// The approval is for a different owner or epoch.
    pub fn grant(&self, approval: Approval<S>) -> Result<Conditional<Self>, Refused> {
        let granted = self.ownership.step(&Writer::Garden, Step::Grant(approval))?;
        Ok(self.becomes(Self::of_epoch(granted.becomes)))
    }

    /// Whether this seed owns the shoot in this epoch.
    #[must_use]
    pub fn is_owned_by(&self, owner: &SeedEpoch<S>) -> bool {
        self.ownership.now == *owner
    }

    fn check_owner(&self, by: &S) -> Result<(), Refused> {
        (self.ownership.now.seed == *by)
            .then_some(())
            .ok_or(Refused::Writer)
    }

    fn check_passing(&self, by: &S) -> Result<S, Refused> {
        self.check_owner(by)?;
        self.passing_to.clone().ok_or(Refused::Phase)
    }

    fn in_next_attempt(&self) -> Self {
        Self {
            attempt: self.attempt.saturating_add(1),
            ..self.clone()
        }
    }

    fn becomes(&self, becomes: Self) -> Conditional<Self> {
        Conditional {
            tests: self.clone(),
            becomes,
        }
    }
}
