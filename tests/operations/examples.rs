//! The example files of `docs/operate/examples`, on a real API server that refuses unknown fields, with the
//! policies of the garden.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};

use crate::programs::{Desk, ProgramOutput, REGISTRIES, documents, root};

/// A policy with a parameter kind refuses all requests until the API server has found the kind, every half
/// minute.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);

const FOLDER: &str = "docs/operate/examples";

/// Part of the warning about fields that the suite ignores.
const WITHOUT_EFFECT: &str = "without effect";

/// Names and texts of the example files, in the order of the names. Values of charts end with `.values.yaml`.
fn examples() -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    files.sort();
    assert!(files.len() >= 14, "{files:?}");
    files
}

fn is_values(name: &str) -> bool {
    name.ends_with(".values.yaml")
}

/// The objects of an example: of a manifest, or the Seed in the values of a seed.
fn objects(name: &str, text: &str) -> Vec<Value> {
    let mut objects = documents(text).unwrap();
    if is_values(name) {
        objects = objects
            .iter()
            .filter_map(|values| values.pointer("/gardenlet/seedConfig").cloned())
            .collect();
    }
    objects
}

/// Sends an object to the API server, which validates the object strictly and stores nothing.
async fn dry_run(desk: &Desk, object: &Value) -> ProgramOutput {
    desk.write("object.json", &object.to_string()).unwrap();
    let args = [
        "apply",
        "--validate=strict",
        "--dry-run=server",
        "-f",
        "object.json",
    ];
    desk.run("kubectl", &args).await.unwrap()
}

/// Waits until the policy that warns about ignored fields is in force: an absent warning proves nothing
/// before.
async fn warnings_are_given(desk: &Desk, shoot: &Value) {
    let mut shoot = shoot.clone();
    shoot["spec"]["maintenance"] = json!({"autoUpdate": {"kubernetesVersion": true}});
    eventually("a warning is given", IN_FORCE_WITHIN, || async {
        let said = dry_run(desk, &shoot).await;
        if said.success && said.err.contains(WITHOUT_EFFECT) {
            Ok(())
        } else {
            Err(said.err)
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_accepted_and_a_misspelt_field_is_refused() {
    let plane = ControlPlane::start("garden").await.unwrap();
    let desk = Desk::at(plane.admin_kubeconfig_file()).unwrap();
    let helm = [
        "install",
        "garden",
        "charts/garden",
        "-n",
        "garden",
        "--create-namespace",
    ];
    desk.run("helm", &[&helm[..], &REGISTRIES[..]].concat())
        .await
        .unwrap()
        .or_fail("helm")
        .unwrap();
    for namespace in ["garden-dev", "cloud", "seed-seed-a", "seed-seed-b"] {
        desk.run("kubectl", &["create", "namespace", namespace])
            .await
            .unwrap()
            .or_fail(namespace)
            .unwrap();
    }

    let all: Vec<(String, Value)> = examples()
        .iter()
        .flat_map(|(name, text)| {
            objects(name, text)
                .into_iter()
                .map(move |object| (name.clone(), object))
        })
        .collect();
    assert!(all.len() >= 22, "{all:?}");
    let (_, shoot) = all.iter().find(|(_, object)| object["kind"] == "Shoot").unwrap();
    warnings_are_given(&desk, shoot).await;
    for (name, object) in &all {
        let what = format!("{name}: {} {}", object["kind"], object["metadata"]["name"]);
        let said = eventually(&what, IN_FORCE_WITHIN, || async {
            let said = dry_run(&desk, object).await;
            if said.success { Ok(said) } else { Err(said.err) }
        })
        .await
        .unwrap();
        assert!(!said.err.contains(WITHOUT_EFFECT), "{what}: {}", said.err);
        let mut misspelt = object.clone();
        let part = if misspelt["spec"].is_object() {
            &mut misspelt["spec"]
        } else {
            &mut misspelt
        };
        part["misspelt"] = json!(1);
        let said = dry_run(&desk, &misspelt).await;
        assert!(
            !said.success && said.err.contains("misspelt"),
            "{what}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn example_values_are_accepted_by_the_chart() {
    let desk = Desk::new().unwrap();
    let values: Vec<_> = examples()
        .into_iter()
        .filter(|(name, _)| is_values(name))
        .collect();
    assert_eq!(values.len(), 3, "{values:?}");
    for (name, text) in values {
        desk.write(&name, &text).unwrap();
        let chart = if name.starts_with("garden.") {
            "garden"
        } else {
            "seed"
        };
        let rendered = desk.rendered_exactly(chart, &["-f", &name]).await.unwrap();
        let images: Vec<&str> = rendered
            .iter()
            .filter(|object| object["kind"] == "Deployment")
            .filter_map(|object| object["spec"]["template"]["spec"]["containers"][0]["image"].as_str())
            .collect();
        let foreign: Vec<_> = images
            .iter()
            .filter(|image| !image.starts_with("registry.example.org/"))
            .collect();
        assert!(
            !images.is_empty() && foreign.is_empty(),
            "{name}: {foreign:?} of {images:?}"
        );
    }
}

/// Readers find each example from the page of the installation or of the provider, and owner checks are on in
/// each Seed.
#[test]
fn every_example_is_named_by_the_installation() {
    let page = ["install.md", "provider-aws.md"]
        .map(|name| std::fs::read_to_string(root().join("docs/operate").join(name)).unwrap())
        .concat();
    for (name, text) in examples() {
        assert!(page.contains(&format!("{FOLDER}/{name}")), "{name}");
        assert!(text.starts_with("# ") && text.contains("# Change: "), "{name}");
        for seed in objects(&name, &text)
            .iter()
            .filter(|object| object["kind"] == "Seed")
        {
            let enabled = seed.pointer("/spec/settings/ownerChecks/enabled");
            assert_eq!(enabled, Some(&Value::Bool(true)), "{name}");
        }
    }
}

/// Without these rights an operator on call sees neither a silent seed nor a refusal.
#[test]
fn the_role_of_takeovers_reads_what_the_card_for_a_dead_seed_reads() {
    let name = "takeover-role.yaml";
    let (_, text) = examples().into_iter().find(|(file, _)| file == name).unwrap();
    let objects = objects(name, &text);
    let rules = objects[0]["rules"].as_array().unwrap();
    for (resource, verb) in [
        ("shoots", "force-restore"),
        ("seeds", "get"),
        ("seeds", "list"),
        ("events", "list"),
        ("leases", "get"),
        ("deployments", "get"),
    ] {
        let has = |rule: &Value, key: &str, word: &str| {
            rule[key]
                .as_array()
                .is_some_and(|words| words.contains(&json!(word)))
        };
        let mut rules = rules.iter();
        assert!(
            rules.any(|rule| has(rule, "resources", resource) && has(rule, "verbs", verb)),
            "{verb} {resource}"
        );
    }
}

/// An operator can withdraw the keys of a single seed only if no other seed has the keys.
#[test]
fn the_seeds_of_the_examples_share_no_keys() {
    let mut owners = BTreeMap::new();
    for (name, text) in examples().iter().filter(|(name, _)| name == "seed-secrets.yaml") {
        for secret in objects(name, text) {
            for key in ["accessKeyID", "secretAccessKey", "tsigKeyName", "tsigSecret"] {
                let Some(value) = secret["stringData"][key].as_str() else {
                    continue;
                };
                let namespace = secret["metadata"]["namespace"].to_string();
                let other = owners.insert(format!("{key} {value}"), namespace.clone());
                assert!(
                    other.is_none_or(|other| other == namespace),
                    "{key} of {namespace}: {value}"
                );
            }
        }
    }
    assert_eq!(owners.len(), 8, "{owners:?}");
}
