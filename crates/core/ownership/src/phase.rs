//! The ownership of a shoot in the garden, and the permitted writer of each step: a pure function.
//! `docs/understand/ownership.md`, "Phases of an epoch".

use crate::conditional::Conditional;
use crate::witness::Testimony;

/// The progress of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The owner acts.
    Held,
    /// The owner stops the processes that act outside the seed. The move can still be cancelled in the same
    /// epoch.
    Leaving,
    /// The owner's etcd never serves again in this epoch.
    Sealing,
    /// A new owner was named and fences the earlier owner. Only a new epoch leads back.
    Claiming,
    /// The new owner may open etcd with the recorded chain. From here on the new owner's data are the shoot's
    /// data.
    Opening,
}

/// The snapshots of the source with which an owner begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chain {
    /// Up to the final snapshot: no write is lost.
    Final,
    /// Up to the last snapshot that was uploaded when the fence had passed.
    Last,
}

/// A seed in a single ownership epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeedEpoch<S> {
    /// The seed.
    pub seed: S,
    /// The epoch.
    pub epoch: i64,
}

impl<S: PartialEq> SeedEpoch<S> {
    /// Whether this seed still has the data of this epoch after a later residency in the same seed. `self`
    /// is the source of epoch `next`: the last epoch before `next` that was opened. No seed has opened an
    /// epoch between the two, so each residency in between has ended with the data of `self`.
    #[must_use]
    pub fn is_kept_in(&self, residency: &Self, next: i64) -> bool {
        self.seed == residency.seed && (self.epoch..next).contains(&residency.epoch)
    }
}

/// The ownership part of the Shoot's status. The part is read, tested and written as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ownership<S> {
    /// The owner, or the seed that is becoming the owner.
    pub now: SeedEpoch<S>,
    /// The progress of the epoch.
    pub phase: Phase,
    /// The source handed the shoot over in a planned move: all its extension objects were released, every
    /// request of the source to a cloud was answered, and no further request will leave.
    pub drained: bool,
    /// The last epoch before this epoch that was opened: its bucket has the data and is the second witness.
    /// `None` in the first epoch.
    pub source: Option<SeedEpoch<S>>,
    /// The chosen chain of the source's data: chosen once in an epoch.
    pub chain: Option<Chain>,
}

/// The process that writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Writer<S> {
    /// The gardenlet of this seed.
    Seed(S),
    /// The garden-controller-manager.
    Garden,
}

/// Consent to a single hand-over without the source's help. The epoch makes the consent valid for a single
/// use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Approval<S> {
    /// The owner that loses the shoot.
    pub from: SeedEpoch<S>,
    /// The new owner. May be the same seed.
    pub to: S,
}

/// A step of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step<S> {
    /// The owner begins to leave.
    Leave,
    /// The move is cancelled while the owner is leaving.
    CancelLeave,
    /// The owner will not serve again.
    Seal,
    /// The sealed owner hands the shoot over to another seed. The point of no return.
    HandOver {
        /// The new owner.
        to: S,
        /// The final snapshot of this epoch was seen in the bucket.
        final_seen: bool,
        /// No request of this owner is unanswered, and none will leave: judged at this step, not at the begin
        /// of `Leaving`.
        drained: bool,
    },
    /// A hand-over without the source: the source is dead, a destination died, or the move is cancelled after
    /// the point of no return.
    Grant(Approval<S>),
    /// The owner record still names the source, so that the hand-over is not confirmed: the new owner fences
    /// the source.
    DoubtHandOver,
    /// The new owner has chosen the data.
    Open(Chain),
    /// The new owner may act outside the seed, and acts.
    Hold,
}

/// The reason why a step is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The step belongs to another writer.
    #[error("this writer may not take this step")]
    Writer,
    /// The step does not follow from the present phase.
    #[error("this step does not follow from the present phase")]
    Phase,
    /// The approval is for another owner or epoch.
    #[error("the approval is for another owner or epoch")]
    Approval,
    /// Acknowledged writes could be lost.
    #[error("the final snapshot of this epoch was not seen")]
    NoFinalSnapshot,
}

impl<S: Clone + PartialEq> Ownership<S> {
    /// The ownership of a shoot that is created.
    pub fn first(seed: S) -> Self {
        Self {
            now: SeedEpoch { seed, epoch: 1 },
            phase: Phase::Held,
            drained: false,
            source: None,
            chain: None,
        }
    }

    /// The write that takes a step, if this writer may take the step from the state that was read.
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
            (Phase::Leaving, Step::CancelLeave) | (Phase::Opening, Step::Hold) => self.in_phase(Phase::Held),
            (Phase::Leaving, Step::Seal) => self.in_phase(Phase::Sealing),
            (Phase::Sealing, Step::HandOver { final_seen, .. }) if !final_seen => {
                return Err(Refused::NoFinalSnapshot);
            }
            (Phase::Sealing, Step::HandOver { to, drained, .. }) => self.granted(to, drained),
            (_, Step::Grant(approval)) if approval.from != self.now => return Err(Refused::Approval),
            (_, Step::Grant(approval)) => self.granted(approval.to, false),
            (Phase::Claiming, Step::DoubtHandOver) if self.drained => Self {
                drained: false,
                ..self.clone()
            },
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

    /// The record on which the gardenlet of the seed relies. `has_opened`: that gardenlet has noted in the
    /// seed that the gardenlet has chosen the data of this epoch. Without the note, a stolen certificate of
    /// the gardenlet may have recorded the phases after `Claiming`. The seed then fences the source and
    /// chooses the data, as after a grant without the help of the source. No seed claims the first epoch, and
    /// an epoch in `Sealing` ends anyway.
    #[must_use]
    pub fn as_noted(&self, has_opened: bool) -> Self {
        let is_after_choice = matches!(self.phase, Phase::Opening | Phase::Held | Phase::Leaving);
        if has_opened || !is_after_choice || self.source.is_none() {
            return self.clone();
        }
        Self {
            drained: false,
            chain: None,
            ..self.in_phase(Phase::Claiming)
        }
    }

    /// Whether this seed may delete the shoot. A claimant finishes first.
    pub fn may_be_deleted_by(&self, seed: &S) -> bool {
        self.phase == Phase::Held && self.now.seed == *seed
    }

    /// Whether a grant to the seed of this earlier residency continues with the data in that seed. The
    /// present claimant has opened no data, and no seed has opened an epoch after the data of this residency.
    /// A seed that took the shoot back and lost the shoot before `Opening` has the data of an earlier epoch.
    pub fn may_return_to(&self, residency: &SeedEpoch<S>) -> bool {
        let source = self.source.as_ref();
        self.phase == Phase::Claiming
            && source.is_some_and(|source| source.is_kept_in(residency, self.now.epoch))
    }

    /// Whether the seed of this earlier residency has never opened the data, and the last opened data are in
    /// a different seed. Neither the present epoch nor a return needs an object in the seed then.
    pub fn opened_nothing_in(&self, residency: &SeedEpoch<S>) -> bool {
        let is_between = |opened: i64| opened < residency.epoch && residency.epoch < self.now.epoch;
        let source = self.source.as_ref();
        source.is_some_and(|source| source.seed != residency.seed && is_between(source.epoch))
    }

    /// The testimony of the garden as the second witness of a seed's gardenlet. Only the seed that the garden
    /// names acts in the present epoch. That includes a claimant, because a claimant writes the owner record
    /// before any other witness can confirm the claimant.
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

    pub(crate) fn granted(&self, to: S, drained: bool) -> Self {
        let has_opened = self.phase != Phase::Claiming;
        Self {
            now: SeedEpoch {
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
