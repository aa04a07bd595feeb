//! What an owner may do when: the end of an epoch in its sidecar, and the gates of the next one. Pure
//! functions.

use crate::phase::{Chain, Ownership, Phase, Stay};

/// What a sidecar does next when its epoch has ended. The gate in front of etcd has been shut before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealStep {
    /// The mark in the data directory, synced: a sidecar that is started anew must not serve after the final
    /// snapshot, whatever a server that is behind says.
    Marker,
    /// `ownership.json`. An unreachable bucket delays it and what follows, nothing else.
    Object,
    /// The final snapshot.
    FinalSnapshot,
}

/// What of a seal is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The mark is synced.
    pub marker: bool,
    /// The object says so, or a new owner has said more, or it is gone.
    pub object: bool,
    /// It is in the bucket.
    pub final_snapshot: bool,
}

impl Sealed {
    /// The next step, in this order. None: all is done.
    #[must_use]
    pub fn next(self) -> Option<SealStep> {
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

/// Whether the gate in front of etcd forwards, there and back.
#[must_use]
pub fn forwards(sealed: Sealed, permit_is_valid: bool) -> bool {
    permit_is_valid && !sealed.marker
}

/// What a new owner has seen of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// Every pod of its own earlier epochs is gone.
    pub earlier_pods_gone: bool,
    /// The final snapshot of the source is in its bucket.
    pub final_seen: bool,
    /// [`crate::Terms::fence_has_passed`].
    pub fence_passed: bool,
    /// Of which chain everything is in the own bucket. `Last` is complete only where it was looked for after
    /// the fence: until then the source may add to it.
    pub copied: Option<Chain>,
}

impl Evidence {
    /// What a copy has brought. `brought`: the chain that the copy has read and hashed, `Final` where that
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
            // A source that handed the shoot over has proved its final snapshot: no less than that is
            // awaited.
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

/// What a new owner waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Wait {
    /// For nothing: somebody else is the owner.
    #[error("the shoot was given to another seed or in another epoch")]
    NotGranted,
    /// For its own pods of before.
    #[error("pods of an earlier epoch are not gone")]
    EarlierPods,
    /// For data that can be had.
    #[error("not everything of the chain is copied")]
    Copy(Chain),
    /// For its source.
    #[error("neither was the final snapshot seen nor has the fence passed")]
    Source,
}

/// Gate E: with which data etcd may be opened. What is recorded stands, whatever has come since.
pub fn may_open<S: PartialEq>(garden: &Ownership<S>, me: &Stay<S>, seen: Evidence) -> Result<Chain, Wait> {
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

/// Gate C: whether clouds and users' DNS may be touched. The final snapshot says nothing of the source's
/// actuators.
pub fn may_act<S: PartialEq>(garden: &Ownership<S>, me: &Stay<S>, fence_passed: bool) -> bool {
    garden.now == *me && garden.phase == Phase::Opening && (garden.drained || fence_passed)
}

/// Whether data of an epoch, found in a data directory, are the shoot's in the epoch `now`, which goes on
/// with the end of `source`, where that was in the same place. All others are foreign and are put aside.
#[must_use]
pub fn keeps_data(now: i64, source: Option<i64>, data: i64) -> bool {
    data == now || Some(data) == source
}
