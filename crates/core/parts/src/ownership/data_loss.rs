//! The data loss of a shoot after a takeover: the bounds of the loss, or the reason why the bounds are
//! unknown (R17-45).

use api::{
    druid::{BegunEpoch, CopiedChain},
    gardencore::shoot::{Ownership as Recorded, RestoredData},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ownership::{Chain, Ownership};
use serde_json::{Value, json};

/// Optional fields of `restored`.
pub(crate) const RESTORED: [&str; 6] = [
    "lastRevision",
    "saved",
    "source",
    "unknown",
    "lostRevisions",
    "leftAside",
];

/// The reason for a shoot that returned to a former seed.
const NOT_COPIED: &str = "the shoot came back to that seed, and nothing was copied: nothing is lost where its etcd has the volume that \
     it had, and else all that is in none of its backups (the log of init container initialize of pod etcd-main-0 says Kept or Restored)";
/// A seed that keeps the shoot in a new epoch: a renewal, or a move that was cancelled after its epoch had
/// ended. The container that looks for the volume runs later: [`crate::etcd::epoch_start_report`] records
/// what that container has reported.
const NOT_OBSERVED: &str = "that seed keeps the shoot in a new epoch, and nothing was copied: nothing is lost where its etcd has the \
     volume that it had, and else at most the changes that are in none of its backups (the log of init container initialize of pod \
     etcd-main-0 says Kept or Restored)";
/// The reason for a copy without a report.
const NOT_READ: &str = "nothing tells what the copy of its backups has brought";
/// The reason for a snapshot whose name has no valid time.
const NO_TIME: &str = "the newest snapshot does not say when it was taken";

/// The data of a new epoch whose source may have acknowledged more writes. `None` where all data are there,
/// up to the final snapshot. A seed that had the shoot in the epoch before may have lost the volume, so the
/// loss is unknown there.
///
/// `fenced`: the time when the fence had passed. The source acknowledges no write after that time, if all
/// processes of the source ask the servers of the fence.
pub(crate) fn assess_loss(
    becomes: &Ownership<String>,
    copied: Option<&CopiedChain>,
    fenced: Timestamp,
) -> Option<RestoredData> {
    if becomes.chain != Some(Chain::Last) {
        return None;
    }
    // Fractions of a second would claim a false precision.
    let fenced = Timestamp::from_second(fenced.as_second()).unwrap_or(fenced);
    let returns = becomes
        .source
        .as_ref()
        .filter(|source| source.seed == becomes.now.seed);
    let (last_revision, saved) = match (returns, copied) {
        (Some(source), _) if source.epoch + 1 == becomes.now.epoch => (None, Err(NOT_OBSERVED.to_owned())),
        (Some(_), _) => (None, Err(NOT_COPIED.to_owned())),
        (None, None) => (None, Err(NOT_READ.to_owned())),
        (None, Some(copied)) if copied.complete => return None,
        (None, Some(copied)) => (
            Some(copied.last_revision),
            plausible_time(copied.saved.as_ref(), fenced),
        ),
    };
    Some(RestoredData {
        epoch: becomes.now.epoch,
        last_revision,
        saved: saved.as_ref().ok().cloned(),
        fenced: Time(fenced),
        source: None,
        unknown: saved.err(),
        // A silent source may still save more data: the source reports the number on return.
        lost_revisions: copied.and_then(|copied| copied.lost_revisions),
        left_aside: copied.map(|copied| copied.left_aside.clone()).unwrap_or_default(),
    })
}

/// The data of an epoch that begins without phases with an incomplete copy. The source ended the epoch before
/// `now`.
pub(crate) fn loss_without_phases(epoch: i64, copied: &CopiedChain, now: Timestamp) -> RestoredData {
    let fenced = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let saved = plausible_time(copied.saved.as_ref(), fenced);
    RestoredData {
        epoch,
        last_revision: Some(copied.last_revision),
        saved: saved.as_ref().ok().cloned(),
        fenced: Time(fenced),
        source: None,
        unknown: saved.err(),
        lost_revisions: copied.lost_revisions,
        left_aside: copied.left_aside.clone(),
    }
}

/// The loss of an epoch that a seed begins with the data of the same seed, after etcd has started. `None`
/// where no change is lost.
pub(crate) fn loss_after_start(restored: &RestoredData, begun: &BegunEpoch) -> Option<RestoredData> {
    if begun.complete {
        return None;
    }
    let saved = plausible_time(begun.saved.as_ref(), restored.fenced.0);
    Some(RestoredData {
        last_revision: Some(begun.last_revision),
        saved: saved.as_ref().ok().cloned(),
        unknown: saved.err(),
        ..restored.clone()
    })
}

/// The time of the newest snapshot, if the time is plausible.
fn plausible_time(saved: Option<&Time>, fenced: Timestamp) -> Result<Time, String> {
    match saved {
        None => Err(NO_TIME.to_owned()),
        Some(saved) if saved.0 > fenced => Err(format!(
            "the newest snapshot says that it was taken at {}, after the fence of that seed had passed: one of the two clocks is wrong, \
             or the seed went on",
            saved.0
        )),
        Some(saved) => Ok(saved.clone()),
    }
}

/// The patch of `status.ownership` that records a loss, beside the losses of earlier epochs.
pub(crate) fn restored_patch(restored: &RestoredData, stands: Option<&Recorded>) -> Value {
    // Null removes fields of an earlier epoch that this loss does not set.
    let mut fields: serde_json::Map<_, _> = RESTORED
        .iter()
        .map(|&field| (field.to_owned(), Value::Null))
        .collect();
    fields.extend(json!(restored).as_object().cloned().unwrap_or_default());
    let mut patch = json!({"restored": fields});
    // The write is conditional on the Shoot's resourceVersion, so a concurrent addition is not lost.
    let before = stands.map(|stands| stands.restored_before_epoch(restored.epoch));
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        patch["restoredBefore"] = json!(before);
    }
    patch
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ownership::{Phase, SeedEpoch};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn opened(source: (&str, i64), epoch: i64, chain: Chain) -> Ownership<String> {
        let seed_epoch = |seed: &str, epoch| SeedEpoch {
            seed: seed.to_owned(),
            epoch,
        };
        Ownership {
            now: seed_epoch("b", epoch),
            phase: Phase::Opening,
            drained: chain == Chain::Final,
            source: Some(seed_epoch(source.0, source.1)),
            chain: Some(chain),
        }
    }

    fn copied(is_final: bool, saved: Option<&str>) -> CopiedChain {
        CopiedChain {
            final_snapshot: is_final,
            last_revision: 832,
            saved: saved.map(|saved| Time(at(saved))),
            complete: is_final,
            sealed_revision: None,
            lost_revisions: None,
            left_aside: Vec::new(),
        }
    }

    fn assess_copy(becomes: &Ownership<String>, copied: Option<&CopiedChain>) -> Option<RestoredData> {
        assess_loss(becomes, copied, at("2026-01-01T00:01:30.7Z"))
    }

    #[test]
    fn what_was_copied_bounds_the_loss() {
        let taken = opened(("a", 1), 2, Chain::Last);
        let found = assess_copy(&taken, Some(&copied(false, Some("2026-01-01T00:00:00Z")))).unwrap();
        assert_eq!((found.epoch, found.last_revision), (2, Some(832)));
        assert_eq!(found.saved, Some(Time(at("2026-01-01T00:00:00Z"))));
        assert_eq!(found.fenced, Time(at("2026-01-01T00:01:30Z")));
        assert_eq!((found.unknown, found.lost_revisions), (None, None));
        // An unreadable object may hold lost changes.
        let strange = CopiedChain {
            left_aside: vec!["Incr-0-99-1.Z".to_owned()],
            ..copied(false, None)
        };
        let found = assess_copy(&taken, Some(&strange)).unwrap();
        assert_eq!(found.left_aside, strange.left_aside);
        // All data are there.
        assert_eq!(assess_copy(&taken, Some(&copied(true, None))), None);
        assert_eq!(assess_copy(&opened(("a", 1), 2, Chain::Final), None), None);
    }

    /// A user has accepted the loss, so the number is known at once.
    #[test]
    fn an_accepted_loss_is_reported_as_a_number() {
        let mut short = copied(false, Some("2026-01-01T00:00:00Z"));
        short.lost_revisions = Some(17);
        let found = assess_copy(&opened(("a", 1), 2, Chain::Last), Some(&short)).unwrap();
        assert_eq!((found.last_revision, found.lost_revisions), (Some(832), Some(17)));
    }

    #[test]
    fn a_loss_of_own_data_is_known_when_etcd_has_started() {
        let opening = assess_copy(&opened(("b", 1), 2, Chain::Last), None).unwrap();
        let begun = |complete, saved: Option<&str>| BegunEpoch {
            epoch: 2,
            result: if complete { "Kept" } else { "Restored" }.to_owned(),
            last_revision: 49,
            saved: saved.map(|saved| Time(at(saved))),
            complete,
        };
        assert_eq!(loss_after_start(&opening, &begun(true, None)), None);
        let bounded = loss_after_start(&opening, &begun(false, Some("2026-01-01T00:00:00Z"))).unwrap();
        assert_eq!((bounded.last_revision, bounded.unknown), (Some(49), None));
        assert_eq!(bounded.saved, Some(Time(at("2026-01-01T00:00:00Z"))));
        let timeless = loss_after_start(&opening, &begun(false, None)).unwrap();
        assert_eq!(timeless.last_revision, Some(49));
        assert!(timeless.unknown.unwrap().contains("does not say when"));
    }

    /// A missing record would mean that there is no loss.
    #[test]
    fn a_loss_that_nobody_knows_says_why() {
        let taken = opened(("a", 1), 2, Chain::Last);
        let back = opened(("b", 1), 3, Chain::Last);
        let kept = opened(("b", 1), 2, Chain::Last);
        let timeless = copied(false, None);
        let absurd = copied(false, Some("8999-01-01T00:00:00Z"));
        for (becomes, copied, revision, why) in [
            (&taken, None, None, "nothing tells what the copy"),
            (&back, None, None, "Kept or Restored"),
            (&kept, None, None, "keeps the shoot in a new epoch"),
            (&taken, Some(&timeless), Some(832), "does not say when"),
            (
                &taken,
                Some(&absurd),
                Some(832),
                "at 8999-01-01T00:00:00Z, after the fence",
            ),
        ] {
            let found = assess_copy(becomes, copied).unwrap();
            assert_eq!((found.last_revision, &found.saved), (revision, &None));
            assert!(found.unknown.as_ref().unwrap().contains(why), "{found:?}");
        }
        assert_eq!(assess_copy(&opened(("b", 1), 3, Chain::Final), None), None);
    }
}
