//! Selects the chain of the source to copy, and judges whether the chain holds everything that the source
//! acknowledged.
//!
//! Pure functions: listings and recorded facts in, a judgement out. The transfer checks that every object of
//! the chain was read and hashed.

use super::report::Report;
use crate::chain::{self, Chain};
use crate::error::{Class, Error, Result};
use crate::seal_note::SealNote;
use crate::snapshot_name::Snapshot;
use crate::snapshotter::Proof;
use crate::store::Store;
use mutation::Mutation;
use ownership::changes_between;

/// The end of the source's epoch, as the hand-over recorded the end. A copy that knows the end fails rather
/// than copy less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceEnd {
    /// Revision of etcd at which the epoch ended.
    pub revision: i64,
    /// Name of the final snapshot.
    pub snapshot: Option<String>,
    /// Hash of that snapshot as it was stored, in hex. An object with the name and a different hash does not
    /// count.
    pub sha256: Option<String>,
    /// Number of changes that a human accepts to lose.
    pub accepted_loss: i64,
}

impl SourceEnd {
    /// The expected hash of an object, if a hash was recorded.
    pub(super) fn sha256_of(&self, snapshot: &Snapshot) -> Option<&str> {
        let is_named = self.snapshot.as_deref() == Some(snapshot.to_string().as_str());
        self.sha256.as_deref().filter(|_| is_named)
    }
}

/// The statements of a bucket about the end of an epoch. The mark `.final` in a name states nothing: a final
/// snapshot can be asked for while clients write.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatedEnd {
    /// The revision at which the epoch was sealed.
    pub(super) note: Option<SealNote>,
    /// Name of the final snapshot that was taken after the seal.
    snapshot: Option<String>,
}

impl StatedEnd {
    /// Reads `sealed.json` and `finished.json`; a file of a different epoch is ignored.
    pub(crate) async fn read(store: &Store, epoch: i64) -> Result<Self> {
        let note = SealNote::read(store).await?;
        let proof = match Proof::recorded(store).await {
            Err(e) if e.class == Class::SnapshotUnparsable => {
                tracing::warn!(error = %e, "the record of the final snapshot is left aside");
                None
            }
            proof => proof?,
        };
        Ok(Self {
            note: note.filter(|note| note.epoch == epoch),
            snapshot: proof
                .filter(|proof| proof.sealed && proof.epoch == epoch)
                .map(|proof| proof.snapshot),
        })
    }

    /// The end that the hand-over recorded.
    pub(super) fn recorded(epoch: i64, end: &SourceEnd) -> Self {
        Self {
            note: Some(SealNote {
                epoch,
                revision: end.revision,
                beat: 0,
            }),
            snapshot: end.snapshot.clone(),
        }
    }

    /// The revision at which the epoch was sealed.
    pub(crate) fn revision(&self) -> Option<i64> {
        self.note.map(|note| note.revision)
    }

    /// Whether the snapshot was taken after the seal.
    pub(super) fn names(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.as_deref() == Some(snapshot.to_string().as_str())
    }

    /// Whether the chain of `origin` holds every change that the epoch has acknowledged.
    pub(crate) fn is_reached_by(&self, chain: &Chain, origin: i64) -> bool {
        self.revision().map_or_else(
            || self.names(chain.last()),
            |sealed| missing_changes(chain.last_revision(), sealed, origin) == 0,
        )
    }
}

/// An object of the source that cannot be used, and why.
pub(super) type Rejected = (Snapshot, Error);

/// A chain that can be copied.
pub(super) struct Candidate {
    pub(super) chain: Chain,
    /// The chain is the final snapshot of the origin alone.
    pub(super) is_final: bool,
    /// The hole after which further deltas of the source follow.
    pub(super) hole: Option<Error>,
}

impl Candidate {
    /// The final snapshot (a final snapshot holds all data), else the newest full snapshot with its deltas.
    /// `None`: there is no snapshot.
    pub(super) fn newest(origin: i64, listing: &[Snapshot], rejected: &[Rejected]) -> Result<Option<Self>> {
        let mut usable = listing.to_vec();
        usable.retain(|snapshot| !rejected.iter().any(|(bad, _)| bad == snapshot));
        if let Some(last) = chain::final_snapshot_of(origin, &usable) {
            return Ok(Some(Self {
                chain: Chain {
                    full: last.clone(),
                    deltas: Vec::new(),
                },
                is_final: true,
                hole: None,
            }));
        }
        Ok(chain::reachable(&usable)?.map(|(chain, hole)| Self {
            chain,
            is_final: false,
            hole,
        }))
    }
}

/// Changes up to the sealed revision that a chain of `origin` does not have.
pub(crate) fn missing_changes(reached: i64, sealed: i64, origin: i64) -> i64 {
    if Mutation::SealedRevisionIgnored.is_active() {
        return 0;
    }
    changes_between(reached, sealed, origin)
}

impl Report {
    /// Records the completeness of the chain once every object of the chain is in the target. `sealed`: the
    /// revision at which the source's epoch was sealed, if known. `is_end`: the chain is a final snapshot
    /// after which the source acknowledged no write.
    pub(super) fn judge(&mut self, sealed: Option<i64>, origin: i64, accepted: i64, is_end: bool) {
        self.sealed_revision = sealed;
        let missing = sealed.map(|sealed| missing_changes(self.last_revision, sealed, origin));
        self.complete = missing.map_or(is_end, |missing| missing == 0);
        // Unless the loss was accepted, the source may still come back and save the missing changes.
        self.lost_revisions = missing.filter(|missing| (1..=accepted).contains(missing));
    }
}

/// Fails for a chain that ends before the source's end, unless the number of missing changes is accepted as
/// lost.
pub(super) fn check_reaches(
    end: &SourceEnd,
    (origin, folder): (i64, &str),
    (reached, hole): (i64, Option<&Error>),
    rejected: &[Rejected],
) -> Result<()> {
    let missing = missing_changes(reached, end.revision, origin);
    if missing <= end.accepted_loss.max(0) {
        return Ok(());
    }
    let mut parts = vec![final_snapshot_part(end, rejected)];
    parts.extend(
        rejected
            .iter()
            .filter(|(bad, _)| end.snapshot.as_deref() != Some(bad.to_string().as_str()))
            .map(|(_, why)| why.message.clone()),
    );
    parts.push(format!(
        "revisions {} to {} are in no snapshot that follows without a hole",
        reached + 1,
        end.revision
    ));
    parts.extend(hole.map(|hole| hole.message.clone()));
    Err(Error::new(
        Class::SnapshotMissing,
        format!(
            "the backups of ownership epoch {origin} below {folder} end at revision {reached}, and etcd ended at revision {}: {}. Put \
             the missing objects back, or accept the loss of {missing} revisions: annotate the Shoot with \
             shoot.gardener.cloud/accept-loss={missing}",
            end.revision,
            parts.join("; ")
        ),
    ))
}

fn final_snapshot_part(end: &SourceEnd, rejected: &[Rejected]) -> String {
    let Some(name) = &end.snapshot else {
        return "there is no final snapshot".to_owned();
    };
    let bad = rejected.iter().find(|(bad, _)| bad.to_string() == *name);
    bad.map_or_else(
        || format!("the final snapshot {name} is missing"),
        |(_, why)| format!("the final snapshot {name} cannot be used: {}", why.message),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chain::tests::{delta, full, last};

    fn end(revision: i64) -> SourceEnd {
        SourceEnd {
            revision,
            snapshot: Some(last(revision, 9).to_string()),
            sha256: Some("aa".to_owned()),
            accepted_loss: 0,
        }
    }

    fn refused(end: &SourceEnd, reached: i64, rejected: &[Rejected]) -> Option<String> {
        let checked = check_reaches(end, (1, "p/v2"), (reached, None), rejected);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn a_copy_that_ignores_the_sealed_revision_is_noticed() {
        for (test, failure) in [
            (
                a_chain_that_ends_before_its_source_is_refused_and_names_what_is_missing as fn(),
                "Option::unwrap()",
            ),
            (a_loss_is_accepted_up_to_the_number_that_was_given, "right: true"),
            (
                a_chain_is_complete_by_its_sealed_revision_else_by_the_end_that_the_source_stated,
                "false 53 Some(54)",
            ),
        ] {
            Mutation::SealedRevisionIgnored.assert_killed_by(test, failure);
        }
    }

    #[test]
    fn a_chain_that_ends_before_its_source_is_refused_and_names_what_is_missing() {
        let end = end(54);
        assert_eq!(refused(&end, 54, &[]), None);
        assert_eq!(refused(&end, 55, &[]), None, "leases ran out after the seal");
        let text = refused(&end, 37, &[]).unwrap();
        for part in [
            "SnapshotMissing: ",
            "below p/v2",
            "the final snapshot Full-00000000-00000054-9.gz.final is missing",
            "revisions 38 to 54 are in no snapshot",
            "accept-loss=17",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let bad = (
            last(54, 9),
            Error::new(Class::SnapshotCorrupt, "its hash is another"),
        );
        let text = refused(&end, 37, &[bad]).unwrap();
        assert!(text.contains("cannot be used: its hash is another"), "{text}");
    }

    #[test]
    fn a_loss_is_accepted_up_to_the_number_that_was_given() {
        for (accepted, is_refused) in [(0, true), (16, true), (17, false), (18, false), (-1, true)] {
            let end = SourceEnd {
                accepted_loss: accepted,
                ..end(54)
            };
            assert_eq!(refused(&end, 37, &[]).is_some(), is_refused, "{accepted}");
            let mut report = Report {
                last_revision: 37,
                ..Report::default()
            };
            report.judge(Some(54), 1, accepted, false);
            assert!(!report.complete, "{accepted}");
            assert_eq!(report.lost_revisions, (!is_refused).then_some(17), "{accepted}");
        }
    }

    #[test]
    fn a_chain_is_complete_by_its_sealed_revision_else_by_the_end_that_the_source_stated() {
        for (is_end, reached, sealed, complete) in [
            (false, 54, Some(54), true),
            (false, 53, Some(54), false),
            (true, 53, Some(54), false),
            (false, 54, None, false),
            (true, 54, None, true),
        ] {
            let mut report = Report {
                // The mark of a final snapshot alone is no end.
                final_snapshot: true,
                last_revision: reached,
                ..Report::default()
            };
            report.judge(sealed, 1, 0, is_end);
            assert_eq!(report.complete, complete, "{is_end} {reached} {sealed:?}");
            assert_eq!(report.lost_revisions, None);
        }
    }

    /// An unusable final snapshot is no reason to lose the snapshots beside it.
    #[test]
    fn a_chain_beside_a_broken_final_snapshot_is_the_next_candidate() {
        let of = |snapshot: Snapshot| Snapshot { epoch: 1, ..snapshot };
        let listing = [of(full(5, 1)), of(delta(6, 54, 2)), of(last(54, 9))];
        let first = Candidate::newest(1, &listing, &[]).unwrap().unwrap();
        assert!(first.is_final && first.chain.full == listing[2]);
        let bad = (listing[2].clone(), Error::new(Class::SnapshotCorrupt, "bad"));
        let next = Candidate::newest(1, &listing, &[bad]).unwrap().unwrap();
        assert!(!next.is_final);
        assert_eq!(next.chain.last_revision(), 54);
        let hole = [listing[0].clone(), of(delta(8, 54, 2))];
        let short = Candidate::newest(1, &hole, &[]).unwrap().unwrap();
        assert_eq!((short.chain.last_revision(), short.hole.is_some()), (5, true));
    }
}
