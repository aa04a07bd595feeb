//! Selects the objects of a store that make a database: a full snapshot and every delta after it, without a
//! hole.
//!
//! Pure functions: listings in, decisions out.

use crate::error::{Class, Error, Result};
use crate::snapshot_name::{Kind, Snapshot};

/// A full snapshot and the deltas that continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The full snapshot with which the restore begins.
    pub full: Snapshot,
    /// In order; each delta begins where the delta before ended.
    pub deltas: Vec<Snapshot>,
}

impl Chain {
    /// The revision that a restore of this chain must reach.
    #[must_use]
    pub fn last_revision(&self) -> i64 {
        self.deltas.last().map_or(self.full.last_revision, |d| {
            d.last_revision.max(self.full.last_revision)
        })
    }

    /// Whether the chain ends with the last snapshot of an earlier epoch, and not with the end of that epoch.
    /// Then clients may have been given revisions above the chain's last revision. `origin` names the epoch
    /// with whose end this epoch begins; a final snapshot of an epoch before `origin` is not that end.
    #[must_use]
    pub fn breaks_off_before(&self, epoch: i64, origin: Option<i64>) -> bool {
        let last = self.last();
        let is_end = last.is_final && origin.is_none_or(|origin| last.epoch >= origin);
        last.epoch < epoch && !is_end
    }

    /// The newest object.
    #[must_use]
    pub fn last(&self) -> &Snapshot {
        self.deltas.last().unwrap_or(&self.full)
    }

    /// All objects, the full snapshot first.
    pub fn objects(&self) -> impl Iterator<Item = &Snapshot> {
        std::iter::once(&self.full).chain(&self.deltas)
    }
}

/// Full snapshots, newest first: by revision, then by age; of equals the final snapshot is preferred.
#[must_use]
pub fn fulls_newest_first(listing: &[Snapshot]) -> Vec<&Snapshot> {
    let mut fulls: Vec<_> = listing.iter().filter(|s| s.kind == Kind::Full).collect();
    fulls.sort_by_key(|s| std::cmp::Reverse((s.last_revision, s.is_final, s.created)));
    fulls
}

/// The newest chain, or `None` where there is no snapshot at all.
///
/// A hole, or deltas without a full snapshot, is an error and never "the part before the hole". Restoring
/// less than the store promises would silently lose acknowledged writes.
pub fn newest(listing: &[Snapshot]) -> Result<Option<Chain>> {
    match reachable(listing)? {
        Some((_, Some(hole))) => Err(hole),
        found => Ok(found.map(|(chain, _)| chain)),
    }
}

/// The newest full snapshot with the deltas up to the first hole, and the hole. Only a copy that reports the
/// lost revisions may use a chain with a hole.
pub(crate) fn reachable(listing: &[Snapshot]) -> Result<Option<(Chain, Option<Error>)>> {
    let Some(full) = fulls_newest_first(listing).first().copied() else {
        return match listing.iter().find(|s| s.kind == Kind::Delta) {
            None => Ok(None),
            Some(delta) => Err(Error::new(
                Class::SnapshotMissing,
                format!("the store holds {delta} but no full snapshot before it; put the full snapshot back"),
            )),
        };
    };
    let (deltas, hole) = continuation(full.last_revision, full, listing);
    let full = full.clone();
    Ok(Some((Chain { full, deltas }, hole)))
}

/// The deltas that continue an etcd at a revision, and the first hole.
pub(crate) fn deltas_after(revision: i64, listing: &[Snapshot]) -> (Vec<Snapshot>, Option<Error>) {
    continuation(revision, &"the revision of the local etcd", listing)
}

/// The deltas after the reached revision, which `first` names, and the first hole. Overlaps are allowed: a
/// restore skips revisions that the database already has.
fn continuation(
    mut reached: i64,
    first: &dyn std::fmt::Display,
    listing: &[Snapshot],
) -> (Vec<Snapshot>, Option<Error>) {
    let mut later: Vec<_> = listing
        .iter()
        .filter(|s| s.kind == Kind::Delta && s.last_revision > reached)
        .collect();
    later.sort_by_key(|s| (s.start_revision, std::cmp::Reverse(s.last_revision), s.created));
    let mut deltas = Vec::<Snapshot>::new();
    for delta in later {
        if delta.start_revision > reached + 1 {
            let hole = Error::new(
                Class::SnapshotMissing,
                format!(
                    "revisions {} to {} are in no snapshot: {delta} follows {}; put the missing delta snapshot back, \
                     or remove the later ones if their changes may be lost",
                    reached + 1,
                    delta.start_revision - 1,
                    deltas.last().map_or(first, |last| last as &dyn std::fmt::Display),
                ),
            );
            return (deltas, Some(hole));
        }
        if delta.last_revision > reached {
            reached = delta.last_revision;
            deltas.push(delta.clone());
        }
    }
    (deltas, None)
}

/// The final snapshot that marks the end of the source, if there is such a snapshot.
///
/// The final snapshot need not be the newest object: a full snapshot may have been taken at the same
/// revision. A store of a shoot that left and came back holds an old final snapshot. A final snapshot counts
/// if no snapshot goes beyond its revision (R17-27).
#[must_use]
pub fn final_snapshot(listing: &[Snapshot]) -> Option<&Snapshot> {
    finals(listing).next()
}

/// Like [`final_snapshot`], but only for this epoch: the epoch may begin with the final snapshot of an
/// earlier epoch.
#[must_use]
pub fn final_snapshot_of(epoch: i64, listing: &[Snapshot]) -> Option<&Snapshot> {
    finals(listing).find(|snapshot| snapshot.epoch == epoch)
}

fn finals(listing: &[Snapshot]) -> impl Iterator<Item = &Snapshot> {
    let end = listing.iter().map(|s| s.last_revision).max();
    fulls_newest_first(listing)
        .into_iter()
        .filter(move |s| s.is_final && Some(s.last_revision) == end)
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub(crate) fn full(revision: i64, created: i64) -> Snapshot {
        Snapshot::parse(&format!("Full-00000000-{revision:08}-{created}.gz")).unwrap()
    }
    pub(crate) fn last(revision: i64, created: i64) -> Snapshot {
        Snapshot {
            is_final: true,
            ..full(revision, created)
        }
    }
    pub(crate) fn delta(from: i64, to: i64, created: i64) -> Snapshot {
        Snapshot::parse(&format!("Incr-{from:08}-{to:08}-{created}.gz")).unwrap()
    }

    #[test]
    fn an_empty_store_is_a_fresh_start() {
        assert_eq!(newest(&[]).unwrap(), None);
        assert_eq!(final_snapshot(&[]), None);
    }

    #[test]
    fn the_newest_full_and_its_deltas_in_any_order_of_listing() {
        let listing = [
            delta(21, 30, 5),
            full(5, 1),
            delta(6, 12, 2),
            full(15, 3),
            delta(13, 20, 4),
        ];
        let chain = newest(&listing).unwrap().unwrap();
        assert_eq!(chain.full, full(15, 3));
        assert_eq!(chain.deltas, [delta(13, 20, 4), delta(21, 30, 5)]);
        assert_eq!(chain.last_revision(), 30);
    }

    #[test]
    fn repeated_and_contained_deltas_do_no_harm() {
        let listing = [
            full(5, 1),
            delta(6, 10, 2),
            delta(6, 20, 3),
            delta(8, 9, 3),
            delta(21, 22, 4),
        ];
        let chain = newest(&listing).unwrap().unwrap();
        assert_eq!(chain.deltas, [delta(6, 20, 3), delta(21, 22, 4)]);
    }

    #[test]
    fn a_hole_is_an_error_that_names_it() {
        for listing in [
            vec![full(5, 1), delta(7, 9, 2)],
            vec![full(5, 1), delta(6, 7, 2), delta(10, 11, 3)],
        ] {
            let error = newest(&listing).unwrap_err();
            assert_eq!(error.class, Class::SnapshotMissing);
            assert!(error.to_string().contains("are in no snapshot"), "{error}");
        }
        assert_eq!(
            newest(&[delta(2, 3, 1)]).unwrap_err().class,
            Class::SnapshotMissing
        );
    }

    #[test]
    fn every_single_missing_delta_of_a_long_chain_is_noticed_but_the_last() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            i64::try_from(seed % below).unwrap()
        };
        for _ in 0..50 {
            let start = 1 + random(1000);
            let (mut listing, mut reached) = (vec![full(start, 1)], start);
            for created in 2..12 {
                let end = reached + 1 + random(20);
                listing.push(delta(reached + 1, end, created));
                reached = end;
            }
            assert_eq!(newest(&listing).unwrap().unwrap().last_revision(), reached);
            for gone in 1..listing.len() {
                let mut rest = listing.clone();
                let gone = rest.remove(gone);
                rest.rotate_left(usize::try_from(random(10)).unwrap());
                assert_eq!(newest(&rest).is_err(), gone.last_revision != reached, "{gone}");
            }
        }
    }

    #[test]
    fn the_deltas_after_a_revision_begin_within_a_delta() {
        let listing = [full(5, 1), delta(6, 10, 2), delta(11, 20, 3), delta(25, 30, 4)];
        let (deltas, hole) = deltas_after(12, &listing);
        assert_eq!(deltas, [delta(11, 20, 3)]);
        assert!(hole.unwrap().message.contains("revisions 21 to 24"));
        assert_eq!(deltas_after(22, &listing).0, []);
        let (deltas, hole) = deltas_after(30, &listing);
        assert!(deltas.is_empty() && hole.is_none());
    }

    #[test]
    fn the_final_counts_only_when_nothing_goes_beyond_it() {
        assert_eq!(final_snapshot(&[full(5, 1), last(9, 2)]), Some(&last(9, 2)));
        // Raced by a scheduled full snapshot of the same revision: still the end.
        assert_eq!(
            final_snapshot(&[last(9, 2), full(9, 3), full(9, 4), full(9, 5), full(9, 6)]),
            Some(&last(9, 2))
        );
        // Left by an earlier residency in this seed.
        assert_eq!(final_snapshot(&[last(9, 2), full(12, 3)]), None);
        assert_eq!(final_snapshot(&[last(9, 2), delta(10, 10, 3)]), None);
        assert_eq!(
            final_snapshot(&[last(9, 2), last(30, 8), full(12, 3)]),
            Some(&last(30, 8))
        );
    }
}
