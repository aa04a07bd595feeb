#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)] // JSON is written where it is used

use serde_json::{Value, json};

use super::*;

fn seed(labels: Value) -> Seed {
    let mut seed = Seed::new("s", api::gardencore::SeedSpec::default());
    seed.metadata.labels = serde_json::from_value(labels).unwrap();
    seed
}

fn going(mut seed: Seed) -> Seed {
    seed.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    seed
}

fn registration(name: &str, deployment: Value) -> ControllerRegistration {
    let resources = json!([{"kind": "Network", "type": "mesh"}]);
    let spec = json!({"resources": resources, "deployment": deployment});
    ControllerRegistration::new(name, serde_json::from_value(spec).unwrap())
}

/// Whether the registration is installed in the seed.
fn comes(deployment: Value, seed: &Seed, needed: bool, shoots: bool) -> bool {
    let needs = needed.then(|| Need::new("Network", "mesh")).into_iter().collect();
    !wanted(seed, &[Arc::new(registration("r", deployment))], &needs, shoots).is_empty()
}

#[test]
fn policies() {
    let there = seed(json!({}));
    for policy in [json!(null), json!({}), json!({"policy": "OnDemand"})] {
        assert!(comes(policy.clone(), &there, true, true), "{policy}");
        assert!(!comes(policy.clone(), &there, false, true), "{policy}");
        assert!(
            comes(policy, &going(there.clone()), true, false),
            "what is still there needs it"
        );
    }
    assert!(comes(json!({"policy": "Always"}), &there, false, false));
    assert!(!comes(
        json!({"policy": "Always"}),
        &going(there.clone()),
        false,
        false
    ));
    assert!(comes(
        json!({"policy": "AlwaysExceptNoShoots"}),
        &there,
        false,
        true
    ));
    assert!(!comes(
        json!({"policy": "AlwaysExceptNoShoots"}),
        &there,
        false,
        false
    ));
}

#[test]
fn a_registration_comes_where_its_selector_leads() {
    let selector = json!({"policy": "Always", "seedSelector": {"matchLabels": {"kind": "edge"}}});
    assert!(comes(
        selector.clone(),
        &seed(json!({"kind": "edge"})),
        true,
        true
    ));
    assert!(!comes(selector, &seed(json!({"kind": "core"})), true, true));
    let wrong = json!({"seedSelector": {"matchExpressions": [{"key": "k", "operator": "Perhaps"}]}});
    assert!(!comes(wrong, &seed(json!({"k": "v"})), true, true));
    let mut leaving = registration("r", json!({"policy": "Always"}));
    leaving.metadata.deletion_timestamp = going(seed(json!({}))).metadata.deletion_timestamp;
    assert!(wanted(&seed(json!({})), &[Arc::new(leaving)], &Needs::new(), true).is_empty());
}

#[test]
fn only_a_primary_answers() {
    let mut registration = registration("r", json!(null));
    let need = Need::new("Network", "mesh");
    assert!(answers(&registration, &need), "by default it does");
    assert!(!answers(&registration, &Need::new("Network", "other")));
    registration.spec.resources[0].primary = Some(false);
    assert!(!answers(&registration, &need));
}

fn installation(
    name: &str,
    of: &str,
    deployment: Option<&str>,
    required: Option<&str>,
) -> ControllerInstallation {
    let mut found = object(name, "s", of, deployment);
    let time = "2026-01-01T00:00:00Z";
    let condition = required.map(|status| {
        json!({"type": REQUIRED, "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time})
    });
    let conditions: Vec<Value> = condition.into_iter().collect();
    found.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
    found
}

/// The written and released installations, by name.
fn planned(
    wanted: &[(&str, Option<&str>)],
    there: Vec<ControllerInstallation>,
) -> (Vec<String>, Vec<String>) {
    let wanted = wanted
        .iter()
        .map(|(name, deployment)| ((*name).to_owned(), deployment.map(str::to_owned)));
    let there: Vec<_> = there.into_iter().map(Arc::new).collect();
    let plan = plan("s", &wanted.collect(), &there);
    let released = plan.release.iter().map(|released| released.name_any()).collect();
    (plan.write.iter().map(ResourceExt::name_any).collect(), released)
}

#[test]
fn what_is_missing_is_made_once_and_under_the_same_name() {
    let (written, released) = planned(&[("r", Some("d"))], vec![]);
    assert_eq!(
        (written.as_slice(), released.len()),
        ([name("r", "s")].as_slice(), 0)
    );
    assert_eq!(
        planned(&[("r", Some("d"))], vec![installation("i", "r", Some("d"), None)]),
        (vec![], vec![])
    );
    assert_ne!(name("r", "s"), name("r", "t"));
    assert_eq!(name(&"r".repeat(300), "s").len(), LONGEST_NAME);
}

/// A seed writes finalizers, conditions and the status of the provider.
#[test]
fn the_cache_holds_only_the_fields_that_the_choice_reads() {
    let long = "x".repeat(10_000);
    let mut found = installation("i", "r", Some("d"), Some("False"));
    let mut other = found.status.clone().unwrap().conditions.remove(0);
    other.type_ = "Valid".to_owned();
    found.metadata.uid = Some("u".to_owned());
    found.metadata.finalizers = Some(vec![long.clone(); 3]);
    found.metadata.annotations = Some([("a".to_owned(), long.clone())].into());
    let status = found.status.as_mut().unwrap();
    status.conditions[0].message.clone_from(&long);
    status.conditions.extend(vec![other; 100]);
    status.provider_status = Some(json!({"a": long}).into());
    let whole = found.clone();
    trim_installation(&mut found);
    assert!(serde_json::to_string(&found).unwrap().len() < 1000);
    assert!(may_go(&found) && seed_of(&found) == Some("s"));
    assert_eq!(found.metadata.uid, whole.metadata.uid);
    for wanted in [&[][..], &[("r", Some("e"))], &[("r", Some("d"))]] {
        let same = [whole.clone(), found.clone()].map(|found| planned(wanted, vec![found]));
        assert_eq!(same[0], same[1]);
    }
}

#[test]
fn one_that_is_there_gets_another_deployment() {
    let there = || vec![installation("i", "r", Some("d"), None)];
    assert_eq!(planned(&[("r", Some("e"))], there()).0, ["i"]);
    assert_eq!(planned(&[("r", None)], there()).0, ["i"]);
}

#[test]
fn only_what_is_known_to_be_unused_is_released() {
    for (required, released) in [
        (Some("False"), true),
        (Some("True"), false),
        (Some("Unknown"), false),
        (None, false),
    ] {
        let (written, gone) = planned(&[], vec![installation("i", "r", None, required)]);
        assert_eq!((written.len(), !gone.is_empty()), (0, released), "{required:?}");
    }
}

#[test]
fn what_goes_is_made_anew_only_when_it_is_gone() {
    let mut leaving = installation("i", "r", None, Some("False"));
    leaving.metadata.deletion_timestamp = going(seed(json!({}))).metadata.deletion_timestamp;
    assert_eq!(planned(&[("r", None)], vec![leaving.clone()]), (vec![], vec![]));
    assert_eq!(planned(&[], vec![leaving]), (vec![], vec![]));
}

#[test]
fn installations_of_other_seeds_are_left_alone() {
    let mut other = installation("i", "r", None, Some("False"));
    other.spec.seed_ref.as_mut().unwrap().name = Some("t".into());
    let mut of_shoot = installation("j", "r", None, Some("False"));
    of_shoot.spec.seed_ref = None;
    assert_eq!(planned(&[], vec![other, of_shoot]), (vec![], vec![]));
}
