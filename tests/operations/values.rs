//! Values of charts: a typing error is refused before the installation, and the project's own values are
//! accepted.

use serde_json::{Map, Value, json};

use crate::documents;
use crate::programs::{Desk, charts, root};

/// Adds an unknown key to every map below `value`, and returns these keys.
fn misspell(value: &mut Value, keys: &mut Vec<String>) {
    let Some(map) = value.as_object_mut() else { return };
    for below in map.values_mut() {
        misspell(below, keys);
    }
    let key = format!("misspelt{}x", keys.len());
    map.insert(key.clone(), Value::from(1));
    keys.push(key);
}

#[tokio::test]
async fn a_misspelt_key_is_refused_wherever_it_is() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        let text = std::fs::read_to_string(root().join("charts").join(&chart).join("values.yaml")).unwrap();
        let mut values: Value = serde_yaml_ng::from_str(&text).unwrap();
        let mut keys = Vec::new();
        misspell(&mut values, &mut keys);
        desk.write("misspelt.yaml", &values.to_string()).unwrap();
        let said = desk.template(&chart, &["-f", "misspelt.yaml"]).await.unwrap();
        assert!(!said.success, "{chart} took {values}");
        let missed: Vec<&String> = keys
            .iter()
            .filter(|key| !said.err.contains(key.as_str()))
            .collect();
        assert!(
            missed.is_empty(),
            "{chart} does not refuse {missed:?} in {values}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_kind_or_out_of_range_is_refused() {
    let desk = Desk::new().unwrap();
    for (chart, value) in [
        ("gardenlet", "replicas=-1"),
        ("gardenlet", "replicas=two"),
        ("gardenlet", "healthPort=70000"),
        ("gardenlet", "image.pullPolicy=Sometimes"),
        ("gardenlet", "imageRegistry=registry/"),
        ("gardenlet", "shootSyncPeriod=soon"),
        ("gardenlet", "etcdStorage=much"),
        ("gardenlet", "dnsTTLSeconds=0"),
        ("gardenlet", "systemComponents={edge}"),
        ("gardenlet", "resources.limits.memory=lots"),
        ("gardenlet", "leaderMigration.enabled=perhaps"),
        ("gardenlet", "leaderMigration.config.leaderNam=a"),
        ("gardenlet", "seedConfig.spec.backup.provider=5"),
        ("gardenlet", "seedConfig.spec.backup.credentialRef.name=a"),
        ("gardenlet", "seedConfig.kind=Shoot"),
        ("provider-local", "garden.kubeconfigSecret=No Name"),
        ("etcd-druid", "finalSnapshotWait=later"),
        ("etcd-druid", "concurrentSyncs=0"),
        ("etcd-druid", "backupRestore.env.HTTPS-PROXY=a"),
        ("garden-controller-manager", "seedMonitorPeriodSeconds=1"),
        ("garden-controller-manager", "takeoverAfterSeconds=-1"),
        ("seed", "edge.hostPort=99999"),
        ("seed", "gardenlet.replicas=many"),
        ("garden", "garden-controller-manager.concurrentSyncs=0"),
        ("garden", "garden-controller-manager.concurrentMigrations=0"),
    ] {
        let said = desk.template(chart, &["--set", value]).await.unwrap();
        let key = value.split(['=', '.']).next().unwrap();
        assert!(!said.success, "{chart} took {value}");
        assert!(
            said.err.contains("schema") && said.err.contains(key),
            "{chart} {value}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn defaults_of_every_chart_pass() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        assert!(!desk.rendered(&chart, &[]).await.unwrap().is_empty(), "{chart}");
    }
}

/// A bucket or a cloud behind a proxy.
#[tokio::test]
async fn the_environment_reaches_each_container_that_needs_it() {
    let desk = Desk::new().unwrap();
    for (chart, key, flag, has_variable) in [
        (
            "etcd-druid",
            "backupRestore.env",
            Some("etcd-backup-restore-env"),
            false,
        ),
        (
            "provider-aws",
            "env",
            Some("machine-controller-manager-env"),
            true,
        ),
        ("provider-local", "env", None, true),
    ] {
        let set = format!("{key}.HTTPS_PROXY=http://proxy:3128");
        let rendered = desk.rendered(chart, &["--set", &set]).await.unwrap();
        let deployment = rendered
            .iter()
            .find(|object| object["kind"] == "Deployment")
            .unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let has = |list: &str, item: Value| container[list].as_array().unwrap().contains(&item);
        let variable = json!({"name": "HTTPS_PROXY", "value": "http://proxy:3128"});
        assert_eq!(has("env", variable), has_variable, "{chart}: {container}");
        if let Some(flag) = flag {
            let flag = format!("--{flag}=HTTPS_PROXY=http://proxy:3128");
            assert!(has("args", json!(flag)), "{chart}: {container}");
        }
    }
}

/// The output of a function of `hack/install.sh`.
async fn written_by(desk: &Desk, function: &str, argument: &str) -> String {
    let script = std::fs::read_to_string(root().join("hack/install.sh")).unwrap();
    let begin = script.find(&format!("\n{function}() {{")).unwrap() + 1;
    let text = &script[begin..begin + script[begin..].find("\n}\n").unwrap() + 3];
    let around = "DNS_ZONE=repot.test; DNS_SERVER=192.0.2.53:53; LOAD_BALANCERS=192.0.2.0/24; pod_cidr() { echo 10.1.0.0/16; }; service_cidr() { echo 10.2.0.0/16; };";
    desk.run(
        "bash",
        &["-euc", &format!("{around}\n{text}\n{function} {argument}")],
    )
    .await
    .unwrap()
    .or_fail(function)
    .unwrap()
}

/// The values that `hack/install.sh` writes for a seed, by that script's own function.
#[tokio::test]
async fn values_of_the_installation_pass() {
    let desk = Desk::new().unwrap();
    let text = written_by(&desk, "seed_values", "seed-a").await;
    desk.write("seed-a.yaml", &text).unwrap();
    let rendered = desk.rendered("seed", &["-f", "seed-a.yaml"]).await.unwrap();
    let config = rendered
        .iter()
        .find(|object| object["metadata"]["name"] == "gardenlet-seed-config")
        .unwrap();
    assert!(
        config["data"]["seed.yaml"]
            .as_str()
            .unwrap()
            .contains("name: seed-a")
    );
}

/// The values for the provider, installed by a gardenlet from the registration. Tested with the gardenlet's
/// values for the seed, and with values for a single seed.
#[tokio::test]
async fn values_of_the_registration_pass() {
    let desk = Desk::new().unwrap();
    let text = written_by(&desk, "provider_values", "").await;
    let mut values: Value = serde_yaml_ng::from_str(&text).unwrap();
    values["seeds"] = json!({"seed-b": {"replicas": 2, "leaderMigration": {"enabled": false}}});
    // A value of false or 0 for a single seed counts too.
    values["leaderMigration"] = json!({"enabled": true});
    for (seed, replicas, flag) in [("seed-a", 1, true), ("seed-b", 2, false)] {
        values["gardener"] = json!({"seed": {"name": seed, "spec": {}}, "version": "0.1.0"});
        desk.write("provider.yaml", &values.to_string()).unwrap();
        let rendered = desk
            .rendered("provider-local", &["-f", "provider.yaml"])
            .await
            .unwrap();
        let mut found = rendered.iter().filter(|object| object["kind"] == "Deployment");
        let spec = &found.next().unwrap()["spec"];
        assert_eq!(spec["replicas"], replicas, "{seed}");
        let args = spec["template"]["spec"]["containers"][0]["args"].to_string();
        assert_eq!(args.contains("--enable-leader-migration"), flag, "{seed}: {args}");
        assert!(
            args.contains("--leader-elect-resource-namespace=garden"),
            "{args}"
        );
    }
}

/// The examples of the documentation, together, as documented.
#[tokio::test]
async fn values_of_the_documentation_pass() {
    let desk = Desk::new().unwrap();
    let files: Map<String, Value> = documents::files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".values.yaml"))
        .map(|(name, content)| (name, Value::from(content)))
        .collect();
    let mut args = Vec::new();
    for (name, content) in &files {
        desk.write(name, content.as_str().unwrap()).unwrap();
        args.extend(["-f", name]);
    }
    assert_eq!(files.len(), 3, "{:?}", files.keys());
    desk.rendered("seed", &args).await.unwrap();
}
