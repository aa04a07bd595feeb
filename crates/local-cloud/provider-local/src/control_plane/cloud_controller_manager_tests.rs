#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use api::{
    extensions::NodeIPAM,
    leader_migration::{ControllerLeader, LeaderMigration},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodSpec};

use serde_json::json;

use super::*;

const CLUSTER: &str = "shoot--dev--one";

fn ranges() -> NodeIPAM {
    NodeIPAM {
        cluster_cidr: "100.96.0.0/11".into(),
        service_cluster_ip_range: "100.64.0.0/13".into(),
    }
}

/// Node IPAM runs only in the cloud-controller-manager.
fn main() -> CloudControllerManager {
    CloudControllerManager {
        node_ipam: Some(ranges()),
        leader_migration: None,
    }
}

/// Node IPAM runs in the cloud-controller-manager or in a different manager, under the migration lock.
fn any() -> CloudControllerManager {
    CloudControllerManager {
        leader_migration: Some(LeaderMigration {
            leader_name: "node-ipam-migration".into(),
            controller_leaders: vec![ControllerLeader {
                name: "node-ipam-controller".into(),
                component: "*".into(),
            }],
        }),
        ..main()
    }
}

fn settings() -> Settings {
    Settings {
        image: "ccm:test".into(),
        load_balancer_range: None,
    }
}

fn made(wanted: Option<&CloudControllerManager>) -> Deployment {
    deployment(build_inputs(wanted))
}

fn deployment(wanted: ManagerInputs<'_>) -> Deployment {
    process(&settings(), wanted).deployment(&BTreeMap::new()).unwrap()
}

fn build_inputs(spec: Option<&CloudControllerManager>) -> ManagerInputs<'_> {
    ManagerInputs {
        cluster: CLUSTER,
        spec,
        owner: None,
    }
}

fn pod_of(deployment: &Deployment) -> PodSpec {
    deployment.spec.clone().unwrap().template.spec.unwrap()
}

fn flags(wanted: Option<&CloudControllerManager>) -> Vec<String> {
    pod_of(&made(wanted)).containers[0].args.clone().unwrap()
}

const ALWAYS: [&str; 5] = [
    "--kubeconfig=/srv/kubernetes/cloud-controller-manager/kubeconfig",
    "--cloud-credentials=/srv/kubernetes/cloudprovider",
    "--cluster-name=shoot--dev--one",
    "--health-address=0.0.0.0:8080",
    "--leader-elect-resource-name=cloud-controller-manager",
];
const NODE_IPAM: [&str; 3] = [
    "--allocate-node-cidrs",
    "--cluster-cidr=100.96.0.0/11",
    "--service-cluster-ip-range=100.64.0.0/13",
];
const MIGRATING: [&str; 2] = [
    "--enable-leader-migration",
    "--leader-migration-config=/srv/kubernetes/cloud-controller-manager-leader-migration/leader-migration.yaml",
];

#[test]
fn flags_follow_what_the_control_plane_says() {
    assert_eq!(flags(None), ALWAYS);
    assert_eq!(flags(Some(&CloudControllerManager::default())), ALWAYS);
    assert_eq!(flags(Some(&main())), [&ALWAYS[..], &NODE_IPAM].concat());
    assert_eq!(
        flags(Some(&any())),
        [&ALWAYS[..], &NODE_IPAM, &MIGRATING].concat()
    );
}

#[test]
fn addresses_of_load_balancers_come_from_the_range_of_the_seeds_operator() {
    let range = "192.0.2.0/24".parse().ok();
    let settings = Settings {
        load_balancer_range: range,
        ..settings()
    };
    let flags = arguments(&settings, build_inputs(None));
    assert_eq!(flags.last().unwrap(), "--load-balancer-range=192.0.2.0/24");
}

#[test]
fn the_file_is_there_only_while_controllers_move() {
    assert_eq!(migration_file(None), None);
    assert_eq!(migration_file(Some(&main())), None);
    let file = migration_file(Some(&any())).unwrap();
    assert_eq!(file.metadata.name.as_deref(), Some(MIGRATION));
    assert_eq!(file.data.unwrap()[FILE], any().leader_migration.unwrap().file());
}

/// The mounted objects are exactly the objects that the flags name, and all of the objects exist.
#[test]
fn all_that_the_flags_name_is_mounted() {
    for (wanted, names) in [
        (None, &[NAME, CLOUD_PROVIDER][..]),
        (Some(main()), &[NAME, CLOUD_PROVIDER]),
        (Some(any()), &[NAME, CLOUD_PROVIDER, MIGRATION]),
    ] {
        let pod = pod_of(&made(wanted.as_ref()));
        let mounted: Vec<_> = pod.containers[0].volume_mounts.iter().flatten().collect();
        let of_names: Vec<_> = mounted.iter().map(|mount| mount.name.as_str()).collect();
        assert_eq!(of_names, names);
        assert!(mounted.iter().all(|mount| mount.read_only == Some(true)));
        for flag in flags(wanted.as_ref()) {
            let path = flag.split_once('=').map_or("", |(_, value)| value);
            assert!(
                !path.starts_with('/') || mounted.iter().any(|mount| path.starts_with(&mount.mount_path)),
                "{flag}"
            );
        }
        let volumes: Vec<_> = pod.volumes.iter().flatten().collect();
        assert_eq!(volumes.len(), mounted.len());
    }
}

/// R17-60: the process gets the certificate of the authority of the process beside etcd, without a key.
#[test]
fn where_the_seed_says_so_it_asks_whose_the_shoot_is() {
    let owner = OwnerClaim {
        shoot_uid: String::new(),
        name: "owner.web.dev.internal.example.test".into(),
        identity: "seed-a".into(),
        zone: "example.test".into(),
        authorities: Vec::new(),
        epoch: 4,
        terms: ownership::Terms::default(),
    };
    let wanted = ManagerInputs {
        owner: Some(&owner),
        ..build_inputs(None)
    };
    let pod = pod_of(&deployment(wanted));
    let args = pod.containers[0].args.clone().unwrap();
    assert!(args.contains(&"--ownership-epoch=4".to_owned()), "{args:?}");
    let volumes = pod.volumes.unwrap();
    let authority = volumes.iter().find(|volume| volume.name == AUTHORITY).unwrap();
    let items = authority.secret.as_ref().unwrap().items.as_ref().unwrap();
    assert_eq!(
        items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(),
        ["ca.crt"]
    );
}

#[test]
fn one_at_a_time_and_without_any_privilege() {
    let made = made(None);
    let spec = made.spec.clone().unwrap();
    assert_eq!(spec.replicas, Some(1));
    assert_eq!(
        serde_json::to_value(&spec.strategy).unwrap()["rollingUpdate"],
        json!({"maxSurge": 0, "maxUnavailable": 1})
    );
    let labels = json!({"app": "kubernetes", "role": NAME, "gardener.cloud/role": "controlplane"});
    assert_eq!(json!(spec.template.metadata.unwrap().labels), labels);
    assert_eq!(
        json!(spec.selector.match_labels),
        json!({"app": "kubernetes", "role": NAME})
    );
    let pod = pod_of(&made);
    assert_eq!(pod.automount_service_account_token, Some(false));
    let of_container = pod.containers[0].security_context.clone().unwrap();
    assert_eq!(of_container.allow_privilege_escalation, Some(false));
    assert_eq!(of_container.read_only_root_filesystem, Some(true));
    let of_pod = pod.security_context.unwrap();
    assert_eq!(
        (of_pod.run_as_non_root, of_pod.run_as_user),
        (Some(true), Some(runtime::workload::NON_ROOT))
    );
}
