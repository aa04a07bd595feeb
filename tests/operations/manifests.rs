//! Manifests of Gardener's users are accepted unchanged, by a real API server that refuses unknown fields.

use std::time::Duration;

use serde_json::Value;
use testkit::{ControlPlane, eventually};

use crate::programs::{Desk, REGISTRIES, documents, root};

/// A policy with a parameter kind refuses all requests until the API server has found the kind, every half
/// minute.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);

const FOLDER: &str = "tests/operations/manifests";

fn files() -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_of_gardeners_users_are_accepted_and_what_has_no_effect_is_told() {
    let plane = ControlPlane::start("garden").await.unwrap();
    let desk = Desk::at(plane.admin_kubeconfig_file()).unwrap();
    let kubectl = async |args: &[&str]| desk.run("kubectl", args).await.unwrap();
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
    kubectl(&["create", "namespace", "garden-dev"])
        .await
        .or_fail("namespace")
        .unwrap();

    warnings_are_given(&desk).await;
    for (name, text) in files() {
        desk.write(&name, &text).unwrap();
        is_taken(&desk, &name).await;
        // A second apply changes nothing: no default of the server conflicts with the values of the owner.
        kubectl(&["apply", "--validate=strict", "-f", &name])
            .await
            .or_fail(&name)
            .unwrap();
        let path = "jsonpath={..metadata.generation}";
        let generations = kubectl(&["get", "-f", &name, "-o", path])
            .await
            .or_fail(&name)
            .unwrap();
        assert!(
            generations.split_whitespace().all(|one| one == "1"),
            "{name}: {generations}"
        );
    }
    let versions = "jsonpath={range .items[*]}{.metadata.name}={.spec.kubernetes.version};{end}";
    let versions = kubectl(&["-n", "garden-dev", "get", "shoots", "-o", versions])
        .await
        .or_fail("get")
        .unwrap();
    assert_eq!(versions, "bare=;bare-minor=1.34;bare-null=;wild-garden=1.34.4;");
    an_annotation_without_effect_is_reported_once(&desk).await;
    misspelt_fields_are_refused(&desk).await;
}

/// A warning for each later write of the Shoot would bury the warnings of that write.
async fn an_annotation_without_effect_is_reported_once(desk: &Desk) {
    let annotate = ["-n", "garden-dev", "annotate", "--overwrite", "shoot", "bare"];
    let warnings_of = async |annotation: &str| {
        let said = desk
            .run("kubectl", &[&annotate[..], &[annotation]].concat())
            .await
            .unwrap();
        assert!(said.success, "{said:?}");
        said.err
    };
    let sync = "metadata.annotations[shoot.gardener.cloud/sync-period]";
    assert!(
        warnings_of("shoot.gardener.cloud/sync-period=1h")
            .await
            .contains(sync)
    );
    for silent in ["acme.example/sync-period=1h", "shoot.gardener.cloud/ignore=true"] {
        let said = warnings_of(silent).await;
        assert!(!said.contains("without effect"), "{silent}: {said}");
    }
    assert!(
        warnings_of("shoot.gardener.cloud/sync-period=2h")
            .await
            .contains(sync)
    );
    let ignore = "metadata.annotations[shoot.gardener.cloud/ignore]";
    assert!(
        warnings_of("shoot.gardener.cloud/ignore=yes")
            .await
            .contains(ignore)
    );
    let flag = "alpha.featuregates.shoot.gardener.cloud/x";
    let said = warnings_of(&format!("{flag}=true")).await;
    assert!(said.contains(&format!("metadata.annotations[{flag}]")), "{said}");
}

/// A manifest is accepted, at the latest when the policies for the kind are in force: each policy finds the
/// parameter kind separately.
async fn is_taken(desk: &Desk, name: &str) {
    let apply = ["apply", "--validate=strict", "-f", name];
    eventually(&format!("{name} is taken"), IN_FORCE_WITHIN, || async {
        let said = desk
            .run("kubectl", &apply)
            .await
            .map_err(|error| error.to_string())?;
        said.or_fail(name).map(drop).map_err(|error| error.to_string())
    })
    .await
    .unwrap();
}

/// A user of a field without effect gets a warning with the field's name.
async fn warnings_are_given(desk: &Desk) {
    let (_, shoot) = files()
        .into_iter()
        .find(|(name, _)| name == "90-shoot.yaml")
        .unwrap();
    let told = [
        "accepted, but without effect yet",
        "spec.provider.workers[].maximum",
        "spec.provider.workers[].volume",
        "spec.provider.workers[].machine.architecture",
        "spec.maintenance",
        "spec.controlPlane",
        "metadata.annotations[shoot.gardener.cloud/cleanup-infrastructure-resources-grace-period-seconds]",
    ];
    warning_is_given(desk, &shoot, &told, "spec.provider.workers[].systemComponents").await;
    // Some fields have an effect only with certain values.
    let other = shoot.replace("maximum: 5", "maximum: 3\n      systemComponents: {allow: false}");
    let told = [told[0], "spec.provider.workers[].systemComponents.allow"];
    warning_is_given(desk, &other, &told, "spec.provider.workers[].maximum").await;
    // A provider of DNS beside the primary provider has no effect, and no provider chooses zones.
    let providers = "    providers:\n";
    let spare = "    providers:\n    - type: spare\n      zones: {exclude: [spare]}\n";
    assert!(shoot.contains(providers), "{shoot}");
    let told = [told[0], "spec.dns.providers[].type", "spec.dns.providers[].zones"];
    let other = shoot.replace(providers, spare);
    warning_is_given(desk, &other, &told, "spec.dns.providers[].domains").await;
    let (_, projects) = files()
        .into_iter()
        .find(|(name, _)| name == "05-project.yaml")
        .unwrap();
    let told = [
        told[0],
        "spec.members",
        "spec.tolerations.defaults",
        "spec.dualApprovalForDeletion",
    ];
    warning_is_given(desk, &projects, &told, "spec.owner").await;
}

async fn warning_is_given(desk: &Desk, shoot: &str, told: &[&str], untold: &str) {
    desk.write("full.yaml", shoot).unwrap();
    eventually("a warning is given", IN_FORCE_WITHIN, || async {
        let said = desk
            .run("kubectl", &["apply", "--dry-run=server", "-f", "full.yaml"])
            .await
            .map_err(|e| e.to_string())?;
        let all = told.iter().all(|words| said.err.contains(words));
        if said.success && all && !said.err.contains(untold) {
            Ok(())
        } else {
            Err(said.err)
        }
    })
    .await
    .unwrap();
}

/// The counter-test: an unknown field is refused by name, in every kind.
async fn misspelt_fields_are_refused(desk: &Desk) {
    for (name, text) in files() {
        for mut object in documents(&text).unwrap() {
            let place = if object.get("spec").is_some_and(Value::is_object) {
                &mut object["spec"]
            } else {
                &mut object
            };
            place["misspelt"] = Value::from(1);
            let what = format!("{name} {}", object["metadata"]["name"]);
            desk.write("misspelt.json", &object.to_string()).unwrap();
            let said = desk
                .run("kubectl", &["apply", "--validate=strict", "-f", "misspelt.json"])
                .await
                .unwrap();
            assert!(
                !said.success && said.err.contains("misspelt"),
                "{what}: {}",
                said.err
            );
        }
    }
}
