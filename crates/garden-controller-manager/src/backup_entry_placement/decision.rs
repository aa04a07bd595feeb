//! Where a BackupEntry belongs: a pure decision.

use api::gardencore::{BackupEntry, Shoot};

/// The seed that is to have the Shoot's entry, if it is not the one that it names. A Shoot that was never handed over (its
/// epoch is the first) leaves its entry where the gardenlet made it.
#[must_use]
pub fn destination(shoot: &Shoot, entry: &BackupEntry) -> Option<String> {
    let status = shoot.status.as_ref().filter(|status| status.epoch() > 1)?;
    let host = status.seed_name.clone().filter(|name| !name.is_empty())?;
    let is_going = entry.metadata.deletion_timestamp.is_some();
    (!is_going && entry.spec.seed_name.as_ref() != Some(&host)).then_some(host)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{BackupEntrySpec, ShootSpec};
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use serde_json::json;

    use super::*;

    fn shoot(host: &str, epoch: Option<i64>) -> Shoot {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        let ownership = epoch.map(|epoch| json!({"epoch": epoch}));
        shoot.status = serde_json::from_value(json!({"seedName": host, "ownership": ownership})).unwrap();
        shoot
    }

    fn entry(seed: &str) -> BackupEntry {
        let mut entry = BackupEntry::new("e", BackupEntrySpec::default());
        entry.spec.seed_name = Some(seed.into());
        entry
    }

    #[test]
    fn backups_follow_the_shoot_after_its_hand_over_and_not_before() {
        assert_eq!(
            destination(&shoot("b", Some(2)), &entry("a")),
            Some("b".to_owned())
        );
        assert_eq!(destination(&shoot("b", Some(2)), &entry("b")), None);
        assert_eq!(destination(&shoot("a", None), &entry("b")), None);
        assert_eq!(destination(&shoot("a", Some(1)), &entry("b")), None);
        assert_eq!(destination(&shoot("", Some(2)), &entry("b")), None);
        let mut going = entry("a");
        going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert_eq!(destination(&shoot("b", Some(2)), &going), None);
    }
}
