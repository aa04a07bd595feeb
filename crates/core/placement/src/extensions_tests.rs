//! Tables of the extensions of a shoot, and the phase of each.

#![allow(clippy::unwrap_used)]

use api::gardencore::{ControllerRegistration, LifecycleStrategy as Phase, Shoot};
use rstest::rstest;
use serde_json::{Value, json};

use super::Extensions;

fn shoot(extensions: &Value, workers: bool) -> Shoot {
    let workers = if workers {
        json!([{"name": "pool", "machine": {"type": "local"}, "minimum": 1, "maximum": 1}])
    } else {
        json!([])
    };
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "namespace": "garden-dev"},
        "spec": {"region": "r", "provider": {"type": "local", "workers": workers}, "extensions": extensions},
    }))
    .unwrap()
}

/// A registration of each name with these resources.
fn garden(all: &Value) -> Vec<ControllerRegistration> {
    all.as_object()
        .unwrap()
        .iter()
        .map(|(name, resources)| {
            let object = json!({"metadata": {"name": name}, "spec": {"resources": resources}});
            serde_json::from_value(object).unwrap()
        })
        .collect()
}

fn types(extensions: &Extensions) -> Vec<&str> {
    extensions.wanted().map(|wanted| wanted.type_.as_str()).collect()
}

fn one(more: &Value) -> Value {
    let mut resource = json!({"kind": "Extension", "type": "a"});
    resource
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"provider": [resource]})
}

#[rstest]
#[case::nothing(json!({}), json!([]), &[])]
// The provider was installed by hand.
#[case::unregistered(json!({}), json!([{"type": "x"}]), &["x"])]
#[case::not_for_all(one(&json!({})), json!([]), &[])]
#[case::named(one(&json!({})), json!([{"type": "a"}]), &["a"])]
#[case::for_all(one(&json!({"autoEnable": ["shoot"]})), json!([]), &["a"])]
#[case::for_all_as_it_was(one(&json!({"globallyEnabled": true})), json!([{"type": "b"}]), &["a", "b"])]
#[case::for_seeds(one(&json!({"autoEnable": ["seed"]})), json!([]), &[])]
#[case::switched_off(one(&json!({"autoEnable": ["shoot"]})), json!([{"type": "a", "disabled": true}]), &[])]
#[case::not_switched_off(one(&json!({"autoEnable": ["shoot"]})), json!([{"type": "a", "disabled": false}]), &["a"])]
#[case::another_kind(json!({"provider": [{"kind": "Worker", "type": "a", "globallyEnabled": true}]}), json!([]), &[])]
fn a_shoot_with_workers_has(#[case] registrations: Value, #[case] named: Value, #[case] expected: &[&str]) {
    let extensions = Extensions::for_shoot(&shoot(&named, true), &garden(&registrations));
    assert_eq!(types(&extensions), expected);
    assert_eq!(extensions.refusal(), None);
}

#[rstest]
#[case::by_itself(json!({"autoEnable": ["shoot"]}), json!([]), &[], None)]
#[case::supported(json!({"autoEnable": ["shoot"], "workerlessSupported": true}), json!([]), &["a"], None)]
#[case::unregistered(json!({}), json!([{"type": "x"}]), &["x"], None)]
#[case::asked_for(json!({"workerlessSupported": false}), json!([{"type": "a"}]), &[], Some("not for shoots without workers"))]
#[case::of_seeds(json!({"clusterCompatibility": ["seed"]}), json!([{"type": "a"}]), &[], Some("not for shoots ("))]
#[case::switched_off(json!({}), json!([{"type": "a", "disabled": true}]), &[], None)]
fn a_shoot_without_workers_has(
    #[case] resource: Value,
    #[case] named: Value,
    #[case] expected: &[&str],
    #[case] refusal: Option<&str>,
) {
    let extensions = Extensions::for_shoot(&shoot(&named, false), &garden(&one(&resource)));
    assert_eq!(types(&extensions), expected);
    let told = extensions.refusal();
    assert_eq!(told.is_some(), refusal.is_some(), "{told:?}");
    assert!(told.unwrap_or_default().contains(refusal.unwrap_or_default()));
    // An object for a refused request is not deleted.
    assert_eq!(extensions.is_stale("a"), expected != ["a"] && refusal.is_none());
}

#[test]
fn the_configuration_is_the_shoot_s_and_the_patience_the_registration_s() {
    let registrations = garden(&one(&json!({"autoEnable": ["shoot"], "reconcileTimeout": "5m"})));
    let configured = json!([{"type": "a", "providerConfig": {"kind": "Config"}}]);
    let extensions = Extensions::for_shoot(&shoot(&configured, true), &registrations);
    let wanted = extensions.wanted().next().unwrap();
    assert_eq!(wanted.provider_config, Some(json!({"kind": "Config"}).into()));
    assert_eq!(wanted.reconcile_timeout.as_deref(), Some("5m"));
}

#[test]
fn a_type_that_is_named_twice_is_refused() {
    let twice = json!([{"type": "a"}, {"type": "a", "providerConfig": {}}]);
    let extensions = Extensions::for_shoot(&shoot(&twice, true), &[]);
    assert_eq!(types(&extensions), Vec::<&str>::new());
    assert!(
        extensions
            .refusal()
            .unwrap()
            .contains("\"a\" in spec.extensions is there twice")
    );
    assert!(!extensions.is_stale("a") && extensions.is_stale("b"));
}

/// For every order of a garden's list.
#[rstest]
#[case::the_first_by_name(json!({"b": null, "a": null}), "a")]
#[case::the_primary_one(json!({"a": false, "b": true}), "b")]
#[case::the_only_one(json!({"a": false}), "a")]
fn one_registration_of_a_type_counts(#[case] primary: Value, #[case] expected: &str) {
    let registration = |(name, primary): (&String, &Value)| {
        let resource = json!([{"kind": "Extension", "type": "t", "primary": primary, "globallyEnabled": true,
            "reconcileTimeout": name}]);
        (name.clone(), resource)
    };
    let all: serde_json::Map<_, _> = primary.as_object().unwrap().iter().map(registration).collect();
    let mut registrations = garden(&Value::Object(all));
    for _ in 0..2 {
        let extensions = Extensions::for_shoot(&shoot(&json!([]), true), &registrations);
        let timeout = &extensions.wanted().next().unwrap().reconcile_timeout;
        assert_eq!(timeout.as_deref(), Some(expected));
        registrations.reverse();
    }
}

#[rstest]
#[case::by_default(json!(null), [Phase::AfterKubeAPIServer, Phase::BeforeKubeAPIServer, Phase::BeforeKubeAPIServer])]
#[case::before(json!({"reconcile": "BeforeKubeAPIServer"}), [Phase::BeforeKubeAPIServer; 3])]
#[case::after_workers(json!({"reconcile": "AfterWorker"}), [Phase::AfterWorker, Phase::BeforeKubeAPIServer, Phase::BeforeKubeAPIServer])]
#[case::migrated_late(json!({"migrate": "AfterKubeAPIServer"}),
    [Phase::AfterKubeAPIServer, Phase::AfterKubeAPIServer, Phase::BeforeKubeAPIServer])]
#[case::deleted_late(json!({"delete": "AfterKubeAPIServer"}),
    [Phase::AfterKubeAPIServer, Phase::BeforeKubeAPIServer, Phase::AfterKubeAPIServer])]
// A deletion or a move has no such phase.
#[case::no_such_time(json!({"delete": "AfterWorker", "migrate": "AfterWorker"}),
    [Phase::AfterKubeAPIServer, Phase::BeforeKubeAPIServer, Phase::BeforeKubeAPIServer])]
fn each_has_its_time(#[case] lifecycle: Value, #[case] at: [Phase; 3]) {
    let [reconciled, migrated, deleted] = at;
    let registrations = garden(&one(&json!({"autoEnable": ["shoot"], "lifecycle": lifecycle})));
    let extensions = Extensions::for_shoot(&shoot(&json!([]), true), &registrations);
    for phase in [
        Phase::BeforeKubeAPIServer,
        Phase::AfterKubeAPIServer,
        Phase::AfterWorker,
    ] {
        let expected = usize::from(phase == reconciled);
        assert_eq!(extensions.reconciled(phase).count(), expected, "{phase:?}");
    }
    assert_eq!(
        (extensions.migrated("a"), extensions.deleted("a")),
        (migrated, deleted)
    );
    // The default, as for a type without a registration.
    assert_eq!(extensions.migrated("x"), Phase::BeforeKubeAPIServer);
}
