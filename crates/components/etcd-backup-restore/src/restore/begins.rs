//! The revision with which an epoch begins. The copy recorded this revision once, from the objects that the
//! copy had read and hashed, and the garden reports losses by it. An etcd that begins with less would lose
//! changes silently.

use crate::chain::Chain;
use crate::error::{Class, Error, Result};
use crate::snapshot_name::Snapshot;
use crate::store::Recorded;

/// Refuses a chain that ends before the recorded chain, judged by the names of the snapshots. `folder`: the
/// location of the snapshots.
pub(super) fn check(recorded: &Recorded, newest: Option<&Chain>, folder: &str) -> Result<()> {
    let reached = newest.map_or(0, Chain::last_revision);
    if reached >= recorded.last_revision {
        return Ok(());
    }
    let there: Vec<_> = newest
        .into_iter()
        .flat_map(Chain::objects)
        .map(Snapshot::to_string)
        .collect();
    let mut gone = recorded.snapshots.clone();
    gone.retain(|name| !there.contains(name));
    Err(Error::new(
        Class::SnapshotMissing,
        format!(
            "ownership epoch {} begins with revision {}, and what is below {folder} ends at revision {reached}: {} is missing; put it \
             back. Nothing was changed",
            recorded.epoch,
            recorded.last_revision,
            gone.join(", ")
        ),
    ))
}

/// Like [`check`], judged by the content of the restored database.
pub(super) fn check_restored(recorded: &Recorded, revision: i64) -> Result<()> {
    if revision >= recorded.last_revision {
        return Ok(());
    }
    Err(Error::new(
        Class::SnapshotCorrupt,
        format!(
            "ownership epoch {} begins with revision {}, and the restored database ends at revision {revision}: put intact copies of {} \
             back. Nothing was changed",
            recorded.epoch,
            recorded.last_revision,
            recorded.snapshots.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full};

    #[test]
    fn an_epoch_does_not_begin_with_less_than_was_recorded() {
        let chain = |deltas: Vec<Snapshot>| Chain {
            full: full(5, 1),
            deltas,
        };
        let all = chain(vec![delta(6, 9, 2)]);
        let recorded = Recorded::from_chain(&all, 2, 1);
        assert!(check(&recorded, Some(&all), "p/v2").is_ok());
        let of_its_own = chain(vec![delta(6, 9, 2), delta(10, 30, 3)]);
        assert!(check(&recorded, Some(&of_its_own), "p/v2").is_ok());
        for short in [Some(chain(vec![])), None] {
            let error = check(&recorded, short.as_ref(), "p/v2").map_err(|error| error.to_string());
            let text = error.err().unwrap_or_default();
            assert!(text.contains("SnapshotMissing: "), "{text}");
            assert!(text.contains(&delta(6, 9, 2).to_string()), "{text}");
        }
        assert!(check_restored(&recorded, 9).is_ok());
        assert!(check_restored(&recorded, 8).is_err());
    }
}
