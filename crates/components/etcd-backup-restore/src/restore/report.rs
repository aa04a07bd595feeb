//! The report of `initialize`: for standard output, and short enough for the termination message of the
//! container.

use crate::chain::Chain;
use crate::clock;
use crate::store::Recorded;
use jiff::Timestamp;
use serde::Serialize;
use sidecar_protocol::{EpochBegin, InitializeSummary, ReportedVolumeLoss};

/// The result of `initialize`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result")]
pub enum Initialized {
    /// The data directory was sound.
    Kept {
        /// Revision in its database; the write-ahead log may hold more.
        revision: i64,
        /// Set where an ownership epoch begins with these data.
        #[serde(skip_serializing_if = "Option::is_none")]
        begin: Option<EpochBegin>,
    },
    /// The newest chain was restored.
    Restored {
        /// Objects used, in order.
        snapshots: Vec<String>,
        /// Revision that etcd starts with.
        revision: i64,
        /// Set where an ownership epoch begins with these data.
        #[serde(skip_serializing_if = "Option::is_none")]
        begin: Option<EpochBegin>,
        /// Set where etcd may have served in the epoch before.
        #[serde(rename = "volumeLoss", skip_serializing_if = "Option::is_none")]
        volume_loss: Option<ReportedVolumeLoss>,
    },
    /// The store holds no snapshot to restore.
    Fresh,
}

impl Initialized {
    /// Sound data of the epoch.
    pub(super) fn kept(revision: i64) -> Self {
        Self::Kept {
            revision,
            begin: None,
        }
    }

    /// Without the names of snapshots, because a chain may have hundreds of them.
    #[must_use]
    pub fn summary(&self) -> InitializeSummary {
        let (result, revision, begin, volume_loss) = match self {
            Self::Kept { revision, begin } => ("Kept", Some(*revision), begin.clone(), None),
            Self::Restored {
                revision,
                begin,
                volume_loss,
                ..
            } => ("Restored", Some(*revision), begin.clone(), volume_loss.clone()),
            Self::Fresh => ("Fresh", None, None, None),
        };
        InitializeSummary {
            result: result.to_owned(),
            revision,
            begin,
            volume_loss,
        }
    }
}

/// The loss after a restore of this chain, now.
pub(super) fn report_volume_loss(epoch: i64, chain: &Chain, revision: i64) -> ReportedVolumeLoss {
    let now = clock::now();
    ReportedVolumeLoss {
        epoch,
        last_revision: chain.last_revision(),
        revision,
        saved: chain.last().taken_on(),
        restored: Timestamp::from_second(now.as_second()).unwrap_or(now),
    }
}

/// The begin with the volume of the earlier epoch. The volume has all changes that etcd ever acknowledged,
/// also changes that no snapshot has.
pub(super) fn report_begin_with_volume(epoch: i64, last_revision: i64) -> EpochBegin {
    EpochBegin {
        epoch,
        last_revision,
        saved: None,
        complete: true,
    }
}

/// The begin with a chain. None where the chain has snapshots of the epoch itself.
pub(super) fn report_begin_with_chain(
    epoch: i64,
    chain: &Chain,
    recorded: Option<&Recorded>,
) -> Option<EpochBegin> {
    (chain.last().epoch < epoch).then(|| EpochBegin {
        epoch,
        last_revision: chain.last_revision(),
        saved: chain.last().taken_on(),
        complete: recorded.is_some_and(|recorded| recorded.is_complete(chain)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_summary_fits_into_a_termination_message() {
        let names = (0..1000).map(|number| format!("Incr-00000000-{number:08}-1.gz"));
        let restored = Initialized::Restored {
            snapshots: names.collect(),
            revision: i64::MAX,
            begin: Some(EpochBegin {
                epoch: i64::MAX,
                last_revision: i64::MAX,
                saved: Some(Timestamp::MAX),
                complete: false,
            }),
            volume_loss: Some(ReportedVolumeLoss {
                epoch: i64::MAX,
                last_revision: i64::MAX,
                revision: i64::MAX,
                saved: Some(Timestamp::MAX),
                restored: Timestamp::MAX,
            }),
        };
        let line = serde_json::to_string(&restored.summary()).unwrap();
        assert!(
            line.len() < 1024 && line.contains("\"lastRevision\":9223"),
            "{line}"
        );
        // No epoch begins.
        let line = serde_json::to_string(&Initialized::kept(49).summary()).unwrap();
        assert_eq!(line, r#"{"result":"Kept","revision":49}"#);
    }
}
