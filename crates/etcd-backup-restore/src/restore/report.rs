//! The report of `initialize`: for standard output, and short enough for the termination message of the
//! container.

use crate::chain::Chain;
use crate::clock;
use crate::store::Recorded;
use jiff::Timestamp;
use serde::Serialize;

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
        begin: Option<Begin>,
    },
    /// The newest chain was restored.
    Restored {
        /// Objects used, in order.
        snapshots: Vec<String>,
        /// Revision that etcd starts with.
        revision: i64,
        /// Set where an ownership epoch begins with these data.
        #[serde(skip_serializing_if = "Option::is_none")]
        begin: Option<Begin>,
        /// Set where etcd may have served in the epoch before.
        #[serde(rename = "volumeLoss", skip_serializing_if = "Option::is_none")]
        volume_loss: Option<VolumeLoss>,
    },
    /// The store holds no snapshot to restore.
    Fresh,
}

/// The data of an earlier ownership epoch with which a new epoch begins. A later start of etcd in that epoch
/// reports no such data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Begin {
    /// The epoch that begins.
    pub epoch: i64,
    /// Last revision of the earlier epoch in these data. The write-ahead log of a volume may hold more.
    pub last_revision: i64,
    /// When the newest snapshot was taken, of data from the store; absent where the name has no valid time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Timestamp>,
    /// Whether the data hold every change that etcd has acknowledged in the earlier epoch.
    pub complete: bool,
}

/// The restore of a lost or unusable volume within an ownership epoch. The former etcd may have acknowledged
/// changes that no snapshot has: after the last revision, and between the two times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeLoss {
    /// The epoch.
    pub epoch: i64,
    /// Last revision in the store.
    pub last_revision: i64,
    /// Revision with which etcd continues, above every revision of the former etcd.
    pub revision: i64,
    /// When the newest snapshot was taken; absent where the name has no valid time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Timestamp>,
    /// When etcd was restored.
    pub restored: Timestamp,
}

/// The report in the termination message of the container, which etcd-druid reads. A kubelet takes 4096
/// bytes.
#[derive(Debug, Serialize)]
pub struct Summary {
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    #[serde(flatten)]
    begin: Option<Begin>,
    #[serde(rename = "volumeLoss", skip_serializing_if = "Option::is_none")]
    volume_loss: Option<VolumeLoss>,
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
    pub fn summary(&self) -> Summary {
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
        Summary {
            result,
            revision,
            begin,
            volume_loss,
        }
    }
}

impl VolumeLoss {
    /// The loss after a restore of this chain, now.
    pub(super) fn new(epoch: i64, chain: &Chain, revision: i64) -> Self {
        let now = clock::now();
        Self {
            epoch,
            last_revision: chain.last_revision(),
            revision,
            saved: chain.last().taken_on(),
            restored: Timestamp::from_second(now.as_second()).unwrap_or(now),
        }
    }
}

impl Begin {
    /// The volume of the earlier epoch has all changes that etcd ever acknowledged, also changes that no
    /// snapshot has.
    pub(super) fn with_volume(epoch: i64, last_revision: i64) -> Self {
        Self {
            epoch,
            last_revision,
            saved: None,
            complete: true,
        }
    }

    /// None where the chain has snapshots of the epoch itself.
    pub(super) fn with_chain(epoch: i64, chain: &Chain, recorded: Option<&Recorded>) -> Option<Self> {
        (chain.last().epoch < epoch).then(|| Self {
            epoch,
            last_revision: chain.last_revision(),
            saved: chain.last().taken_on(),
            complete: recorded.is_some_and(|recorded| recorded.is_complete(chain)),
        })
    }
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
            begin: Some(Begin {
                epoch: i64::MAX,
                last_revision: i64::MAX,
                saved: Some(Timestamp::MAX),
                complete: false,
            }),
            volume_loss: Some(VolumeLoss {
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
