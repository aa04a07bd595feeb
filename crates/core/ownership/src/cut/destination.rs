//! The destination of a live move: when the destination follows, opens etcd, and has a permit.

use super::record::{LiveOwnership, SealedAttempt};
use crate::gates::{Evidence, Wait, may_open};
use crate::phase::{Chain, Phase, SeedEpoch};
use crate::witness::Testimony;

/// The proof beside the destination's data, and the state of the follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FollowProof {
    /// The attempt, and the end at which the digests were equal: synced beside the data before the source
    /// marks the end. The data alone cannot prove the end again, because the digest covers compacted
    /// revisions.
    pub proved: Option<SealedAttempt>,
    /// The follower has no connection to the source's etcd and sends no transaction to the own etcd.
    pub is_follower_closed: bool,
}

/// The reason why a destination does not open etcd yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FollowedWait {
    /// The etcd condition of a move in the stopped order.
    #[error(transparent)]
    Stopped(Wait),
    /// The data are not proved equal at the recorded end. The destination follows the sealed source again.
    #[error("the data are not proved equal at the recorded end")]
    Proof,
    /// The follower could still write.
    #[error("the follower still runs")]
    Follower,
}

/// Whether this seed may follow the source, which ends the present proof.
///
/// Before the record, the destination of an attempt follows. A proof of the present attempt stands until the
/// attempt is given up: the record may be under way, and the source may die. After the record, a destination
/// without the proof copies the sealed data up to the recorded end. The source keeps the data for that.
#[must_use]
pub fn may_follow<S: Clone + PartialEq>(
    garden: &LiveOwnership<S>,
    me: &SeedEpoch<S>,
    proof: &FollowProof,
    has_opened: bool,
) -> bool {
    match (garden.followed, proof.proved) {
        (Some(end), proved) if garden.is_owned_by(me) => {
            !has_opened && proved.is_none_or(|proved| proved.end != end)
        }
        (_, proved) => {
            let is_destination = garden.passing_to.as_ref() == Some(&me.seed);
            is_destination && proved.is_none_or(|proved| proved.attempt < garden.attempt)
        }
    }
}

/// The etcd condition with the third path of I2: the final snapshot, the fence, or data that a follower has
/// proved equal at the end that the record names.
///
/// # Errors
/// The reason to wait.
pub fn may_open_live<S: Clone + PartialEq>(
    garden: &LiveOwnership<S>,
    me: &SeedEpoch<S>,
    proof: &FollowProof,
    seen: Evidence,
) -> Result<Chain, FollowedWait> {
    let Some(end) = garden.followed else {
        return may_open(&garden.ownership, me, seen).map_err(FollowedWait::Stopped);
    };
    if !garden.is_owned_by(me) {
        return Err(FollowedWait::Stopped(Wait::NotGranted));
    }
    if !seen.earlier_pods_gone {
        return Err(FollowedWait::Stopped(Wait::EarlierPods));
    }
    if !proof.is_follower_closed {
        return Err(FollowedWait::Follower);
    }
    if proof.proved.is_none_or(|proved| proved.end != end) {
        return Err(FollowedWait::Proof);
    }
    Ok(Chain::Final)
}

/// The testimony of the garden for the process beside the destination's etcd, until the own bucket shows the
/// epoch. The record is the first witness of the new epoch: the source was proved shut before the record, so
/// no fence is needed. The read must not come from a cache, and counts from the moment of sending.
#[must_use]
pub fn record_testimony<S: Clone + PartialEq>(garden: &LiveOwnership<S>, me: &SeedEpoch<S>) -> Testimony {
    let ownership = &garden.ownership;
    let is_open = matches!(ownership.phase, Phase::Opening | Phase::Held | Phase::Leaving);
    if garden.is_owned_by(me) && (garden.followed.is_none() || !is_open) {
        return Testimony::Claimed { epoch: me.epoch };
    }
    ownership.testimony(&me.seed)
}
