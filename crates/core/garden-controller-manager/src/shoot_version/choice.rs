//! Chooses the version of a shoot: pure decisions.

use api::gardencore::{
    CloudProfile,
    cloud_profile::{ExpirableVersion, VersionClassification},
    shoot::full_version,
};
use jiff::Timestamp;

/// The newest offered version with the prefix `wanted` (any version for an empty prefix), without preview and
/// expired versions. `None` if the profile offers no such version.
#[must_use]
pub fn newest<'a>(profile: &'a CloudProfile, wanted: &str, now: Timestamp) -> Option<&'a str> {
    let wanted = wanted.trim_start_matches('v');
    let begins = |version: &&str| wanted.is_empty() || version.starts_with(&format!("{wanted}."));
    let offered = profile.spec.kubernetes.versions.iter();
    offered
        .filter(|version| is_for_everybody(version, now))
        .filter_map(|version| full_version(&version.version))
        .filter(begins)
        .max_by_key(|version| numbers(version))
}

fn is_for_everybody(version: &ExpirableVersion, now: Timestamp) -> bool {
    use VersionClassification::{Expired, Preview, Unavailable};
    let is_over = version.expiration_date.as_ref().is_some_and(|time| time.0 <= now);
    !is_over && !matches!(version.classification, Some(Unavailable | Preview | Expired))
}

fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::gardencore::CloudProfileSpec;
    use serde_json::json;

    use super::*;

    fn profile(versions: &[&str]) -> CloudProfile {
        let versions: Vec<_> = versions
            .iter()
            .map(|version| json!({"version": version}))
            .collect();
        let spec = json!({"type": "local", "regions": [], "kubernetes": {"versions": versions}});
        CloudProfile::new("local", serde_json::from_value::<CloudProfileSpec>(spec).unwrap())
    }

    #[test]
    fn the_newest_by_number_and_not_by_spelling() {
        let profile = profile(&["1.34.4", "1.34.10", "v1.33.1", "1.3.9"]);
        let chosen = |wanted| newest(&profile, wanted, Timestamp::UNIX_EPOCH);
        assert_eq!(chosen(""), Some("1.34.10"));
        assert_eq!(chosen("1.33"), Some("1.33.1"));
        assert_eq!(chosen("v1.34"), Some("1.34.10"));
        assert_eq!(chosen("1.3"), Some("1.3.9"));
        assert_eq!(chosen("1.30"), None);
        // An incomplete version cannot be deployed.
        assert_eq!(newest(&self::profile(&["1.34"]), "", Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn nobody_is_put_on_a_preview_or_on_what_has_expired() {
        let mut profile = profile(&["1.34.4", "1.34.10", "1.35.0", "1.34.11"]);
        let past = serde_json::from_value(json!("2020-01-01T00:00:00Z")).unwrap();
        profile.spec.kubernetes.versions[3].expiration_date = Some(past);
        profile.spec.kubernetes.versions[2].classification = Some(VersionClassification::Preview);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(newest(&profile, "", now), Some("1.34.10"));
        assert_eq!(newest(&profile, "1.35", now), None);
    }

    #[test]
    fn a_version_in_full_leaves_nothing_to_choose() {
        for version in ["1.34.4", "v1.34.4", "1.34.4-rc.1", "1.34.4+a"] {
            assert!(full_version(version).is_some(), "{version}");
        }
        for version in ["", "1", "1.34", "v1.34", "1.34-rc.1", "1.34-4"] {
            assert!(full_version(version).is_none(), "{version}");
        }
    }
}
