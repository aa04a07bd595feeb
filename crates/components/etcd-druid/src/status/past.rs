//! Whether an etcd has had data, which etcd must not lose.

use api::druid::EtcdCondition;

/// Condition: etcd has been ready with backups once, so etcd must not start empty any more. The condition
/// never becomes false.
pub const HAS_DATA: &str = "HasData";

/// Whether an etcd has served before, as an earlier status remembers.
#[must_use]
pub fn has_data(conditions: &[EtcdCondition]) -> bool {
    conditions
        .iter()
        .any(|c| c.type_ == HAS_DATA && c.status == "True")
}
