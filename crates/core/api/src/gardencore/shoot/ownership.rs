//! Ownership of a shoot: the garden's record for the protocol of `docs/understand/ownership.md`.

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// Identity of the shoot's present history. Each hand-over to a seed begins a new history, also a hand-over
/// back to the same seed. The record is read, tested and written as a whole.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ownership {
    /// Number of the epoch. Rises by 1 with each hand-over, in the write that changes `status.seedName`.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// Phase of this epoch. Absent where no process records phases: then `status.lastOperation` shows the
    /// progress.
    pub phase: Option<OwnershipPhase>,
    /// No request of the source to a cloud is unanswered, and none will leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// The last earlier epoch in which etcd was opened: the bucket of that epoch has the data. Absent in the
    /// first epoch.
    pub source: Option<FormerSeed>,
    /// The BackupBucket with the data of `source`, from which the destination restores. Only
    /// garden-controller-manager writes this field, after the hand-over and before the destination copies. A
    /// value of a different epoch has no effect.
    pub source_bucket: Option<SourceBucket>,
    /// The chosen data of the source. The choice is made once in an epoch.
    pub chain: Option<OwnershipChain>,
    /// The end of the epoch that was handed over last by the owning seed, written with the hand-over and
    /// never changed. The record binds the copy of the backups only if `sealed.epoch` is the epoch of
    /// `source` (where `source` is absent: the epoch before the present epoch). A value of any other epoch
    /// has no effect.
    pub sealed: Option<SealedEpoch>,
    /// Consent to a single hand-over without the source's help. No seed writes this field.
    pub approval: Option<OwnershipApproval>,
    /// The data with which the shoot continued after the last takeover.
    pub restored: Option<RestoredData>,
    /// The same data of earlier takeovers, the newest first, so that a later loss does not hide an earlier
    /// loss. At most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub restored_before: Vec<RestoredData>,
    /// The former seeds of which a person has stated that no process runs any more (annotation
    /// `shoot.gardener.cloud/force-restore=source-is-off`), each with the last epoch in which the seed had
    /// the shoot. The fence of a destination asks no server for these seeds. The list survives later
    /// takeovers; garden-controller-manager alone writes the list, and removes seeds that are neither in
    /// `formerSeeds` nor the `source`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub seeds_stated_off: Vec<FormerSeed>,
}

/// The data with which an epoch began after a takeover. Writes that the source acknowledged after `saved` are
/// lost. `fenced` bounds these writes only if all processes of the source follow the owner check. Where
/// either time is absent, `unknown` gives the reason.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredData {
    /// The epoch that began with these data.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// Revision of the source's etcd up to which no change is lost.
    pub last_revision: Option<i64>,
    /// When the newest snapshot was taken, by the clock of the source.
    #[serde(default, deserialize_with = "crate::meta::time::writable_option")]
    pub saved: Option<Time>,
    /// The latest time at which the source has stopped to acknowledge writes, by the clock of the
    /// destination, if all processes of the source seed ask the servers that the destination has asked. The
    /// destination calculates this time and cannot observe the source.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub fenced: Time,
    /// The seed that had acknowledged the lost changes, and that reports their number after its return.
    pub source: Option<FormerSeed>,
    /// Reason for people why the size of the loss is unknown. Absent where both bounds are known.
    pub unknown: Option<String>,
    /// Number of the source's changes after `lastRevision`, all of them lost. Absent until the source has
    /// returned and saved its remaining data. After a planned move whose loss a person accepted, the number
    /// is known at once.
    #[schemars(range(min = 0))]
    pub lost_revisions: Option<i64>,
    /// Names of objects in the bucket of the source that look like snapshots, and were left aside because the
    /// name cannot be read or the content cannot be trusted: at most five. These objects may hold lost
    /// changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub left_aside: Vec<String>,
}

/// The end of an ownership epoch, as proved by the seed that had the shoot in that epoch: the final snapshot
/// was read back from the bucket, and etcd had no later revision. The destination fails rather than begin
/// with less, unless a person accepts the loss with annotation `shoot.gardener.cloud/accept-loss`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SealedEpoch {
    /// The ownership epoch that has ended. This is the epoch before the hand-over, not the epoch of the
    /// destination.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// The last revision of etcd in that epoch. The copied backups must reach this revision.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// Name of the final snapshot in the bucket of the source.
    #[schemars(length(min = 1, max = 253))]
    pub snapshot: String,
    /// The sha256 of the final snapshot as stored, in hex. An object with the same name and a different hash
    /// does not count.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
}

/// Phase of this epoch. Absent where no process records phases: then `status.lastOperation` shows the
/// progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OwnershipPhase {
    /// The owner acts.
    Held,
    /// The owner stops all actions on external systems. The hand-over can still be cancelled in the same
    /// epoch.
    Leaving,
    /// The owner's etcd never serves again in this epoch.
    Sealing,
    /// A new owner is named, and fences the earlier owner.
    Claiming,
    /// The new owner may open etcd, with the chain that is recorded.
    Opening,
}

/// The chosen data of the source. The choice is made once in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OwnershipChain {
    /// Up to the final snapshot, without a loss.
    Final,
    /// Up to the last that was uploaded when the fence had passed.
    Last,
}

/// A seed that hosted the shoot, in a single epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerSeed {
    /// Name of the former Seed.
    pub name: String,
    /// The epoch in which the seed hosted the shoot.
    #[schemars(range(min = 1))]
    pub epoch: i64,
}

/// The bucket with the data of a former seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceBucket {
    /// Name of the BackupBucket, which is the uid of the former Seed.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The epoch whose data are in the bucket: the epoch of `source`. Where `source` is absent, the epoch
    /// before the present epoch.
    #[schemars(range(min = 1))]
    pub epoch: i64,
}

/// Consent to a single hand-over without the source's help. The epoch makes the consent valid for a single
/// use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnershipApproval {
    /// `metadata.uid` of the Shoot.
    #[schemars(length(min = 1))]
    pub uid: String,
    /// Name of the Seed that loses the shoot.
    #[schemars(length(min = 1))]
    pub from: String,
    /// The seed that may take the shoot over.
    #[schemars(length(min = 1))]
    pub to: String,
    /// The epoch that is given up.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// Loss of data that the operator accepted for this takeover.
    pub accepted_loss: AcceptedLoss,
    /// The approval has no effect after this time.
    pub expiry: Time,
    /// User or controller that approved the takeover.
    pub by: ApprovedBy,
    /// Reason of the approval, as a sentence for people.
    pub reason: String,
    /// A person has stated that no process of the seed in `from` runs any more (annotation
    /// `shoot.gardener.cloud/force-restore=source-is-off`). The takeover then skips the checks that depend on
    /// these processes: condition `OwnershipVerified`, condition `OwnerChecksComplete`, the comparison of
    /// server lists, and the host clock. The fence of the destination asks only the servers of the
    /// destination. The default is `false`; the silence of a seed never sets this field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub source_is_off: bool,
}

impl OwnershipApproval {
    /// Whether the approval gives a seed the next epoch of a shoot that this seed has already (annotation
    /// `shoot.gardener.cloud/renew-ownership=true`).
    #[must_use]
    pub fn renews(&self) -> bool {
        self.from == self.to
    }
}

/// Loss that the approval of a hand-over accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AcceptedLoss {
    /// Writes after the last snapshot, full or delta, that the source has uploaded.
    SinceLastSnapshot,
}

/// Author of the decision about a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ApprovedBy {
    /// A person with the right to decide this, by annotation `shoot.gardener.cloud/force-restore` or
    /// `shoot.gardener.cloud/renew-ownership`.
    Operator,
    /// garden-controller-manager, after the configured silence of the source's Lease.
    Silence,
}

impl Ownership {
    /// The end of the epoch whose data this epoch begins with, where the seed of that epoch recorded the end.
    #[must_use]
    pub fn sealed_source(&self) -> Option<&SealedEpoch> {
        let source = self.source_epoch();
        self.sealed.as_ref().filter(|sealed| sealed.epoch == source)
    }

    /// The epoch whose data this epoch begins with; 0 in the first epoch.
    #[must_use]
    pub fn source_epoch(&self) -> i64 {
        self.source.as_ref().map_or(self.epoch - 1, |source| source.epoch)
    }

    /// Name of the BackupBucket with the data that this epoch begins with, if recorded.
    #[must_use]
    pub fn recorded_source_bucket(&self) -> Option<&str> {
        let epoch = self.source_epoch();
        let recorded = self.source_bucket.as_ref();
        let recorded = recorded.filter(|recorded| recorded.epoch == epoch && epoch > 0);
        recorded.map(|recorded| recorded.name.as_str())
    }

    /// How many earlier takeovers are remembered. As many as fit on a page that a person reads; each is a few
    /// hundred bytes.
    pub const MOST_RESTORED_BEFORE: usize = 5;

    /// The value of `restoredBefore` after `epoch` has reported a loss in `restored`. A repeated report of an
    /// epoch replaces the former report.
    #[must_use]
    pub fn restored_before_epoch(&self, epoch: i64) -> Vec<RestoredData> {
        let told = self.restored.iter().chain(&self.restored_before);
        let earlier = told.filter(|told| told.epoch < epoch);
        earlier.take(Self::MOST_RESTORED_BEFORE).cloned().collect()
    }

    /// Name of the seed whose processes are stated to be off by the approval that began this epoch. The
    /// statement covers only the former owner: `source` may name a seed of an earlier epoch, without a
    /// statement.
    #[must_use]
    pub fn seed_that_is_off(&self) -> Option<&str> {
        let approval = self.approval.as_ref()?;
        let began_this_epoch = approval.epoch + 1 == self.epoch;
        (approval.source_is_off && began_this_epoch).then_some(approval.from.as_str())
    }

    /// Whether a person has stated that no process of the seed runs any more that had the shoot in this epoch
    /// or before.
    #[must_use]
    pub fn is_stated_off(&self, seed: &str, epoch: i64) -> bool {
        let mut stated = self.seeds_stated_off.iter();
        self.seed_that_is_off() == Some(seed)
            || stated.any(|stated| stated.name == seed && epoch <= stated.epoch)
    }

    /// The record of a shoot without recorded phases.
    #[must_use]
    pub fn of_epoch(epoch: i64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn restored_in(epoch: i64) -> serde_json::Value {
        json!({"epoch": epoch, "lastRevision": epoch * 100, "fenced": "2026-01-01T00:01:30Z"})
    }

    /// The statement ends with the epoch that the statement began: the fence of a later epoch asks the
    /// servers of every seed again.
    #[test]
    fn a_seed_is_off_for_the_epoch_that_began_with_the_statement() {
        let approved = |epoch: i64, is_off: Option<bool>| {
            let mut approval = json!({"uid": "u", "from": "a", "to": "b", "epoch": 4, "acceptedLoss": "SinceLastSnapshot",
                "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "r"});
            if let Some(is_off) = is_off {
                approval["sourceIsOff"] = json!(is_off);
            }
            serde_json::from_value::<Ownership>(json!({"epoch": epoch, "approval": approval})).unwrap()
        };
        assert_eq!(approved(5, Some(true)).seed_that_is_off(), Some("a"));
        for other in [
            approved(4, Some(true)),
            approved(6, Some(true)),
            approved(5, Some(false)),
            approved(5, None),
        ] {
            assert_eq!(other.seed_that_is_off(), None, "{other:?}");
        }
        // A record without the field is read and written unchanged.
        let approval = json!(approved(5, None).approval);
        assert_eq!(approval.get("sourceIsOff"), None);
    }

    #[test]
    fn the_end_of_another_epoch_binds_nobody() {
        let of = |epoch: i64, source: Option<i64>, sealed: i64| {
            let sealed = json!({"epoch": sealed, "revision": 54, "snapshot": "Full.final", "sha256": "aa"});
            let source = source.map(|epoch| json!({"name": "a", "epoch": epoch}));
            let read: Ownership =
                serde_json::from_value(json!({"epoch": epoch, "source": source, "sealed": sealed})).unwrap();
            read.sealed_source().is_some()
        };
        assert!(of(3, Some(2), 2));
        // The seed of epoch 3 has not opened etcd.
        assert!(of(4, Some(2), 2));
        assert!(of(3, None, 2));
        for (epoch, source, sealed) in [(3, Some(2), 1), (4, Some(3), 2), (3, None, 1), (3, Some(2), 3)] {
            assert!(!of(epoch, source, sealed), "{epoch} {source:?} {sealed}");
        }
        assert_eq!(Ownership::of_epoch(2).sealed_source(), None);
    }

    fn epochs(told: &[RestoredData]) -> Vec<i64> {
        told.iter().map(|told| told.epoch).collect()
    }

    /// The loss of a takeover is still reported after the next takeover, and the list has an end.
    #[test]
    fn a_later_loss_hides_no_earlier_one() {
        let mut recorded = Ownership::of_epoch(1);
        assert_eq!(recorded.restored_before_epoch(2), []);
        for epoch in 2..=9 {
            recorded.restored_before = recorded.restored_before_epoch(epoch);
            recorded.restored = Some(serde_json::from_value(restored_in(epoch)).unwrap());
            // Told twice, as a step that is repeated does.
            let again = recorded.restored_before_epoch(epoch);
            assert_eq!(again, recorded.restored_before);
        }
        assert_eq!(epochs(&recorded.restored_before), [8, 7, 6, 5, 4]);
        assert_eq!(recorded.restored_before[0].last_revision, Some(800));
        assert_eq!(recorded.restored_before.len(), Ownership::MOST_RESTORED_BEFORE);
        // A client without knowledge of the field reads and writes the record as before.
        let none = json!({"epoch": 2, "restored": restored_in(2)});
        let read: Ownership = serde_json::from_value(none.clone()).unwrap();
        assert_eq!(json!(read), none);
    }
}
