//! Revisions of etcd that an owner leaves out, since the one before may have given them away
//! (docs/understand/decisions/0022), and what of a difference between two revisions are changes (R17-46).

/// So many for each owner whose end is not known. Many more than an etcd counts between two snapshots;
/// Kubernetes advises as many.
pub const LEFT_OUT: i64 = 1_000_000_000;

/// Revisions that a restore within an epoch leaves out, where the volume was lost: more than an etcd counts
/// between two snapshots. So many such restores in a row as fit stay below [`LEFT_OUT`], which the next owner
/// leaves out after the same snapshot.
pub const LEFT_OUT_WITHIN_EPOCH: i64 = LEFT_OUT / 10;

/// Changes that the etcd of an epoch acknowledged after it was saved up to one revision, when it has ended at
/// another.
///
/// One that was never saved in its own epoch is known by the snapshots of an earlier one, and has begun
/// behind the revisions that were left out for each epoch in between: at most one less than it has a number.
#[must_use]
pub fn changes_between(saved: i64, end: i64, epoch: i64) -> i64 {
    let between = end.saturating_sub(saved).max(0);
    let left_out = (between / LEFT_OUT).min(epoch.saturating_sub(1).max(0));
    // No more than there are in `between`.
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
            // It was saved in its own epoch, whatever was left out before.
            (LEFT_OUT + 832, LEFT_OUT + 900, 2, 68),
            // It never was: of the epoch before it, and of two before it.
            (832, LEFT_OUT + 832, 2, 0),
            (832, LEFT_OUT + 840, 2, 8),
            (832, 2 * LEFT_OUT + 840, 3, 8),
            // It came back to its own volume, and has left nothing out.
            (832, 840, 3, 8),
            // Nobody leaves anything out in the first epoch.
            (832, LEFT_OUT + 840, 1, LEFT_OUT + 8),
            (832, 2 * LEFT_OUT + 840, 2, LEFT_OUT + 8),
            // A full snapshot may hold a little more than its name says.
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
