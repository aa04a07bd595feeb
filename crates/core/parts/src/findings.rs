//! The findings of a move so far: the state that tasks of a flow exchange.
//!
//! A task receives only the finding that the task records or reads, as a parameter beside the facts of the
//! shoot. No finding is stored. After a restart of the gardenlet, a repeated flow finds out again.

use crate::{
    etcd::copied::{CopyReport, ProvenEnd},
    ownership::fence_clock::FenceClock,
};

/// The findings of a run of a flow.
#[derive(Debug, Default)]
pub struct MoveFindings {
    /// In a destination: the evidence about the source.
    pub claim: ClaimEvidence,
    /// In a source: the end of this seed's epoch, once the end is proved.
    pub end: ProvenEnd,
}

impl MoveFindings {
    /// The findings at the start of a flow. Repeated attempts of a restoration share the fence.
    #[must_use]
    pub fn with_fence(fence: FenceClock) -> Self {
        let claim = ClaimEvidence {
            fence,
            ..ClaimEvidence::default()
        };
        Self {
            claim,
            ..Self::default()
        }
    }
}

/// The evidence about the source, on which a destination opens etcd and touches external resources.
#[derive(Debug, Default)]
pub struct ClaimEvidence {
    /// Start of the fence, if the flow fences.
    pub fence: FenceClock,
    /// Report of the copy of backups, if the flow copies backups.
    pub copy: CopyReport,
}

#[cfg(test)]
mod tests {
    use api::druid::CopiedChain;
    use ownership::Terms;

    use super::*;
    use crate::Fences;

    /// Otherwise each attempt would wait for the whole fence. The copy runs again, and reports again.
    #[test]
    fn a_repeated_flow_continues_the_fence_alone() {
        let (fences, terms) = (Fences::default(), Terms::default());
        let first = MoveFindings::with_fence(fences.get_clock("uid", 2));
        assert!(first.claim.fence.left(&terms).is_err());
        first.claim.fence.begin([]);
        first.claim.copy.record(Some(CopiedChain {
            final_snapshot: true,
            last_revision: 1,
            saved: None,
            complete: true,
            sealed_revision: None,
            lost_revisions: None,
            left_aside: Vec::new(),
        }));
        let repeated = MoveFindings::with_fence(fences.get_clock("uid", 2));
        assert!(repeated.claim.fence.left(&terms).is_ok());
        assert!(repeated.claim.copy.read().is_none());
    }
}
