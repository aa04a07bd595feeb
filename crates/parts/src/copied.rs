//! What the copy of backups says that it has brought, kept from the copy until the choice of the data is recorded.

use std::sync::{Arc, Mutex, PoisonError};

use api::druid::CopiedChain;

/// Of one run of one flow. A run that is begun anew copies again, which finds what is there, and is told again.
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
