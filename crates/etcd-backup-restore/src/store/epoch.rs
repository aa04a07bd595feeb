//! To which history of a shoot an object belongs.
//!
//! Each hand-over of a shoot begins a history of its own, numbered by the ownership epoch; etcd's revisions
//! go on, so names alone cannot tell two histories apart. Beside the folder of the snapshots lie:
//!
//! - `epochs/<epoch>/<name of a snapshot>`: the snapshot was taken in this epoch. Written before the snapshot
//!   can be seen. A snapshot without one belongs to the first epoch, so that a shoot that never moved has
//!   none.
//! - `chains/<epoch>.json`: the chain that this epoch begins with, chosen once ([`Recorded`]). Its snapshots
//!   keep the epoch in which they were taken.
//! - `ownership.json`: whose the store is, written by the BackupEntry's actuator, never made here.

use crate::chain::Chain;
use crate::snapshot_name::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The epoch of everything that names none.
pub const FIRST: i64 = 1;

/// The chain that an epoch begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The epoch that begins.
    pub epoch: i64,
    /// The epoch whose end this is.
    pub origin: i64,
    /// Names of the snapshots, the full one first.
    pub snapshots: Vec<String>,
    /// Revision that a restore reaches.
    pub last_revision: i64,
    /// The chain holds every change that `origin` has acknowledged: nobody remembers a higher revision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

impl Recorded {
    /// This chain, for an epoch that begins with the end of `origin`.
    #[must_use]
    pub fn of(chain: &Chain, epoch: i64, origin: i64) -> Self {
        Self {
            epoch,
            origin,
            snapshots: chain.objects().map(ToString::to_string).collect(),
            last_revision: chain.last_revision(),
            complete: false,
        }
    }

    /// Whether a chain is this one, and holds everything.
    #[must_use]
    pub fn is_complete(&self, chain: &Chain) -> bool {
        self.complete
            && chain
                .objects()
                .map(ToString::to_string)
                .eq(self.snapshots.iter().cloned())
    }
}

/// The part of a listing that is one history.
pub(super) fn history(listing: Vec<Snapshot>, epoch: i64, recorded: Option<&Recorded>) -> Vec<Snapshot> {
    let begun_with: BTreeSet<&String> = recorded.iter().flat_map(|chain| &chain.snapshots).collect();
    listing
        .into_iter()
        .filter(|snapshot| snapshot.epoch == epoch || begun_with.contains(&snapshot.to_string()))
        .collect()
}

/// The newest epoch of a listing that is before another.
pub(super) fn newest_below(listing: &[Snapshot], epoch: i64) -> i64 {
    let epochs = listing.iter().map(|snapshot| snapshot.epoch);
    epochs.filter(|found| *found < epoch).max().unwrap_or(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full, last};

    fn of(epoch: i64, snapshot: &Snapshot) -> Snapshot {
        Snapshot {
            epoch,
            ..snapshot.clone()
        }
    }

    /// A to B to A with A cut off: its bucket holds what it wrote in epoch 1, also after B took over, and
    /// what was copied.
    #[test]
    fn leftovers_of_another_history_are_not_seen() {
        let listing = vec![
            of(1, &full(10, 1)),
            of(1, &delta(11, 20, 2)),
            of(1, &delta(21, 900, 3)),
            of(1, &last(950, 9)),
            of(2, &full(30, 4)),
            of(2, &delta(31, 40, 5)),
            of(3, &delta(41, 50, 6)),
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
