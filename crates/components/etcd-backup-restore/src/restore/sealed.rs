//! `initialize` in an epoch that was lost.

use super::data_dir::Condition;
use super::{Initialize, Initialized};
use crate::error::{Class, Error, Result};
use crate::owner::Marker;

impl Initialize {
    /// Whether the epoch was sealed on this volume. Without a gate that is the end.
    pub(super) fn is_sealed(&self) -> Result<bool> {
        let sealed = Marker::beside(&self.data_dir).seal_reason(self.store.epoch())?;
        if sealed.is_some() && !self.behind_gate {
            return Err(self.sealed());
        }
        Ok(sealed.is_some())
    }

    /// A sealed epoch starts only for its final snapshot, and only with unchanged data: the bucket already
    /// holds its own copy.
    pub(super) fn keep_sealed(&self, condition: &Condition) -> Result<Initialized> {
        match condition {
            Condition::Sound(revision) if self.behind_gate => {
                tracing::warn!(
                    epoch = self.store.epoch(),
                    "this epoch is sealed: etcd starts for the final snapshot alone"
                );
                Ok(Initialized::kept(*revision))
            }
            _ => Err(self.sealed()),
        }
    }

    fn sealed(&self) -> Error {
        Error::new(
            Class::OtherEpoch,
            format!(
                "ownership epoch {} was sealed ({}, or ownership.json in the store): it was lost to another seed, and this etcd \
                 must not serve in it again. Give the shoot a new epoch",
                self.store.epoch(),
                Marker::beside(&self.data_dir).path().display()
            ),
        )
    }
}
