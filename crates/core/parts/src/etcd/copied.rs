//! Proofs about the backups, kept from the step that proves until the step that records. A destination proves
//! the copy, a source the end of the epoch.

use std::sync::{Mutex, PoisonError};

use api::{druid::CopiedChain, gardencore::shoot::SealedEpoch};

/// The chain in the report of the copy. A restarted flow copies again, finds the copied data, and gets a new
/// report.
#[derive(Debug, Default)]
pub struct CopyReport(Mutex<Option<CopiedChain>>);

impl CopyReport {
    /// Records the report of the copy.
    pub fn record(&self, chain: Option<CopiedChain>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = chain;
    }

    pub(crate) fn read(&self) -> Option<CopiedChain> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The final snapshot that was proved in this run of the flow, with the revision of etcd. A restarted flow
/// proves the snapshot again.
#[derive(Debug, Default)]
pub struct ProvenEnd(Mutex<Option<SealedEpoch>>);

impl ProvenEnd {
    /// Records the proof.
    pub fn record(&self, end: SealedEpoch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// The proof, if the proof is of this epoch.
    #[must_use]
    pub fn of_epoch(&self, epoch: i64) -> Option<SealedEpoch> {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.filter(|end| end.epoch == epoch)
    }
}

/// The last revision that was acknowledged to a client. etcd creates further revisions after the seal, when
/// leases expire, and these revisions are no loss. An older etcd-backup-restore reports no sealed revision.
pub(crate) fn acknowledged_end(end: i64, sealed: Option<i64>) -> i64 {
    sealed.map_or(end, |sealed| sealed.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_after_the_seal_are_no_loss() {
        for (sealed, expected) in [(Some(849), 849), (Some(861), 854), (None, 854)] {
            assert_eq!(acknowledged_end(854, sealed), expected, "{sealed:?}");
        }
    }
}
