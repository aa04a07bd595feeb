//! The bound of a conditional write that is repeated after a concurrent write. Without the bound, two writers
//! that alternate keep a step of a flow from its end.

use runtime::{Error, Result};

/// Maximum conflicts in a row. More than the writers of a Shoot: the gardenlets of two seeds, the care of the
/// gardenlet and garden-controller-manager.
const MAX_CONFLICTS: u32 = 10;

/// Counts the conflicts of a conditional write.
#[derive(Debug, Default)]
pub struct ConflictLimit(u32);

impl ConflictLimit {
    /// Counts a conflict. The caller reads the object again.
    ///
    /// # Errors
    /// The limit is reached. The error is transient, so the next attempt begins after a backoff.
    pub fn count(&mut self, kind: &str, name: &str) -> Result<()> {
        self.0 += 1;
        if self.0 < MAX_CONFLICTS {
            return Ok(());
        }
        Err(Error::transient(format!(
            "could not write {kind} {name}: {MAX_CONFLICTS} concurrent writes came first; the write is repeated"
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn concurrent_writes_do_not_keep_a_step_from_its_end() {
        let mut conflicts = ConflictLimit::default();
        for _ in 1..MAX_CONFLICTS {
            conflicts.count("Shoot", "web").unwrap();
        }
        let error = conflicts.count("Shoot", "web").unwrap_err();
        assert_eq!(error.class(), "Transient");
        assert!(error.to_string().contains("Shoot web"), "{error}");
    }
}
