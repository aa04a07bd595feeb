#![allow(clippy::unwrap_used)]

use api::{extensions::NodeIPAM, meta::ErrorCode};
use cloud_aws::infrastructure::{SubnetStatus, VpcStatus};
use ownership::Terms;
use serde_json::{Value, json};

use super::*;

const CLUSTER: &str = "shoot--dev--one";

fn settings() -> CloudControllerManagerSettings {
    CloudControllerManagerSettings {
        image: "ccm:test".into(),
        endpoint: None,
        environment: [
            "HTTPS_PROXY=http://proxy:3128",
            "NO_PROXY=10.0.0.0/8",
            "COLOR=magenta",
        ]
        .map(|variable| variable.parse().unwrap())
        .into(),
    }
}

fn infrastructure() -> InfrastructureStatus {
    InfrastructureStatus {
        vpc: VpcStatus {
            id: "vpc-1".into(),
            subnets: vec![SubnetStatus {
                id: "subnet-1".into(),
                ..SubnetStatus::default()
            }],
            ..VpcStatus::default()
        },
        ..InfrastructureStatus::default()
    }
}

fn owner() -> OwnerClaim {
    OwnerClaim {
        shoot_uid: "u".into(),
        name: "owner.one.example".into(),
        identity: "seed-a".into(),
        zone: "example".into(),
        authorities: Vec::new(),
        epoch: 7,
        terms: Terms::default(),
    }
}

fn container(owner: Option<&OwnerClaim>) -> Value {
    let deployment = process(&settings(), CLUSTER, owner)
        .deployment(&[].into())
        .unwrap();
    json!(deployment.spec.unwrap().template.spec.unwrap().containers[0])
}

/// I3, R17-60: the parent process has the flags of the owner, the program has none.
#[test]
fn the_owner_is_checked_by_the_process_that_starts_the_program() {
    let all = container(Some(&owner()));
    let args: Vec<String> = serde_json::from_value(all["args"].clone()).unwrap();
    let of_program = args.iter().position(|arg| arg == "--").unwrap();
    let epoch = args.iter().position(|arg| arg == "--ownership-epoch=7").unwrap();
    assert!(epoch < of_program, "{args:?}");
    assert!(all["volumeMounts"].to_string().contains(AUTHORITY), "{all}");
    let unchecked = container(None);
    assert!(!unchecked.to_string().contains("owner"), "{unchecked}");
}

#[test]
fn the_operators_proxy_is_the_parents_and_other_variables_are_not() {
    let args = container(None)["args"].to_string();
    let (parent, program) = args.split_once("\"--\"").unwrap();
    assert!(parent.contains("--https-proxy=http://proxy:3128") && parent.contains("--no-proxy=10.0.0.0/8"));
    assert!(
        !args.contains("magenta") && !program.contains("proxy:3128"),
        "{args}"
    );
}

/// The gardenlet writes the Secret `cloudprovider` without a check of the account.
#[test]
fn the_process_reads_confirmed_keys_alone() {
    let pod = process(&settings(), CLUSTER, None)
        .deployment(&[].into())
        .unwrap();
    let pod = json!(pod.spec.unwrap().template.spec).to_string();
    assert!(
        pod.contains(&format!("\"secretName\":\"{ACCOUNT}\"")) && !pod.contains("\"cloudprovider\""),
        "{pod}"
    );
    let data = ["accessKeyID", "secretAccessKey", "other"].map(|key| (key.to_owned(), b"x".to_vec()));
    let secret = account_secret(&Credentials::new("garden/aws", data.into()));
    let keys: Vec<String> = secret.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["accessKeyID", "secretAccessKey"]);
}

#[test]
fn the_process_has_no_privilege_and_no_account_in_the_seed() {
    let pod = process(&settings(), CLUSTER, None)
        .deployment(&[].into())
        .unwrap();
    let pod = json!(pod.spec.unwrap().template.spec);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let may = &pod["containers"][0]["securityContext"];
    assert_eq!(may["readOnlyRootFilesystem"], true);
    assert_eq!(may["capabilities"]["drop"], json!(["ALL"]));
}

#[test]
fn the_configuration_names_the_network_and_the_cluster() {
    assert_eq!(
        cloud_config(&infrastructure(), "eu-west-1", CLUSTER, None).unwrap(),
        "[Global]\nRegion = eu-west-1\nVPC = vpc-1\nSubnetID = subnet-1\nKubernetesClusterID = shoot--dev--one\n"
    );
    let elsewhere = cloud_config(&infrastructure(), "eu-west-1", CLUSTER, Some("http://moto:5000")).unwrap();
    assert!(
        elsewhere.contains("Service = EC2\nRegion = eu-west-1\nURL = \"http://moto:5000\"\n"),
        "{elsewhere}"
    );
}

#[test]
fn a_region_cannot_add_a_line_to_the_configuration() {
    for region in ["", "eu-west-1\nVPC = vpc-9", "eu west", "\"x\""] {
        let error = cloud_config(&infrastructure(), region, CLUSTER, None).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem], "{region:?}");
    }
    let error = cloud_config(&InfrastructureStatus::default(), "eu-west-1", CLUSTER, None).unwrap_err();
    assert!(error.to_string().contains("no subnet"), "{error}");
}

#[test]
fn node_ipam_is_refused_with_the_remedy() {
    refuse_guests(None).unwrap();
    refuse_guests(Some(&CloudControllerManager::default())).unwrap();
    let guest = CloudControllerManager {
        node_ipam: Some(NodeIPAM::default()),
        leader_migration: None,
    };
    let error = refuse_guests(Some(&guest)).unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
    assert!(
        error
            .to_string()
            .contains("leave node-ipam-controller in the kube-controller-manager"),
        "{error}"
    );
}
