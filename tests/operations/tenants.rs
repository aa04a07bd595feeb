//! The charts of the garden keep members of projects from the processes of the garden.

use serde_json::{Value, json};

use crate::programs::{Desk, root};

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// Otherwise the requests of many accounts of a project delay the Leases of seeds.
#[tokio::test]
async fn requests_of_the_suite_have_levels_of_their_own() {
    let desk = Desk::new().unwrap();
    let objects = desk.rendered("garden", &[]).await.unwrap();
    let levels: Vec<_> = of_kind(&objects, "PriorityLevelConfiguration")
        .into_iter()
        .map(|level| level["metadata"]["name"].clone())
        .collect();
    let schemas = of_kind(&objects, "FlowSchema");
    assert_eq!((levels.len(), schemas.len()), (4, 5));
    let seeds = json!({"kind": "Group", "group": {"name": "gardener.cloud:system:seeds"}});
    let manager = json!({"kind": "ServiceAccount",
        "serviceAccount": {"name": "garden-controller-manager", "namespace": "garden"}});
    let precedence = |name: &str| {
        let mut found = schemas.iter().filter(|schema| schema["metadata"]["name"] == name);
        found.next().unwrap()["spec"]["matchingPrecedence"]
            .as_u64()
            .unwrap()
    };
    for schema in &schemas {
        let (name, level) = (
            schema["metadata"]["name"].as_str().unwrap(),
            &schema["spec"]["priorityLevelConfiguration"]["name"],
        );
        // Writes into a namespace with many watches of a member fill each level with seats.
        let waits_for_no_watch = ["repot-garden-controller-manager", "repot-operator-writes"].contains(&name);
        if waits_for_no_watch {
            assert_eq!(level, "exempt");
        } else {
            assert!(levels.contains(level), "{level}");
            // Slow requests of an operator hold no seat of gardenlets.
            assert_eq!(level, name);
        }
        let subjects = &schema["spec"]["rules"][0]["subjects"];
        match name {
            // Slow requests of a seed hold no seat that the lock of garden-controller-manager needs.
            "repot-leases" | "repot-processes" => assert_eq!(*subjects, json!([seeds])),
            "repot-garden-controller-manager" => assert_eq!(*subjects, json!([manager])),
            _ => {}
        }
        // Schema service-accounts of Kubernetes has 9000.
        assert!(schema["spec"]["matchingPrecedence"].as_u64().unwrap() < 9000);
    }
    // A Lease matches several schemas, and so does a write of an operator.
    assert!(precedence("repot-leases") < precedence("repot-processes"));
    assert!(precedence("repot-operator-writes") < precedence("repot-operators"));
    assert!(precedence("repot-processes") < precedence("repot-operators"));

    let off = ["--set", "priorityAndFairness.enabled=false"];
    let objects = desk.rendered("garden", &off).await.unwrap();
    assert!(of_kind(&objects, "FlowSchema").is_empty());
    assert!(of_kind(&objects, "PriorityLevelConfiguration").is_empty());
}

/// A FlowSchema of the runbook for a stolen certificate names the level. Slow requests with the certificate
/// would hold each seat that the level has, or that the levels of gardenlets borrow.
#[tokio::test]
async fn the_level_of_withdrawn_certificates_has_no_seats() {
    let desk = Desk::new().unwrap();
    let objects = desk.rendered("garden", &[]).await.unwrap();
    let limits = |name: &str| {
        let levels = of_kind(&objects, "PriorityLevelConfiguration").into_iter();
        let mut levels = levels.filter(|level| level["metadata"]["name"] == name);
        levels.next().unwrap()["spec"]["limited"].clone()
    };
    let withdrawn = limits("repot-withdrawn");
    assert_eq!(withdrawn["nominalConcurrencyShares"], 0);
    assert_eq!(withdrawn["borrowingLimitPercent"], 0);
    // With response Reject, Kubernetes serves one request at a time.
    assert_eq!(withdrawn["limitResponse"]["type"], "Queue");
    assert_eq!(limits("repot-leases")["borrowingLimitPercent"], 0);
    assert_eq!(limits("repot-processes")["borrowingLimitPercent"], 100);
}

/// A few slow requests of one user hold each seat of a level that all users share, so no schema of the chart
/// matches all users.
#[tokio::test]
async fn operators_wait_for_no_member() {
    let desk = Desk::new().unwrap();
    let subjects_of = async |name: &str, flags: &[&str]| {
        let objects = desk.rendered("garden", flags).await.unwrap();
        for schema in of_kind(&objects, "FlowSchema") {
            let subjects = schema["spec"]["rules"][0]["subjects"].to_string();
            assert!(!subjects.contains("system:authenticated"), "{subjects}");
        }
        let schemas = of_kind(&objects, "FlowSchema").into_iter();
        let mut schemas = schemas.filter(|schema| schema["metadata"]["name"] == name);
        schemas
            .next()
            .map(|schema| schema["spec"]["rules"][0]["subjects"].clone())
    };
    let role = std::fs::read_to_string(root().join("docs/operate/examples/takeover-role.yaml")).unwrap();
    assert!(role.contains("\n  name: garden-operators\n"));
    let defaults = json!([
        {"kind": "Group", "group": {"name": "garden-operators"}},
        {"kind": "Group", "group": {"name": "kubeadm:cluster-admins"}},
    ]);
    for name in ["repot-operators", "repot-operator-writes"] {
        assert_eq!(subjects_of(name, &[]).await, Some(defaults.clone()));
    }

    let operators = "priorityAndFairness.operators";
    let chosen = format!(
        "{operators}.groups={{garden-admins}},{operators}.serviceAccounts={{argocd/deployer,tools/*}}"
    );
    let expected = json!([
        {"kind": "Group", "group": {"name": "garden-admins"}},
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": "argocd", "name": "deployer"}},
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": "tools", "name": "*"}},
    ]);
    let flags = ["--set", chosen.as_str()];
    for name in ["repot-operators", "repot-operator-writes"] {
        assert_eq!(subjects_of(name, &flags).await, Some(expected.clone()));
    }
}

/// A Pod of a project must not read the metrics, which name Shoots of all projects.
#[tokio::test]
async fn pods_of_projects_do_not_reach_garden_controller_manager() {
    let desk = Desk::new().unwrap();
    let objects = desk.rendered("garden", &[]).await.unwrap();
    let policies = of_kind(&objects, "NetworkPolicy");
    let [policy] = policies.as_slice() else {
        panic!("{policies:?}")
    };
    let deployments = of_kind(&objects, "Deployment");
    let [deployment] = deployments.as_slice() else {
        panic!("{deployments:?}")
    };
    assert_eq!(policy["spec"]["podSelector"], deployment["spec"]["selector"]);
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
    let rule = &policy["spec"]["ingress"][0];
    let from = json!({"key": "project.gardener.cloud/name", "operator": "DoesNotExist"});
    assert_eq!(
        rule["from"][0]["namespaceSelector"]["matchExpressions"],
        json!([from])
    );
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(rule["ports"][0]["port"], container["ports"][0]["containerPort"]);
    assert_eq!(policy["spec"]["ingress"].as_array().unwrap().len(), 1);

    let off = ["--set", "garden-controller-manager.networkPolicy.enabled=false"];
    let objects = desk.rendered("garden", &off).await.unwrap();
    assert!(of_kind(&objects, "NetworkPolicy").is_empty());
}

/// The nodes of the garden are for the processes of the garden.
#[tokio::test]
async fn projects_run_no_pods_by_default() {
    let desk = Desk::new().unwrap();
    let objects = desk.rendered("garden", &[]).await.unwrap();
    let deployments = of_kind(&objects, "Deployment");
    let args = &deployments[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    for flag in [
        "--project-quota=pods=0",
        "--project-quota=count/shoots.core.gardener.cloud=20",
        "--project-quota=count/configmaps=200",
    ] {
        assert!(args.as_array().unwrap().contains(&json!(flag)), "{args}");
    }
    let namespaces = of_kind(&objects, "Namespace");
    assert!(!namespaces.is_empty());
    for namespace in namespaces {
        let labels = &namespace["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
    }
}

/// A test must not need a longer history or a larger etcd than a garden has.
#[test]
fn the_test_gardens_have_the_flags_of_the_requirements() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let page = read("docs/operate/install-requirements.md");
    let servers = read("crates/dev/testkit/src/control_plane.rs");
    for flag in [
        "--etcd-compaction-interval=1m",
        "--quota-backend-bytes=8589934592",
    ] {
        assert!(page.contains(flag), "the page has no {flag}");
        assert!(servers.contains(flag), "the servers of tests have no {flag}");
    }
    let landscape = read("hack/landscape/clusters.sh");
    for argument in [
        "etcd-compaction-interval: 1m",
        "quota-backend-bytes: \"8589934592\"",
    ] {
        assert!(landscape.contains(argument), "the landscape has no {argument}");
    }
}
