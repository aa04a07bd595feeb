//! Assigns objects to the histories of a shoot.
//!
//! Each hand-over of a shoot begins a new history, numbered by the ownership epoch. etcd's revisions
//! continue, so names alone cannot distinguish two histories. Beside the folder of the snapshots lie:
//!
//! - `epochs/<epoch>/<name of a snapshot>`: the snapshot was taken in this epoch. Written before the snapshot
//!   becomes visible. A snapshot without such a file belongs to the first epoch, so the store of a shoot that
//!   never moved has no such files.
//! - `chains/<epoch>.json`: the chain with which this epoch begins, chosen once ([`Recorded`]). Its snapshots
//!   keep the epoch in which they were taken.
//! - `ownership.json`: the owner of the store. The BackupEntry's actuator writes the file; this process never
//!   creates the file.

use crate::chain::Chain;
use crate::snapshot_name::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The epoch of every object without an epoch mark.
pub const FIRST: i64 = 1;

/// The chain with which an epoch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The epoch that begins.
    pub epoch: i64,
    /// The earlier epoch whose data this chain holds.
    pub origin: i64,
    /// Names of the snapshots, the full snapshot first.
    pub snapshots: Vec<String>,
    /// Revision that a restore reaches.
    pub last_revision: i64,
    /// The chain holds every change that `origin` has acknowledged: no client remembers a higher revision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

impl Recorded {
    /// This chain, for an epoch that begins with the end of `origin`.
    #[must_use]
    pub fn from_chain(chain: &Chain, epoch: i64, origin: i64) -> Self {
        Self {
            epoch,
            origin,
            snapshots: chain.objects().map(ToString::to_string).collect(),
            last_revision: chain.last_revision(),
            complete: false,
        }
    }

    /// Whether `chain` is the recorded chain, and holds every acknowledged change.
    #[must_use]
    pub fn is_complete(&self, chain: &Chain) -> bool {
        self.complete
            && chain
                .objects()
                .map(ToString::to_string)
                .eq(self.snapshots.iter().cloned())
    }
}

/// The snapshots of a listing that belong to a single history.
pub(super) fn history(listing: Vec<Snapshot>, epoch: i64, recorded: Option<&Recorded>) -> Vec<Snapshot> {
    let begun_with: BTreeSet<&String> = recorded.iter().flat_map(|chain| &chain.snapshots).collect();
    listing
        .into_iter()
        .filter(|snapshot| snapshot.epoch == epoch || begun_with.contains(&snapshot.to_string()))
        .collect()
}

/// The newest epoch of a listing below `epoch`.
pub(super) fn newest_below(listing: &[Snapshot], epoch: i64) -> i64 {
    let epochs = listing.iter().map(|snapshot| snapshot.epoch);
    epochs.filter(|found| *found < epoch).max().unwrap_or(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full, last};

    fn at_epoch(epoch: i64, snapshot: &Snapshot) -> Snapshot {
        Snapshot {
            epoch,
            ..snapshot.clone()
        }
    }

    /// The shoot moved from A to B to A, with A cut off. A's bucket holds A's snapshots of epoch 1, including
    /// those written after B took over, and the copied snapshots.
    #[test]
    fn leftovers_of_another_history_are_not_seen() {
        let listing = vec![
            at_epoch(1, &full(10, 1)),
            at_epoch(1, &delta(11, 20, 2)),
            at_epoch(1, &delta(21, 900, 3)),
            at_epoch(1, &last(950, 9)),
            at_epoch(2, &full(30, 4)),
            at_epoch(2, &delta(31, 40, 5)),
            at_epoch(3, &delta(41, 50, 6)),
        ];
        let recorded = Recorded {
            epoch: 3,
            origin: 2,
            snapshots: vec![full(30, 4).to_string(), delta(31, 40, 5).to_string()],
            last_revision: 40,
            complete: false,
        };
        let mine = history(listing.clone(), 3, Some(&recorded));
        assert_eq!(mine, listing[4..]);
        assert_eq!(history(listing.clone(), 1, None), listing[..4]);
        assert_eq!(newest_below(&listing, 3), 2);
        assert_eq!(newest_below(&[], 3), FIRST);
    }
}
