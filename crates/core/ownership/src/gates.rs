//! The conditions of an owner's actions: the end of an epoch in the sidecar, and the gates of the next epoch.
//! Pure functions.

use crate::phase::{Chain, Ownership, Phase, SeedEpoch};

/// The next step of a sidecar whose epoch has ended. The gate in front of etcd has been shut before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealStep {
    /// Write and sync the mark in the data directory. A sidecar that is started again must not serve after
    /// the final snapshot, also when a DNS server is behind.
    Marker,
    /// Write `ownership.json`. An unreachable bucket delays only this step and the steps after it.
    Object,
    /// Take the final snapshot.
    FinalSnapshot,
}

/// The finished steps of a seal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SealProgress {
    /// The mark is synced.
    pub marker: bool,
    /// The object shows `Sealed`, or a new owner has written a later state, or the object is missing.
    pub object: bool,
    /// The final snapshot is in the bucket.
    pub final_snapshot: bool,
}

impl SealProgress {
    /// The next step, in this order; `None` when all steps are done.
    #[must_use]
    pub fn next_step(self) -> Option<SealStep> {
        match self {
            Self { marker: false, .. } => Some(SealStep::Marker),
            Self { object: false, .. } => Some(SealStep::Object),
            Self {
                final_snapshot: false,
                ..
            } => Some(SealStep::FinalSnapshot),
            _ => None,
        }
    }
}

/// Whether the gate in front of etcd forwards, in both directions.
#[must_use]
pub fn forwards(sealed: SealProgress, permit_is_valid: bool) -> bool {
    permit_is_valid && !sealed.marker
}

/// The facts that a new owner has observed about the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// Every pod of this seed's earlier epochs is gone.
    pub earlier_pods_gone: bool,
    /// The final snapshot of the source is in the source's bucket.
    pub final_seen: bool,
    /// [`crate::Terms::fence_has_passed`].
    pub fence_passed: bool,
    /// The chain that is completely copied to this seed's bucket. `Last` is complete only if the copy listed
    /// the source's bucket after the fence: until then the source may add to the chain.
    pub copied: Option<Chain>,
}

impl Evidence {
    /// The evidence after a copy. `brought`: the chain that the copy has read and hashed, `Final` where that
    /// chain holds every write of the source. `loss_is_accepted`: the chain holds less than the hand-over
    /// recorded, and a person accepts the loss.
    #[must_use]
    pub fn after_copy<S>(
        garden: &Ownership<S>,
        brought: Option<Chain>,
        loss_is_accepted: bool,
        fence_passed: bool,
    ) -> Self {
        let handed_over = garden.drained;
        Self {
            earlier_pods_gone: false,
            // A source that handed the shoot over has proved the final snapshot, so the destination waits for
            // no less.
            final_seen: if handed_over {
                !loss_is_accepted
            } else {
                fence_passed && brought == Some(Chain::Final)
            },
            fence_passed: fence_passed || (handed_over && loss_is_accepted),
            copied: garden.chain.or(brought),
        }
    }
}

/// The condition that a new owner waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Wait {
    /// No wait helps: another seed or epoch owns the shoot.
    #[error("the shoot was given to another seed or in another epoch")]
    NotGranted,
    /// The pods of this seed's earlier epochs.
    #[error("pods of an earlier epoch are not gone")]
    EarlierPods,
    /// The copy of this chain.
    #[error("not everything of the chain is copied")]
    Copy(Chain),
    /// The source: the final snapshot or the fence.
    #[error("neither was the final snapshot seen nor has the fence passed")]
    Source,
}

/// The etcd condition: the chain with which etcd may be opened. A recorded chain stands, also if the source
/// uploads a later snapshot.
pub fn may_open<S: PartialEq>(
    garden: &Ownership<S>,
    me: &SeedEpoch<S>,
    seen: Evidence,
) -> Result<Chain, Wait> {
    if garden.now != *me || garden.phase == Phase::Sealing {
        return Err(Wait::NotGranted);
    }
    if !seen.earlier_pods_gone {
        return Err(Wait::EarlierPods);
    }
    let chain = match garden.chain {
        Some(chain) => chain,
        None if seen.final_seen => Chain::Final,
        None if seen.fence_passed => Chain::Last,
        None => return Err(Wait::Source),
    };
    if seen.copied == Some(chain) {
        Ok(chain)
    } else {
        Err(Wait::Copy(chain))
    }
}

/// The cloud condition: whether clouds and users' DNS may be changed. The final snapshot proves nothing about
/// the source's actuators.
pub fn may_act<S: PartialEq>(garden: &Ownership<S>, me: &SeedEpoch<S>, fence_passed: bool) -> bool {
    garden.now == *me && garden.phase == Phase::Opening && (garden.drained || fence_passed)
}

/// Whether data of epoch `data`, found in a data directory, belong to the shoot in epoch `now`. `source` is
/// the epoch whose end this epoch continues, where the data are in the same place. All other data are foreign
/// and are put aside.
#[must_use]
pub fn keeps_data(now: i64, source: Option<i64>, data: i64) -> bool {
    data == now || Some(data) == source
}
