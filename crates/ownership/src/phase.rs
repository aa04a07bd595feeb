//! What the garden keeps of a shoot's ownership, and who may write which step: a pure function.
//! `docs/understand/ownership.md`, "Moves".

use crate::conditional::Conditional;
use crate::witness::Testimony;

/// How far an epoch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The owner acts.
    Held,
    /// The owner stops what acts outside. It can still be called off in the same epoch.
    Leaving,
    /// The owner's etcd never serves again in this epoch.
    Sealing,
    /// A new owner was named; it fences the earlier one. Only a new epoch leads back.
    Claiming,
    /// The new owner may open etcd, with the chain that is recorded. From here on its data are the shoot's.
    Opening,
}

/// Which data of the source an owner begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chain {
    /// Up to the final snapshot: nothing is lost.
    Final,
    /// Up to the last that was uploaded when the fence had passed.
    Last,
}

/// A seed in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stay<S> {
    /// Where.
    pub seed: S,
    /// Which time.
    pub epoch: i64,
}

/// The Shoot's status as far as it is about ownership. It is read, tested and written as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ownership<S> {
    /// The owner, or who is becoming it.
    pub now: Stay<S>,
    /// How far it is.
    pub phase: Phase,
    /// No request of the source to a cloud is unanswered, and none will leave.
    pub drained: bool,
    /// The last epoch before this one that was opened: its bucket has the data and is the second witness.
    /// None in the first.
    pub source: Option<Stay<S>>,
    /// Which of the source's data were chosen: once in an epoch.
    pub chain: Option<Chain>,
}

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Writer<S> {
    /// The gardenlet of this seed.
    Seed(S),
    /// The garden-controller-manager.
    Garden,
}

/// Consent to one hand-over without the source's help. Its epoch makes it good for one use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Approval<S> {
    /// The owner that is given up.
    pub from: Stay<S>,
    /// The new owner. It may be the same seed.
    pub to: S,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step<S> {
    /// The owner begins to leave.
    Leave,
    /// The owner is called off while it is leaving.
    Stay,
    /// The owner will not serve again.
    Seal,
    /// The owner, sealed, gives the shoot to another seed. The point of no return.
    HandOver {
        /// The new owner.
        to: S,
        /// The final snapshot of this epoch was seen in the bucket.
        final_seen: bool,
        /// Nothing of this owner's is unanswered, and nothing will leave: judged now, not when it began to
        /// leave.
        drained: bool,
    },
    /// A hand-over without the source: a dead one, a destination that died, a call-off after the point of no
    /// return.
    Grant(Approval<S>),
    /// The new owner has chosen its data.
    Open(Chain),
    /// The new owner may act outside, and acts.
    Hold,
}

/// Why a step is no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Somebody else's step.
    #[error("this writer may not take this step")]
    Writer,
    /// Not from here.
    #[error("this step does not follow from the present phase")]
    Phase,
    /// Consent to something else.
    #[error("the approval is for another owner or epoch")]
    Approval,
    /// Writes could be lost that were acknowledged.
    #[error("the final snapshot of this epoch was not seen")]
    NoFinalSnapshot,
}

impl<S: Clone + PartialEq> Ownership<S> {
    /// The ownership of a shoot that is created.
    pub fn first(seed: S) -> Self {
        Self {
            now: Stay { seed, epoch: 1 },
            phase: Phase::Held,
            drained: false,
            source: None,
            chain: None,
        }
    }

    /// The write that takes a step, if this writer may take it from what it has read.
    pub fn step(&self, by: &Writer<S>, step: Step<S>) -> Result<Conditional<Self>, Refused> {
        let is_owner = matches!(by, Writer::Seed(seed) if *seed == self.now.seed);
        let may = match step {
            Step::Grant(_) => *by == Writer::Garden,
            _ => is_owner,
        };
        if !may {
            return Err(Refused::Writer);
        }
        let becomes = match (self.phase, step) {
            (Phase::Held, Step::Leave) => self.in_phase(Phase::Leaving),
            (Phase::Leaving, Step::Stay) | (Phase::Opening, Step::Hold) => self.in_phase(Phase::Held),
            (Phase::Leaving, Step::Seal) => self.in_phase(Phase::Sealing),
            (Phase::Sealing, Step::HandOver { final_seen, .. }) if !final_seen => {
                return Err(Refused::NoFinalSnapshot);
            }
            (Phase::Sealing, Step::HandOver { to, drained, .. }) => self.granted(to, drained),
            (_, Step::Grant(approval)) if approval.from != self.now => return Err(Refused::Approval),
            (_, Step::Grant(approval)) => self.granted(approval.to, false),
            (Phase::Claiming, Step::Open(chain)) => Self {
                chain: Some(chain),
                ..self.in_phase(Phase::Opening)
            },
            _ => return Err(Refused::Phase),
        };
        Ok(Conditional {
            tests: self.clone(),
            becomes,
        })
    }

    /// Whether this seed may delete the shoot. A claimant finishes first.
    pub fn may_be_deleted_by(&self, seed: &S) -> bool {
        self.phase == Phase::Held && self.now.seed == *seed
    }

    /// What the garden says as the second witness of a seed's gardenlet. The seed to which the shoot was
    /// given acts in its epoch, and nobody else does: one that has claimed it writes its own record before
    /// any other witness can tell.
    pub fn testimony(&self, to: &S) -> Testimony {
        let epoch = self.now.epoch;
        match self.phase {
            _ if self.now.seed != *to => Testimony::Claimed { epoch },
            Phase::Held | Phase::Leaving | Phase::Claiming | Phase::Opening => {
                Testimony::Owned { epoch, left: None }
            }
            Phase::Sealing => Testimony::Sealed { epoch },
        }
    }

    fn in_phase(&self, phase: Phase) -> Self {
        Self {
            phase,
            ..self.clone()
        }
    }

    fn granted(&self, to: S, drained: bool) -> Self {
        let has_opened = self.phase != Phase::Claiming;
        Self {
            now: Stay {
                seed: to,
                epoch: self.now.epoch + 1,
            },
            phase: Phase::Claiming,
            drained,
            source: if has_opened {
                Some(self.now.clone())
            } else {
                self.source.clone()
            },
            chain: None,
        }
    }
}
