//! The objects that follow from a Worker, and the changes that replace machines.
#![allow(clippy::unwrap_used)]

use super::*;

const NAMESPACE: &str = "shoot--dev--one";

fn pool() -> Value {
    json!({
        "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": 5,
        "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"], "kubernetesVersion": "1.34.2",
        "userDataSecretRef": {"name": "user-data-a", "key": "cloud_config"}, "nodeAgentSecretName": "agent-1",
        "labels": {"color": "red"}, "taints": [{"key": "t", "effect": "NoSchedule"}],
        "machineControllerManager": {"machineDrainTimeout": "10m", "nodeConditions": ["KernelDeadlock", "ReadonlyFilesystem"]},
        "nodeTemplate": {"capacity": {"cpu": "2"}}, "clusterAutoscaler": {"scaleDownUnneededTime": "30m"}, "priority": 10,
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut pool = pool();
    pool[field] = value;
    pool
}

fn worker(pool: &Value) -> Worker {
    serde_json::from_value(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {
            "type": "local", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}, "pools": [pool],
        },
    }))
    .unwrap()
}

fn made_beside(pool: &Value, existing: &[MachineDeployment], hibernated: bool) -> Result<Vec<PoolObjects>> {
    made_without(None, pool, existing, hibernated)
}

fn made_without(
    isolated: Option<&str>,
    pool: &Value,
    existing: &[MachineDeployment],
    hibernated: bool,
) -> Result<Vec<PoolObjects>> {
    let around = Surroundings {
        hibernated,
        isolated,
        ..surroundings(existing)
    };
    wanted(&worker(pool), &around, class_of)
}

fn surroundings(existing: &[MachineDeployment]) -> Surroundings<'_> {
    Surroundings {
        namespace: NAMESPACE,
        hibernated: false,
        existing,
        user_data: [("a".to_owned(), b"run me".to_vec())].into(),
        isolated: None,
        former: None,
        shrinks: false,
        now: Timestamp::UNIX_EPOCH,
    }
}

#[allow(clippy::unnecessary_wraps)] // as a provider's
fn class_of(pool: &WorkerPool, zone: &str) -> Result<Class> {
    Ok(Class {
        provider: "local".into(),
        provider_spec: json!({"type": pool.machine_type, "zone": zone}).into(),
        rolls_with: Vec::new(),
        node_labels: [("provider/zone-id".to_owned(), format!("id-{zone}"))].into(),
    })
}

fn made(pool: &Value) -> Vec<PoolObjects> {
    made_beside(pool, &[], false).unwrap()
}

#[test]
fn each_zone_has_a_deployment_with_its_share() {
    let all = made(&pool());
    let shares: Vec<_> = all
        .iter()
        .map(|one| (one.status.name.as_str(), one.status.minimum, one.status.maximum))
        .collect();
    assert_eq!(
        shares,
        [("shoot--dev--one-a-z1", 2, 3), ("shoot--dev--one-a-z2", 1, 2)]
    );
    let spec = &all[0].deployment.spec;
    assert_eq!(spec.replicas, Some(2));
    let template = json!(spec.template);
    assert_eq!(
        template["metadata"]["labels"],
        json!({"name": "shoot--dev--one-a-z1", "worker.gardener.cloud/pool": "a", "topology.kubernetes.io/zone": "x"})
    );
    let machine = &template["spec"];
    assert_eq!(machine["drainTimeout"], "10m");
    assert_eq!(machine["nodeConditions"], "KernelDeadlock,ReadonlyFilesystem");
    assert_eq!(machine["nodeTemplate"]["metadata"]["labels"]["color"], "red");
    assert_eq!(machine["nodeTemplate"]["spec"]["taints"][0]["key"], "t");
    let annotations = all[0].deployment.annotations();
    assert_eq!(
        annotations["autoscaler.gardener.cloud/scale-down-unneeded-time"],
        "30m"
    );
}

/// RZ-21: where no other controller sets labels of Nodes, pods are spread over zones by these labels.
#[test]
fn a_node_has_labels_of_its_zone_its_region_and_the_id_of_its_zone() {
    let labels = |pool: &Value| {
        let all = made(pool);
        let of = |one: &PoolObjects| {
            json!(one.deployment.spec.template.spec)["nodeTemplate"]["metadata"]["labels"].clone()
        };
        all.iter().map(of).collect::<Vec<_>>()
    };
    let of_zone = |zone: &str| {
        json!({
            "color": "red", "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": zone,
            "provider/zone-id": format!("id-{zone}"),
        })
    };
    assert_eq!(labels(&pool()), [of_zone("x"), of_zone("y")]);
    let false_place = json!({"color": "red", "topology.kubernetes.io/zone": "q", "provider/zone-id": "q"});
    assert_eq!(labels(&with("labels", false_place)), [of_zone("x"), of_zone("y")]);
    let without_zones = &labels(&with("zones", json!([])))[0];
    assert_eq!(without_zones["topology.kubernetes.io/zone"], json!(null));
    assert_eq!(without_zones["topology.kubernetes.io/region"], "r");
}

#[test]
fn a_class_has_what_the_provider_says_and_its_own_secret() {
    let one = &made(&pool())[0];
    let class = json!(one.class);
    let name = one.class.name_any();
    assert_eq!(class["providerSpec"], json!({"type": "small", "zone": "x"}));
    assert_eq!(class["secretRef"], json!({"name": name, "namespace": NAMESPACE}));
    assert_eq!(class["credentialsSecretRef"]["name"], "cloudprovider");
    assert_eq!(class["nodeTemplate"]["capacity"]["cpu"], "2");
    assert_eq!(one.secret.name_any(), name);
    assert_eq!(one.secret.data.as_ref().unwrap()[USER_DATA].0, b"run me");
    let of_machine = one.deployment.spec.template.spec.as_ref().unwrap();
    assert_eq!(of_machine.class.as_ref().unwrap().name, Some(name));
}

/// A needless replacement of machines would restart every pod of a pool.
#[test]
fn machines_are_replaced_for_these_reasons_and_no_others() {
    let before = made(&pool())[0].class.name_any();
    assert!(before.starts_with("shoot--dev--one-a-z1-"), "{before}");
    for (field, value, replaces) in [
        ("machineType", json!("big"), true),
        ("machineImage", json!({"name": "os", "version": "2"}), true),
        ("volume", json!({"size": "20Gi"}), true),
        ("kubernetesVersion", json!("1.35.0"), true),
        ("nodeAgentSecretName", json!("agent-2"), true),
        ("providerConfig", json!({"disk": "fast"}), true),
        ("kubernetesVersion", json!("1.34.9"), false),
        ("minimum", json!(1), false),
        ("labels", json!({"color": "blue"}), false),
        ("taints", json!([]), false),
        ("maxSurge", json!(2), false),
        ("zones", json!(["x"]), false),
        (
            "machineControllerManager",
            json!({"machineDrainTimeout": "1m"}),
            false,
        ),
        // The user data is rewritten with each certificate; the name of the agent's Secret tells when the
        // change matters.
        (
            "userDataSecretRef",
            json!({"name": "user-data-b", "key": "cloud_config"}),
            false,
        ),
    ] {
        let after = made(&with(field, value.clone()))[0].class.name_any();
        assert_eq!(after != before, replaces, "{field}: {value}");
    }
    let mut old = pool();
    old.as_object_mut().unwrap().remove("nodeAgentSecretName");
    let before = made(&old)[0].class.name_any();
    old["userDataSecretRef"]["name"] = json!("user-data-b");
    assert_ne!(made(&old)[0].class.name_any(), before);
}

#[test]
fn what_exists_keeps_its_name_and_what_an_autoscaler_decided() {
    let mut existing: Vec<_> = made(&pool()).into_iter().map(|one| one.deployment).collect();
    existing[1].spec.replicas = Some(2);
    let turned = with("zones", json!(["y", "x"]));
    let all = made_beside(&turned, &existing, false).unwrap();
    assert_eq!(all[0].status.name, "shoot--dev--one-a-z2");
    assert_eq!(all[0].deployment.spec.replicas, Some(2));
    let asleep = made_beside(&pool(), &existing, true).unwrap();
    assert!(asleep.iter().all(|one| one.deployment.spec.replicas == Some(0)));
    assert_eq!(asleep[0].status.minimum, 2, "it wakes up with them");
}

/// Deployments by the last part of the name, with the wanted machines and the limits in the status.
fn summarize(all: &[PoolObjects]) -> Vec<(String, i32, Option<[i32; 2]>)> {
    let of = |one: &PoolObjects| {
        let name = one.deployment.name_any().replace("shoot--dev--one-a-", "");
        let bounds = one
            .leaving
            .is_none()
            .then_some([one.status.minimum, one.status.maximum]);
        (name, one.deployment.spec.replicas.unwrap(), bounds)
    };
    all.iter().map(of).collect()
}

/// The deployments as written.
fn deployments(all: Vec<PoolObjects>) -> Vec<MachineDeployment> {
    all.into_iter().map(|one| one.deployment).collect()
}

/// RZ-20..22: there and back, each step twice.
#[test]
fn a_zone_is_left_and_filled_again() {
    let three = json!({"zones": ["x", "y", "z"], "minimum": 6, "maximum": 7});
    let mut pool = pool();
    pool.as_object_mut()
        .unwrap()
        .extend(three.as_object().unwrap().clone());
    let before = deployments(made_without(None, &pool, &[], false).unwrap());
    let mut there = before.clone();
    for _ in 0..2 {
        let all = made_without(Some("y"), &pool, &there, false).unwrap();
        let expected = [
            ("z1".to_owned(), 3, Some([3, 4])),
            ("z2".to_owned(), 2, None),
            ("z3".to_owned(), 3, Some([3, 3])),
        ];
        assert_eq!(summarize(&all), expected);
        assert_eq!(all[1].leaving.unwrap().machines, 6);
        for (one, old) in all.iter().zip(&before) {
            let class = |deployment: &MachineDeployment| deployment.spec.template.spec.clone().unwrap().class;
            assert_eq!(class(&one.deployment), class(old), "no machine is replaced");
        }
        there = deployments(all);
    }
    // The deployment is in deletion, and then is gone.
    there[1].metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        Timestamp::UNIX_EPOCH,
    ));
    for _ in 0..2 {
        let all = made_without(Some("y"), &pool, &there, false).unwrap();
        assert_eq!(
            summarize(&all),
            [
                ("z1".to_owned(), 3, Some([3, 4])),
                ("z3".to_owned(), 3, Some([3, 3]))
            ]
        );
        there = deployments(all);
    }
    // Failback: the zone gets its share. The remaining zones keep their machines, but do not grow any more.
    for _ in 0..2 {
        let all = made_without(None, &pool, &there, false).unwrap();
        let expected = [
            ("z1".to_owned(), 3, Some([2, 3])),
            ("z2".to_owned(), 2, Some([2, 2])),
            ("z3".to_owned(), 3, Some([2, 3])),
        ];
        assert_eq!(summarize(&all), expected);
        there = deployments(all);
    }
    // An autoscaler removes a machine, and the machine does not return.
    there[2].spec.replicas = Some(2);
    there = deployments(made_without(None, &pool, &there, false).unwrap());
    there[2].spec.replicas = Some(3);
    let all = made_without(None, &pool, &there, false).unwrap();
    assert_eq!(summarize(&all)[2], ("z3".to_owned(), 2, Some([2, 2])));
    // The limits have changed: machines beyond the limits are removed.
    pool["minimum"] = json!(3);
    pool["maximum"] = json!(6);
    let all = made_without(None, &pool, &there, false).unwrap();
    assert_eq!(summarize(&all)[0], ("z1".to_owned(), 2, Some([1, 2])));
}

#[test]
fn an_isolation_that_is_called_off_in_the_middle_loses_no_machine() {
    let before = deployments(made(&pool()));
    let there = deployments(made_without(Some("x"), &pool(), &before, false).unwrap());
    let after = made_without(None, &pool(), &there, false).unwrap();
    assert_eq!(
        summarize(&after),
        [
            ("z1".to_owned(), 2, Some([2, 3])),
            ("z2".to_owned(), 3, Some([1, 3]))
        ]
    );
    let template = json!(after[0].deployment.spec.template);
    assert_eq!(
        template,
        json!(before[0].spec.template),
        "its Nodes take pods again"
    );
    assert_eq!(after[0].deployment.annotations(), before[0].annotations());
}

/// RZ-22: sizes that differ from the shares of the minimum, after changes by an autoscaler or a user.
#[test]
fn failback_gives_the_zone_its_size_and_the_others_shrink_to_theirs() {
    let pool = with("maximum", json!(8));
    let former: FormerSizes = serde_json::from_value(json!({
        "zone": "x", "pools": {"a": {"minimum": 3, "maximum": 8, "zones": {"x": 3, "y": 2}}},
    }))
    .unwrap();
    let sizes = |pool: &Value, isolated: Option<&str>, there: &[MachineDeployment], shrinks: bool| {
        let around = Surroundings {
            isolated,
            former: Some(&former),
            shrinks,
            ..surroundings(there)
        };
        let all = wanted(&worker(pool), &around, class_of).unwrap();
        (summarize(&all), deployments(all))
    };
    let mut before = deployments(made(&pool));
    before[0].spec.replicas = Some(3);
    let (away, _) = sizes(&pool, Some("x"), &before, false);
    assert_eq!(
        away,
        [("z1".to_owned(), 3, None), ("z2".to_owned(), 5, Some([3, 8]))]
    );
    let moved = [before[0].clone(), {
        let mut grown = before[1].clone();
        grown.spec.replicas = Some(5);
        grown
    }];
    let (after_a_move, _) = sizes(&pool, Some("x"), &moved, false);
    assert_eq!(after_a_move, away, "no zone grows twice");
    let mut there = vec![before[1].clone()];
    there[0].spec.replicas = Some(5);

    // The zone gets its machines before the remaining zones shrink.
    let (back, there) = sizes(&pool, None, &there, false);
    assert_eq!(back[0], ("z1".to_owned(), 3, Some([2, 4])));
    assert_eq!(back[1].1, 5);
    let (shrunk, there) = sizes(&pool, None, &there, true);
    let expected = [
        ("z1".to_owned(), 3, Some([2, 4])),
        ("z2".to_owned(), 2, Some([1, 4])),
    ];
    assert_eq!(shrunk, expected);
    let (again, _) = sizes(&pool, None, &there, false);
    assert_eq!(again, expected);
    // Changed limits: the share of the minimum is the size.
    let other = with("maximum", json!(6));
    let (shrunk, _) = sizes(&other, None, &there[1..], true);
    assert_eq!(
        shrunk,
        [
            ("z1".to_owned(), 2, Some([2, 3])),
            ("z2".to_owned(), 1, Some([1, 3]))
        ]
    );
}

/// A cancelled failover: the end of a terminating deployment is awaited under the same name, but not for
/// ever.
#[test]
fn a_deployment_whose_deletion_hangs_gets_a_successor_of_another_name() {
    let mut there = deployments(made(&pool()));
    for (since, name, is_succeeded) in [(899, "z1", false), (900, "z3", true)] {
        let since = Timestamp::from_second(-since).unwrap();
        there[0].metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since));
        let all = made_without(None, &pool(), &there, false).unwrap();
        let names: Vec<_> = summarize(&all).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, [name, "z2"]);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(super::is_succeeded(&there[0], &all, now), is_succeeded, "{name}");
        assert!(!super::is_succeeded(&there[1], &all, now));
    }
}

#[test]
fn a_zone_is_left_by_who_sleeps_and_by_pools_that_are_nowhere_else() {
    let before = deployments(made(&pool()));
    let asleep = made_without(Some("x"), &pool(), &before, true).unwrap();
    assert!(asleep.iter().all(|one| one.deployment.spec.replicas == Some(0)));
    let alone = with("zones", json!(["x"]));
    let all = made_without(Some("x"), &alone, &before[..1], false).unwrap();
    assert_eq!(summarize(&all), [("z1".to_owned(), 2, None)]);
    assert!(made_without(Some("x"), &alone, &[], false).unwrap().is_empty());
    let elsewhere = made_without(Some("w"), &pool(), &before, false).unwrap();
    assert_eq!(
        summarize(&elsewhere),
        summarize(&made_beside(&pool(), &before, false).unwrap())
    );
}

#[test]
fn what_is_not_done_is_refused() {
    let refused = made_beside(&with("updateStrategy", json!("ManualInPlaceUpdate")), &[], false);
    let error = refused.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
    assert!(error.to_string().contains("pool a"), "{error}");
}
