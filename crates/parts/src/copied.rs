//! What a step of a flow has proved of the backups, kept until a later step records it: the copy of a
//! destination, and the end of the epoch of a source.

use std::sync::{Arc, Mutex, PoisonError};

use api::{druid::CopiedChain, gardencore::shoot::SealedEpoch};

/// The chain that the copy has brought, by its own report. A flow that is begun anew copies again, finds what
/// is there, and is told again.
#[derive(Clone, Debug, Default)]
pub struct Copied(Arc<Mutex<Option<CopiedChain>>>);

impl Copied {
    /// Takes note of what the copy has said.
    pub fn keep(&self, chain: Option<CopiedChain>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = chain;
    }

    pub(crate) fn get(&self) -> Option<CopiedChain> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The final snapshot that was proved in this run of the flow, with the revision of etcd. A flow that is
/// begun anew proves it anew.
#[derive(Clone, Debug, Default)]
pub struct ProvenEnd(Arc<Mutex<Option<SealedEpoch>>>);

impl ProvenEnd {
    /// Records the proof.
    pub fn keep(&self, end: SealedEpoch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// The proof, if there is one of this epoch.
    #[must_use]
    pub fn of_epoch(&self, epoch: i64) -> Option<SealedEpoch> {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.filter(|end| end.epoch == epoch)
    }
}
