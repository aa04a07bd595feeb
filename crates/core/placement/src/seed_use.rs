//! Whether a Shoot or a BackupEntry needs a Seed that is being deleted.

use api::gardencore::{BackupEntry, Seed, Shoot};
use kube::ResourceExt;

use crate::{hosting_seed, is_hosted, is_released, pause, status, wanted_seed};

/// Names of the seeds that a shoot needs: the host, the destination of a hosted shoot, and former seeds. Of a
/// released Shoot only former seeds may have objects: otherwise a user could keep a Seed by a finalizer of
/// the Shoot.
pub fn seeds_needed_by_shoot(shoot: &Shoot) -> impl Iterator<Item = &str> {
    let destination = wanted_seed(shoot).filter(|_| is_hosted(shoot));
    let former = status(shoot).into_iter().flat_map(|status| &status.former_seeds);
    let present = [hosting_seed(shoot), destination].into_iter().flatten();
    let present = present.filter(|_| !is_released(shoot));
    present.chain(former.map(|former| former.name.as_str()))
}

/// Whether the seed hosts the shoot, is the destination of a hosted shoot, or is a former seed of the shoot.
#[must_use]
pub fn is_needed_by_shoot(seed: &str, shoot: &Shoot) -> bool {
    seeds_needed_by_shoot(shoot).any(|needed| needed == seed)
}

/// Names and uids of the Seeds that an entry needs. The name of a bucket is the uid of the Seed.
pub fn seeds_needed_by_entry(entry: &BackupEntry) -> impl Iterator<Item = &str> {
    let host = entry
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    let named = [entry.spec.seed_name.as_deref(), host].into_iter().flatten();
    named.chain([entry.spec.bucket_name.as_str()])
}

/// Whether an entry needs the Seed or its bucket. The source entry of a shoot that was handed over belongs to
/// the destination, and the bucket of this seed has the only backups until the restore has ended.
#[must_use]
pub fn is_needed_by_entry(seed: &Seed, entry: &BackupEntry) -> bool {
    seeds_needed_by_entry(entry).any(|needed| is_identity(seed, needed))
}

/// Whether this is the name or the uid of the Seed.
#[must_use]
pub fn is_identity(seed: &Seed, name_or_uid: &str) -> bool {
    let metadata = &seed.metadata;
    [&metadata.name, &metadata.uid]
        .into_iter()
        .flatten()
        .any(|identity| identity == name_or_uid)
}

/// Whether a Shoot that no seed has taken has an obstacle: a recorded error, or the annotation by which the
/// user holds the Shoot back. Such a Shoot may wait without an end, so the Shoot holds no room, no extension
/// and no Seed.
#[must_use]
pub fn has_obstacle(shoot: &Shoot) -> bool {
    status(shoot).is_some_and(|status| !status.last_errors.is_empty()) || pause(shoot, false).is_some()
}

/// Whether a Shoot holds the Seed in its `spec.seedName`. A Shoot with an obstacle holds no Seed, nor does a
/// released Shoot, or a Shoot in deletion that no seed has taken. A Seed in deletion takes no new
/// Shoot. Otherwise a user could prevent each deletion and each edit of a Seed.
#[must_use]
pub fn is_held_by_shoot(seed: &Seed, shoot: &Shoot) -> bool {
    let is_named = shoot.spec.seed_name.as_ref() == Some(&seed.name_any());
    let is_going = seed.metadata.deletion_timestamp.is_some() || shoot.metadata.deletion_timestamp.is_some();
    is_named
        && (is_hosted(shoot) && !is_released(shoot) || !is_hosted(shoot) && !has_obstacle(shoot) && !is_going)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{constants::SHOOT_IGNORE, gardencore::SeedSpec};
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use serde_json::{Value, json};

    use super::*;

    fn shoot(seed: &str, status: &Value) -> Shoot {
        let spec = json!({"region": "r", "seedName": seed, "provider": {"type": "metal"}, "kubernetes": {}});
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec, "status": status})).unwrap()
    }

    /// Otherwise the owner of a stolen gardenlet certificate ends a Seed in deletion, and with the Seed the
    /// takeovers of its shoots.
    #[test]
    fn a_seed_is_needed_by_its_shoots_and_by_shoots_on_the_way() {
        let former = json!({"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}]});
        assert!(is_needed_by_shoot("a", &shoot("b", &json!({"seedName": "a"}))));
        assert!(is_needed_by_shoot("a", &shoot("a", &json!({"seedName": "b"}))));
        assert!(is_needed_by_shoot("a", &shoot("b", &former)));
        assert!(!is_needed_by_shoot("a", &shoot("b", &json!({"seedName": "b"}))));
        assert!(!is_needed_by_shoot("a", &shoot("a", &json!({"seedName": ""}))));
        assert!(!is_needed_by_shoot("a", &shoot("a", &Value::Null)));
    }

    /// Otherwise a user keeps a Seed, and each of its fields, by a finalizer of a Shoot in deletion.
    #[test]
    fn a_released_shoot_holds_no_seed_but_a_former_one() {
        let seed = Seed::new("a", SeedSpec::default());
        let in_deletion = |mut shoot: Shoot, finalizers: &[&str]| {
            shoot.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
            shoot.metadata.finalizers = Some(finalizers.iter().map(ToString::to_string).collect());
            shoot
        };
        let hosted = || shoot("a", &json!({"seedName": "a"}));
        let kept = in_deletion(hosted(), &["example.org/own", "gardener"]);
        assert!(is_needed_by_shoot("a", &kept) && is_held_by_shoot(&seed, &kept));
        let released = in_deletion(hosted(), &["example.org/own"]);
        assert!(!is_needed_by_shoot("a", &released) && !is_held_by_shoot(&seed, &released));
        let former = json!({"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}]});
        let left = in_deletion(shoot("b", &former), &["example.org/own"]);
        assert!(is_needed_by_shoot("a", &left) && !is_needed_by_shoot("b", &left));
        for finalizers in [&["example.org/own"] as &[&str], &["example.org/own", "gardener"]] {
            let unplaced = in_deletion(shoot("a", &Value::Null), finalizers);
            assert!(!is_held_by_shoot(&seed, &unplaced), "{finalizers:?}");
        }
        // The gardenlet adds the finalizer to a Shoot that is not being deleted.
        assert!(is_held_by_shoot(&seed, &shoot("a", &Value::Null)));
    }

    /// Otherwise the bucket of the Seed is deleted while a destination restores a shoot from the bucket.
    #[test]
    fn a_seed_is_needed_while_an_entry_of_a_different_seed_names_its_bucket() {
        let mut seed = Seed::new("a", SeedSpec::default());
        seed.metadata.uid = Some("bucket-a".into());
        let entry = |on: Option<&str>, spec: &str, bucket: &str| -> BackupEntry {
            let body = json!({"metadata": {"name": "e"}, "spec": {"bucketName": bucket, "seedName": spec},
                "status": {"seedName": on}});
            serde_json::from_value(body).unwrap()
        };
        assert!(is_needed_by_entry(&seed, &entry(None, "a", "bucket-a")));
        assert!(is_needed_by_entry(&seed, &entry(Some("a"), "b", "bucket-b")));
        assert!(is_needed_by_entry(&seed, &entry(Some("b"), "b", "bucket-a")));
        assert!(!is_needed_by_entry(&seed, &entry(Some("b"), "b", "bucket-b")));
    }

    #[test]
    fn a_refused_shoot_holds_no_seed_and_an_unplaced_shoot_holds_no_seed_in_deletion() {
        let mut seed = Seed::new("a", SeedSpec::default());
        let refused = shoot("a", &json!({"lastErrors": [{"description": "no"}]}));
        let hosted = shoot(
            "a",
            &json!({"seedName": "a", "lastErrors": [{"description": "no"}]}),
        );
        let new = shoot("a", &Value::Null);
        assert!(is_held_by_shoot(&seed, &new) && is_held_by_shoot(&seed, &hosted));
        assert!(!is_held_by_shoot(&seed, &refused));
        let ignored = |mut shoot: Shoot| {
            let annotation = (SHOOT_IGNORE.to_owned(), "true".to_owned());
            shoot.metadata.annotations = Some([annotation].into());
            shoot
        };
        assert!(!is_held_by_shoot(&seed, &ignored(new.clone())));
        assert!(is_held_by_shoot(&seed, &ignored(hosted.clone())));
        assert!(!is_held_by_shoot(&seed, &shoot("b", &Value::Null)));
        seed.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(is_held_by_shoot(&seed, &hosted));
        assert!(!is_held_by_shoot(&seed, &new));
    }
}
