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
