//! Revisions of etcd that an owner skips, since the owner before may have issued those revisions
//! (docs/understand/decisions/0022). Also the number of changes between two revisions (R17-46).

/// Revisions skipped for each owner whose end is unknown. Many more than an etcd counts between two
/// snapshots; Kubernetes recommends the same number.
pub const LEFT_OUT: i64 = 1_000_000_000;

/// Revisions that a restore within an epoch skips, where the volume was lost: more than an etcd counts
/// between two snapshots. Fewer than ten such restores in a row stay below [`LEFT_OUT`], the number that the
/// next owner skips after the same snapshot.
pub const LEFT_OUT_WITHIN_EPOCH: i64 = LEFT_OUT / 10;

/// Changes that the etcd of an epoch acknowledged between revision `saved`, the last saved, and revision
/// `end`, the last of the epoch.
///
/// An etcd that was never saved in its own epoch is known by the snapshots of an earlier epoch. Such an etcd
/// began behind the revisions that were skipped for each epoch in between: at most `epoch` minus one times.
#[must_use]
pub fn changes_between(saved: i64, end: i64, epoch: i64) -> i64 {
    let between = end.saturating_sub(saved).max(0);
    let left_out = (between / LEFT_OUT).min(epoch.saturating_sub(1).max(0));
    // `left_out` is at most `between / LEFT_OUT`, so the difference is never negative.
    between - left_out.saturating_mul(LEFT_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_no_change() {
        for (saved, end, epoch, changes) in [
            (832, 840, 1, 8),
            (832, 832, 1, 0),
            // Saved in its own epoch: earlier skips do not matter.
            (LEFT_OUT + 832, LEFT_OUT + 900, 2, 68),
            // Never saved in its own epoch: known by the epoch before, and by two epochs before.
            (832, LEFT_OUT + 832, 2, 0),
            (832, LEFT_OUT + 840, 2, 8),
            (832, 2 * LEFT_OUT + 840, 3, 8),
            // Etcd came back to its own volume and skipped nothing.
            (832, 840, 3, 8),
            // No owner skips revisions in the first epoch.
            (832, LEFT_OUT + 840, 1, LEFT_OUT + 8),
            (832, 2 * LEFT_OUT + 840, 2, LEFT_OUT + 8),
            // A full snapshot may hold slightly more than its name says.
            (840, 832, 2, 0),
            (i64::MIN, i64::MAX, i64::MIN, i64::MAX),
            (0, i64::MAX, i64::MAX, i64::MAX % LEFT_OUT),
        ] {
            assert_eq!(
                changes_between(saved, end, epoch),
                changes,
                "{saved} {end} {epoch}"
            );
        }
    }
}
