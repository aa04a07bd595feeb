//! May the destination host the shoot at all? By the taints and labels of the Seed, the selectors of Shoot
//! and CloudProfile, and the versions of the gardenlets. Pure.
//!
//! These rules choose a seed for a planned move. A takeover ignores the rules, as the shoot would be lost
//! without the takeover.

use api::gardencore::{CloudProfile, Seed, Shoot};
use kube::ResourceExt;
use placement::{
    Journey, journey,
    seed_choice::{self, Obstacle},
};

use super::preflight::{Verdict, wanted_move};

/// The verdict on a move that would begin now, if the destination may not host the shoot. `profile`: the
/// CloudProfile that the Shoot names, if there is one.
pub(super) fn check(
    shoot: &Shoot,
    [source, destination]: [Option<&Seed>; 2],
    profile: Option<&CloudProfile>,
    verdict: Verdict,
) -> Verdict {
    let (Some((from, _)), Some(destination)) = (wanted_move(shoot), destination) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled {
        return verdict;
    }
    let Some((reason, message)) = obstacle(shoot, source, destination, profile) else {
        return verdict;
    };
    Verdict {
        ready: false,
        reason,
        message: format!("{message}, name another seed, or set spec.seedName back to {from}."),
    }
}

/// The first obstacle.
fn obstacle(
    shoot: &Shoot,
    source: Option<&Seed>,
    destination: &Seed,
    profile: Option<&CloudProfile>,
) -> Option<Obstacle> {
    seed_choice::obstacle(shoot, destination, profile).or_else(|| older_gardenlet(source?, destination))
}

/// An older gardenlet may not read the state that a newer gardenlet wrote. Patch releases do not change the
/// state.
fn older_gardenlet(source: &Seed, destination: &Seed) -> Option<Obstacle> {
    let (from, to) = (gardenlet_version(source)?, gardenlet_version(destination)?);
    (minor(to)? < minor(from)?).then(|| {
        let (source, destination) = (source.name_any(), destination.name_any());
        let message = format!(
            "The gardenlet of seed {destination} has version {to}, and that of seed {source} the newer version {from}, whose state of the shoot \
             an older gardenlet may not read: upgrade the gardenlet of seed {destination}"
        );
        ("DestinationGardenletOlder", message)
    })
}

fn gardenlet_version(seed: &Seed) -> Option<&str> {
    let gardener = seed.status.as_ref()?.gardener.as_ref()?;
    Some(gardener.version.as_str())
}

/// Major and minor version; `None` for a version that is not of numbers, e.g. of a development build.
fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn seed(name: &str, spec: &Value, version: Option<&str>) -> Seed {
        let mut all = json!({
            "dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "metal", "region": "r"},
        });
        for (field, value) in spec.as_object().unwrap() {
            all[field] = value.clone();
        }
        let status =
            version.map(|version| json!({"gardener": {"id": "i", "name": "gardenlet", "version": version}}));
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed",
            "metadata": {"name": name, "labels": {"kind": "edge"}}, "spec": all, "status": status,
        }))
        .unwrap()
    }

    fn shoot(spec: &Value) -> Shoot {
        let mut all = json!({"region": "r", "provider": {"type": "metal"}, "kubernetes": {}});
        for (field, value) in spec.as_object().unwrap() {
            all[field] = value.clone();
        }
        Shoot::new("web", serde_json::from_value(all).unwrap())
    }

    #[track_caller]
    fn judged(
        shoot_spec: &Value,
        seed_spec: &Value,
        profile: Option<&Value>,
        expected: Option<(&str, &str)>,
    ) {
        let profile = profile.map(|selector| {
            let spec = json!({"type": "metal", "regions": [], "kubernetes": {}, "seedSelector": selector});
            CloudProfile::new("metal", serde_json::from_value(spec).unwrap())
        });
        let found = obstacle(
            &shoot(shoot_spec),
            None,
            &seed("b", seed_spec, None),
            profile.as_ref(),
        );
        match (&found, expected) {
            (None, None) => {}
            (Some((reason, message)), Some((wanted, words))) => {
                assert_eq!(*reason, wanted, "{message}");
                assert!(message.contains(words), "{message}");
            }
            _ => assert_eq!(found.map(|found| found.0), expected.map(|expected| expected.0)),
        }
    }

    #[test]
    fn a_move_that_has_begun_asks_for_no_eligibility() {
        let tainted = seed("b", &json!({"taints": [{"key": "protected"}]}), None);
        let judged = |type_: &str, state: &str| {
            let mut shoot = shoot(&json!({"seedName": "b"}));
            let last = json!({"type": type_, "state": state, "progress": 5, "description": "",
                "lastUpdateTime": "2026-01-01T12:00:00Z"});
            shoot.status = serde_json::from_value(json!({"seedName": "a", "lastOperation": last})).unwrap();
            let ready = Verdict {
                ready: true,
                reason: "DestinationSeedReady",
                message: String::new(),
            };
            check(&shoot, [None, Some(&tainted)], None, ready)
        };
        let held = judged("Reconcile", "Succeeded");
        assert_eq!((held.ready, held.reason), (false, "SeedTaintNotTolerated"));
        assert!(
            held.message.ends_with("or set spec.seedName back to a."),
            "{}",
            held.message
        );
        for (type_, state) in [
            ("Migrate", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Error"),
        ] {
            assert!(judged(type_, state).ready, "{type_} {state}");
        }
    }

    #[test]
    fn a_shoot_moves_only_to_a_seed_with_tolerated_taints() {
        let taints = |taints: Value| json!({"taints": taints});
        let refused = |tolerations: Value, taint: Value, words| {
            let shoot = json!({"tolerations": tolerations});
            judged(
                &shoot,
                &taints(json!([taint])),
                None,
                Some(("SeedTaintNotTolerated", words)),
            );
        };
        refused(
            json!([]),
            json!({"key": "protected"}),
            "has the taint protected, which",
        );
        refused(
            json!([{"key": "other"}]),
            json!({"key": "protected"}),
            "spec.tolerations",
        );
        refused(
            json!([{"key": "tier"}]),
            json!({"key": "tier", "value": "gold"}),
            "tier=gold",
        );
        refused(
            json!([{"key": "tier", "value": "iron"}]),
            json!({"key": "tier", "value": "gold"}),
            "tier=gold",
        );
        let both = taints(json!([{"key": "protected"}, {"key": "tier", "value": "gold"}]));
        let tolerates =
            json!({"tolerations": [{"key": "protected", "value": "any"}, {"key": "tier", "value": "gold"}]});
        judged(&tolerates, &both, None, None);
        judged(
            &json!({"tolerations": [{"key": "protected"}]}),
            &both,
            None,
            Some(("SeedTaintNotTolerated", "tier=gold")),
        );
    }

    #[test]
    fn a_shoot_moves_only_to_a_seed_that_shoot_and_profile_select() {
        let none = json!({});
        let labels = |kind: &str| json!({"matchLabels": {"kind": kind}});
        let types = |type_: &str| json!({"providerTypes": [type_]});
        for selector in [labels("edge"), types("metal"), types("*"), json!({})] {
            judged(&json!({"seedSelector": selector}), &none, None, None);
            judged(&none, &none, Some(&selector), None);
        }
        let unreadable = json!({"matchExpressions": [{"key": "kind", "operator": "Perhaps"}]});
        for selector in [labels("core"), types("aws"), unreadable] {
            let own = Some(("SeedSelectorDoesNotMatch", "spec.seedSelector of the shoot"));
            judged(&json!({"seedSelector": selector}), &none, None, own);
            let of_profile = Some(("CloudProfileDoesNotSelectSeed", "of CloudProfile metal"));
            judged(&none, &none, Some(&selector), of_profile);
        }
    }

    #[test]
    fn a_shoot_moves_only_to_a_gardenlet_that_is_not_older() {
        let none = json!({});
        let older = |from: Option<&str>, to: Option<&str>| {
            let (source, destination) = (seed("a", &none, from), seed("b", &none, to));
            obstacle(&shoot(&none), Some(&source), &destination, None)
        };
        for (from, to) in [("0.2.0", "0.1.9"), ("v1.0.0", "0.9.0"), ("1.10.0", "1.9.0")] {
            let (reason, message) = older(Some(from), Some(to)).unwrap();
            assert_eq!(reason, "DestinationGardenletOlder");
            assert!(message.contains(from) && message.contains(to), "{message}");
        }
        for (from, to) in [
            ("0.1.9", "0.1.0"),
            ("0.1.0", "0.2.0"),
            ("1.0.0", "1.0.0"),
            ("dev", "0.1.0"),
            ("0.1.0", "dev"),
        ] {
            assert_eq!(older(Some(from), Some(to)), None, "{from} {to}");
        }
        assert_eq!(older(None, Some("0.1.0")), None);
        assert_eq!(older(Some("0.1.0"), None), None);
    }
}
