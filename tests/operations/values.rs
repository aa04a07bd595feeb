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
        ("gardenlet", "global.imageRegistry=registry/"),
        ("gardenlet", "image.digest=sha256:1"),
        ("gardenlet", "imageDigests.etcd=sha256:1"),
        ("gardenlet", "nodeSelector.disk=1"),
        ("gardenlet", "global.monitoring.scrapeInterval=1.5s"),
        ("seed", "monitoring.runbookURL=docs"),
        ("gardenlet", "tolerations[0].efect=NoSchedule"),
        ("gardenlet", "podDisruptionBudget.maxUnavailable=0"),
        ("gardenlet", "shootSyncPeriod=soon"),
        ("gardenlet", "etcdStorage=much"),
        ("gardenlet", "dnsTTLSeconds=0"),
        ("gardenlet", "dnsTTLSeconds=601"),
        ("gardenlet", "concurrentShootStateSyncs=0"),
        ("gardenlet", "zoneCloseWithin=later"),
        ("gardenlet", "systemComponents={edge}"),
        ("gardenlet", "resources.limits.memory=lots"),
        ("gardenlet", "leaderMigration.enabled=perhaps"),
        ("gardenlet", "tracing.endpoint=collector:4317"),
        ("gardenlet", "tracing.endpoint=http://collector/v1/traces"),
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
        let key = value.split(['=', '.', '[']).next().unwrap();
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

/// Ten moves at once made the downtime of each nine times as long (docs/understand/bench.md). A drain of the
/// plugin moves as many shoots at a time.
#[tokio::test]
async fn few_shoots_move_to_the_same_seed_at_a_time() {
    let desk = Desk::new().unwrap();
    let rendered = desk.rendered("garden-controller-manager", &[]).await.unwrap();
    let mut deployments = rendered.iter().filter(|object| object["kind"] == "Deployment");
    let args = &deployments.next().unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(
        args.as_array()
            .unwrap()
            .contains(&json!("--concurrent-migrations=2")),
        "{args}"
    );
    let flags = std::fs::read_to_string(root().join("crates/cli/kubectl-repot/src/flags.rs")).unwrap();
    let (_, drain) = flags.split_once("/// Shoots that move at a time.").unwrap();
    let (drain, _) = drain.split_once("pub parallel: u8").unwrap();
    assert!(drain.contains("default_value_t = 2"), "{drain}");
}

/// Otherwise the nodes would pull from the public registry of their container runtime.
#[tokio::test]
async fn a_chart_without_a_registry_is_refused_with_the_name_of_the_setting() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        let said = desk.template_exactly(&chart, &[]).await.unwrap();
        let setting = "global.imageRegistry is empty: set global.imageRegistry to";
        assert!(
            !said.success && said.err.contains(setting),
            "{chart}: {}",
            said.err
        );
        let allowed = ["--set", "global.allowEmptyRegistry=true"];
        let rendered = desk.rendered_exactly(&chart, &allowed).await;
        assert!(rendered.is_ok(), "{chart}: {rendered:?}");
    }
    for chart in ["gardenlet", "etcd-druid"] {
        let suite = ["--set", "global.imageRegistry=registry.example.org"];
        let said = desk.template_exactly(chart, &suite).await.unwrap();
        let setting = "global.kubernetesImageRegistry is empty";
        assert!(
            !said.success && said.err.contains(setting),
            "{chart}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn the_suite_and_kubernetes_each_have_one_setting_for_the_registry() {
    let desk = Desk::new().unwrap();
    let set = "global.imageRegistry=suite.example,global.kubernetesImageRegistry=kubernetes.example/k8s";
    for (chart, suite, kubernetes) in [("seed", 10, 6), ("garden", 1, 0), ("provider-aws", 3, 0)] {
        let rendered = desk.rendered_exactly(chart, &["--set", set]).await.unwrap();
        let mut images = Vec::new();
        for container in rendered
            .iter()
            .filter(|object| object["kind"] == "Deployment")
            .map(|object| &object["spec"]["template"]["spec"]["containers"][0])
        {
            images.extend(container["image"].as_str().map(str::to_owned));
            let args = container["args"].as_array().into_iter().flatten();
            let flags = args.filter_map(|arg| arg.as_str()?.split_once("-image="));
            images.extend(flags.map(|(_, image)| image.to_owned()));
        }
        let count = |registry: &str| {
            let matching = images.iter().filter(|image| image.starts_with(registry));
            matching.count()
        };
        let counted = (count("suite.example/repot/"), count("kubernetes.example/k8s/"));
        assert_eq!(counted, (suite, kubernetes), "{chart}: {images:?}");
        assert_eq!(images.len(), suite + kubernetes, "{chart}: {images:?}");
    }
}

/// Sets the digest of every image in the values of a chart, and returns the number of images.
fn set_digests(values: &mut Value, digest: &str) -> usize {
    let Some(map) = values.as_object_mut() else {
        return 0;
    };
    let below: usize = map.values_mut().map(|value| set_digests(value, digest)).sum();
    if map.contains_key("repository") {
        map.insert("digest".to_owned(), Value::from(digest));
        return below + 1;
    }
    below
}

/// A release sets the digests, so that a tag that is written again changes no installation.
#[tokio::test]
async fn each_image_is_named_by_digest_if_the_values_have_digests() {
    let desk = Desk::new().unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    for chart in charts().iter().filter(|chart| *chart != "garden") {
        let text = std::fs::read_to_string(root().join("charts").join(chart).join("values.yaml")).unwrap();
        let mut values: Value = serde_yaml_ng::from_str(&text).unwrap();
        let images = set_digests(&mut values, &digest);
        if chart == "gardenlet" {
            values["imageDigests"] = json!({"kube-apiserver:v1.34.4": digest});
        }
        for subchart in ["gardenlet", "etcd-druid", "resource-manager", "provider-local"] {
            if chart == "seed" {
                values[subchart] = json!({"enabled": false});
            }
        }
        desk.write("digests.json", &values.to_string()).unwrap();
        let rendered = desk.rendered(chart, &["-f", "digests.json"]).await.unwrap();
        let mut found = rendered.iter().filter(|object| object["kind"] == "Deployment");
        let deployment = found.next().unwrap().to_string();
        let expected = images + usize::from(chart == "gardenlet");
        assert!(expected > 0, "{chart}");
        assert_eq!(
            deployment.matches(&format!("@{digest}")).count(),
            expected,
            "{chart}: {deployment}"
        );
    }
}

/// Prints the values of all charts as a release writes them, with a digest for each image of a release.
const VALUES_OF_A_RELEASE: &str = r#"
    OUT=$PWD; cd "$0"
    . hack/progress.sh; . hack/images/crates.sh; . hack/release/charts.sh
    digest=sha256:$(printf '%064d' 0)
    for crate in $GARDEN_CRATES $SEED_CRATES $OTHER_CRATES $MACHINE_CRATES edge; do
      printf 'suite\trepot/%s\tv1.2.3\t%s\tfile\n' "$crate" "$digest"
    done >"$OUT/artifacts.tsv"
    for image in kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd coredns; do
      printf 'kubernetes\t%s\tv1.34.4\t%s\tfile\n' "$image" "$digest"
    done >>"$OUT/artifacts.tsv"
    for values in charts/*/values.yaml; do
      cp "$values" "$OUT/values.yaml"
      set_digests "$OUT/values.yaml"
      echo ---; cat "$OUT/values.yaml"
    done"#;

/// An image of a chart that the release does not pack ends the release, and would end this script.
#[tokio::test]
async fn a_release_sets_the_digest_of_each_image_of_the_charts() {
    let desk = Desk::new().unwrap();
    let root = root().canonicalize().unwrap();
    let args = ["-euc", VALUES_OF_A_RELEASE, root.to_str().unwrap()];
    let text = desk
        .run("bash", &args)
        .await
        .unwrap()
        .or_fail("set_digests")
        .unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let charts = crate::programs::documents(&text).unwrap();
    assert!(charts.len() >= 6, "{text}");
    for mut values in charts {
        let before = values.to_string();
        set_digests(&mut values, &digest);
        assert_eq!(values.to_string(), before, "an image has no digest");
        if let Some(digests) = values["imageDigests"].as_object() {
            let mut images: Vec<&str> = digests.keys().map(String::as_str).collect();
            images.sort_unstable();
            let expected = [
                "kube-apiserver",
                "kube-controller-manager",
                "kube-proxy",
                "kube-scheduler",
            ];
            assert_eq!(images, expected.map(|name| format!("{name}:v1.34.4")));
        }
        assert!(
            !before.contains("\"dev\""),
            "an image has a tag of the repository: {before}"
        );
    }
}

#[tokio::test]
async fn scheduling_pull_secrets_and_resources_reach_the_pods_of_every_chart() {
    let desk = Desk::new().unwrap();
    let fields = json!({
        "imagePullSecrets": [{"name": "pull"}],
        "priorityClassName": "important",
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "tolerations": [{"key": "only", "operator": "Exists"}],
        "topologySpreadConstraints":
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    });
    let mut values = fields.clone();
    values["podDisruptionBudget"] = json!({"maxUnavailable": 2});
    values["replicas"] = json!(3);
    let resources = json!({
        "requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "2Gi", "ephemeral-storage": "2Gi"},
    });
    values["resources"] = resources.clone();
    for chart in charts().iter().filter(|chart| *chart != "garden") {
        let (name, content) = if chart == "seed" {
            ("edge", json!({"edge": values}))
        } else {
            (chart.as_str(), values.clone())
        };
        desk.write("values.json", &content.to_string()).unwrap();
        let rendered = desk.rendered(chart, &["-f", "values.json"]).await.unwrap();
        let find = |kind: &str| {
            let mut found = rendered.iter().filter(|object| object["kind"] == kind);
            found.find(|object| object["metadata"]["name"] == name)
        };
        let deployment = find("Deployment").unwrap();
        assert_eq!(deployment["spec"]["replicas"], 3, "{chart}");
        let budget = find("PodDisruptionBudget").unwrap();
        assert_eq!(budget["spec"]["maxUnavailable"], 2, "{chart}");
        assert_eq!(
            budget["spec"]["selector"], deployment["spec"]["selector"],
            "{chart}"
        );
        // A constraint without a selector counts the Pods of the Deployment.
        let mut expected = fields.clone();
        expected["topologySpreadConstraints"][0]["labelSelector"] = deployment["spec"]["selector"].clone();
        let pod = &deployment["spec"]["template"]["spec"];
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&pod[field], value, "{chart}: {field}");
        }
        assert_eq!(pod["containers"][0]["resources"], resources, "{chart}");
    }
}

/// Moved without the values of the gardenlet, the Service would leave the seed without an address, and the
/// Deployment would not count for the health of the seed.
#[tokio::test]
async fn a_service_of_the_edge_that_the_gardenlet_does_not_know_is_refused() {
    let desk = Desk::new().unwrap();
    let renamed = "edge.name=front,edge.serviceName=front,edge.serviceAnnotations.cloud=internal";
    let said = desk.template("seed", &["--set", renamed]).await.unwrap();
    assert!(
        !said.success && said.err.contains("gardenlet.exposure.service"),
        "{}",
        said.err
    );
    let service = format!("{renamed},gardenlet.exposure.service=front");
    let said = desk.template("seed", &["--set", &service]).await.unwrap();
    let missing = "gardenlet.systemComponents lacks Deployment garden-exposure/front";
    assert!(!said.success && said.err.contains(missing), "{}", said.err);
    let all = format!("{service},gardenlet.systemComponents={{garden-exposure/front}}");
    let rendered = desk.rendered("seed", &["--set", &all]).await.unwrap();
    let service = rendered
        .iter()
        .find(|object| object["kind"] == "Service")
        .unwrap();
    assert_eq!(service["metadata"]["name"], "front");
    assert_eq!(service["metadata"]["annotations"]["cloud"], "internal");
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
    let rendered = desk
        .rendered_exactly("seed", &["-f", "seed-a.yaml"])
        .await
        .unwrap();
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
            .rendered_exactly("provider-local", &["-f", "provider.yaml"])
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

/// The files of the documentation, together, on top of the example of a seed, as documented.
#[tokio::test]
async fn values_of_the_documentation_pass() {
    let desk = Desk::new().unwrap();
    let files: Map<String, Value> = documents::files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".values.yaml"))
        .map(|(name, content)| (name, Value::from(content)))
        .collect();
    let mut args = vec!["-f", "docs/operate/examples/seed-b.values.yaml"];
    for (name, content) in &files {
        desk.write(name, content.as_str().unwrap()).unwrap();
        args.extend(["-f", name]);
    }
    assert_eq!(files.len(), 2, "{:?}", files.keys());
    desk.rendered_exactly("seed", &args).await.unwrap();
}
