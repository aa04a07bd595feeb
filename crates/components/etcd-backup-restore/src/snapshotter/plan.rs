//! Decides with which step a session begins: a pure function of the store's listing and etcd's revision.

use crate::chain;
use crate::error::{Class, Error, Result};
use crate::snapshot_name::Snapshot;
use std::time::Duration;

/// How to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// With a full snapshot, for this reason.
    Full(String),
    /// With the changes after a revision.
    Continue {
        /// Last revision in the store.
        reached: i64,
        /// A delta is stored as soon as this revision was seen, without waiting for the period.
        urgent: Option<i64>,
    },
}

/// Decides how to begin.
///
/// Directly after a final snapshot the first change is stored at once. Until then the store looks as if the
/// shoot had left this seed, and a copy from the store would trust that.
///
/// A chain that breaks off before `epoch` (the current epoch) is not continued: the restore has skipped
/// revisions, and no delta fills that hole.
///
/// `rested`: time since this process itself ended a full snapshot. A full snapshot that takes longer than the
/// window is old when it ends. The next full snapshot must not follow at once, or the task would do no other
/// work.
pub fn plan(
    listing: &[Snapshot],
    (revision, epoch, origin): (i64, i64, Option<i64>),
    now: i64,
    full_window: Duration,
    rested: Option<Duration>,
) -> Result<Plan> {
    not_behind(listing, revision)?;
    let newest = match chain::newest(listing) {
        Ok(Some(newest)) => newest,
        Ok(None) => return Ok(Plan::Full("the store holds no full snapshot".to_owned())),
        // A new full snapshot closes a hole for good.
        Err(hole) => return Ok(Plan::Full(hole.message)),
    };
    if newest.breaks_off_before(epoch, origin) {
        return Ok(Plan::Full(format!(
            "the epoch begins with what an earlier one had saved up to {}, without its end",
            newest.last_revision()
        )));
    }
    let reached = newest.last_revision();
    let window = i64::try_from(full_window.as_secs()).unwrap_or(i64::MAX);
    // A timestamp in the future says nothing about the age.
    let is_old = now.saturating_sub(newest.full.created).saturating_abs() > window;
    if is_old && rested.is_none_or(|rested| rested > full_window) {
        return Ok(Plan::Full(format!("{} is older than {window} s", newest.full)));
    }
    let after_final = newest.full.is_final && newest.deltas.is_empty();
    let urgent = (after_final || revision > reached).then_some(revision.max(reached + 1));
    Ok(Plan::Continue { reached, urgent })
}

/// Fails if the store holds more than etcd. New snapshots would never be restored, because the older
/// snapshots have higher revisions.
pub fn not_behind(listing: &[Snapshot], revision: i64) -> Result<()> {
    let Some(newest) = listing
        .iter()
        .max_by_key(|s| s.last_revision)
        .filter(|s| s.last_revision > revision)
    else {
        return Ok(());
    };
    Err(Error::new(
        Class::DataDirectory,
        format!(
            "etcd is at revision {revision} but the store already holds {newest}: etcd runs on old data. Delete the pod \
             together with its volume, so that it is restored from the store; no snapshot is taken until then"
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chain::tests::{delta, full, last};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn how_a_session_begins() {
        let go_on = |reached, urgent| Plan::Continue { reached, urgent };
        assert!(matches!(
            plan(&[], (1, 0, None), 0, DAY, None).unwrap(),
            Plan::Full(_)
        ));
        assert_eq!(
            plan(&[full(5, 10)], (5, 0, None), 20, DAY, None).unwrap(),
            go_on(5, None)
        );
        assert_eq!(
            plan(&[full(5, 10), delta(6, 8, 11)], (8, 0, None), 20, DAY, None).unwrap(),
            go_on(8, None)
        );
        // The store is behind.
        assert_eq!(
            plan(&[full(5, 10)], (9, 0, None), 20, DAY, None).unwrap(),
            go_on(5, Some(9))
        );
        // The end of an earlier residency, or a copy of that end.
        assert_eq!(
            plan(&[last(5, 10)], (5, 0, None), 20, DAY, None).unwrap(),
            go_on(5, Some(6))
        );
        assert_eq!(
            plan(&[last(5, 10), delta(6, 6, 11)], (6, 0, None), 20, DAY, None).unwrap(),
            go_on(6, None)
        );
        // Old, of a time that can be none, or with a hole.
        for created in [10 + 2 * 86_401, i64::MAX] {
            assert!(matches!(
                plan(&[full(5, created)], (5, 0, None), 10, DAY, None).unwrap(),
                Plan::Full(_)
            ));
        }
        assert!(matches!(
            plan(&[full(5, 10)], (5, 0, None), 10 + 86_401, DAY, None).unwrap(),
            Plan::Full(_)
        ));
        assert!(matches!(
            plan(&[full(5, 10), delta(8, 9, 11)], (9, 0, None), 20, DAY, None).unwrap(),
            Plan::Full(_)
        ));
    }

    #[test]
    fn a_full_snapshot_that_takes_longer_than_its_window_is_not_followed_by_another_at_once() {
        let begin = |rested| plan(&[full(5, 10)], (5, 0, None), 10 + 2 * 86_400, DAY, rested).unwrap();
        assert!(matches!(begin(None), Plan::Full(_)));
        assert!(matches!(
            begin(Some(Duration::from_secs(1))),
            Plan::Continue { .. }
        ));
        assert!(matches!(begin(Some(2 * DAY)), Plan::Full(_)));
    }

    /// A delta that begins at the former owner's last snapshot would not continue the restored data.
    #[test]
    fn what_breaks_off_is_not_gone_on_with() {
        let of = |epoch, snapshot: Snapshot| Snapshot { epoch, ..snapshot };
        let begin = |listing: &[Snapshot]| plan(listing, (1_000_000_005, 2, None), 20, DAY, None).unwrap();
        assert!(matches!(begin(&[of(1, full(5, 10))]), Plan::Full(_)));
        let deltas = [of(1, last(4, 9)), of(1, delta(5, 5, 10))];
        assert!(matches!(begin(&deltas), Plan::Full(_)));
        // The end of an epoch before the epoch with whose end this epoch begins.
        let skipped = plan(&[of(1, last(5, 10))], (2_000_000_005, 3, Some(2)), 20, DAY, None);
        assert!(matches!(skipped.unwrap(), Plan::Full(_)));
        let end = plan(&[of(2, last(5, 10))], (5, 3, Some(2)), 20, DAY, None);
        assert!(matches!(end.unwrap(), Plan::Continue { reached: 5, .. }));
        for goes_on in [of(1, last(5, 10)), of(2, full(5, 10))] {
            assert!(matches!(begin(&[goes_on]), Plan::Continue { reached: 5, .. }));
        }
    }

    #[test]
    fn an_etcd_on_old_data_is_refused() {
        let error = plan(&[full(5, 10), delta(6, 8, 11)], (7, 0, None), 20, DAY, None).unwrap_err();
        assert_eq!(error.class, Class::DataDirectory);
    }
}
