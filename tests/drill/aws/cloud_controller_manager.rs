//! Kubernetes' own cloud-controller-manager for AWS, as a ControlPlane deploys the process (RZ-21, R17-60).
//! The program and the API server are real, the rights come from the gardenlet, and moto simulates EC2.
//!
//! The pod is simulated: the arguments, Secrets and ConfigMap are placed where the program expects the files.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::extensions::ControlPlane;
use aws_fixture::{
    policy,
    region::{self, IMAGE, Region, SHOOT},
};
use cloud_aws::{
    infrastructure::InfrastructureStatus,
    machines::{Machines, ProviderId, ProviderSpec},
};
use cloud_controller_manager_aws::{gate::proxies, program::Program};
use extension::control_plane::ControlPlaneActuator;
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Node, Secret},
    },
};
use kube::{Api, Client, ResourceExt, api::PostParams};
use permit::Permit;
use provider_aws::control_plane::{
    AwsControlPlane,
    cloud_controller_manager::{ACCOUNT, CloudControllerManagerSettings},
};
use provider_aws_fixture::{TEST, build_access, object, of_kind, reconciler, seed};
use runtime::{client::Shoot, workload::MOUNTS};
use serde_json::json;
use tempfile::TempDir;
use testkit::{ControlPlane as Plane, Moto, PlayedKubelet, eventually, find_program, grant_chart};
use tokio::task::JoinSet;

const REGION: &str = "eu-west-1";
/// The user of the shoot's Secret `cloud-controller-manager`.
const USER: &str = "system:cloud-controller-manager";
const PROVIDER: &str = "provider-aws";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_gets_its_zone_and_loses_its_taint_through_the_cloud_controller_manager_alone() -> Result<()> {
    let (moto, plane) = (Moto::start().await?, Plane::start("seed-and-shoot").await?);
    let region = Region::start(&moto, REGION).await?;
    let (status, _) = region.made().await?;
    let client = seed(&plane).await?;
    let _pods = PlayedKubelet::start(&client);
    let folder = TempDir::new()?;
    let arguments = deployed(&plane, &client, &region, &status, folder.path()).await?;
    deploy_rights(&client).await?;

    let zones = region.zones();
    let [one, other] = [
        joined(&client, &region, &status, &zones[0], "one").await?,
        joined(&client, &region, &status, &zones[1], "other").await?,
    ];
    let program = Program {
        path: find_program("aws-cloud-controller-manager")?,
        arguments,
        credentials: folder.path().join(ACCOUNT),
        proxies: proxies("", ""),
    };
    let before = region.proxy.calls().len();
    let mut running = JoinSet::new();
    running.spawn(async move { program.run(Permit::sole("a test")).await });

    for (node, zone) in [(&one, &zones[0]), (&other, &zones[1])] {
        let described = eventually("the Node is described", SOON, || is_described(&client, node));
        let described = described.await.with_context(|| ended(&mut running))?;
        let id = &status.zones.iter().find(|known| known.name == *zone).unwrap().id;
        let labels = described.labels();
        for (label, value) in [
            ("topology.kubernetes.io/zone", zone.as_str()),
            ("topology.kubernetes.io/region", REGION),
            ("topology.k8s.aws/zone-id", id),
            ("node.kubernetes.io/instance-type", "m5.large"),
        ] {
            ensure!(
                labels.get(label).map(String::as_str) == Some(value),
                "{label}: {labels:?}"
            );
        }
    }

    // No kubelet reports. The Node of the ended instance is removed, and no further Node.
    let machines = Machines::for_cluster(region.direct.clone(), SHOOT);
    region::until_done(|| machines.terminate("one", None, SOON)).await?;
    eventually("the Node of the ended instance is gone", SOON, || async {
        match Api::<Node>::all(client.clone()).get_opt(&one).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("it is there".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
    .with_context(|| ended(&mut running))?;
    Api::<Node>::all(client.clone())
        .get(&other)
        .await
        .context("the other Node")?;

    let calls = region.proxy.calls().split_off(before);
    policy::equals_of_cloud_controller_manager(&calls)?;
    ensure!(running.try_join_next().is_none(), "the program has ended");
    Ok(())
}

/// Deploys the ControlPlane with the rights of the chart. Returns the arguments of Kubernetes' program; the
/// files are in `folder`.
async fn deployed(
    plane: &Plane,
    client: &Client,
    region: &Region,
    status: &InfrastructureStatus,
    folder: &Path,
) -> Result<Vec<String>> {
    let kubeconfig = serde_json::to_vec(&plane.kubeconfig(USER, &[])?)?;
    let secret = Secret {
        data: Some(BTreeMap::from([(
            "kubeconfig".to_owned(),
            ByteString(kubeconfig),
        )])),
        ..of_kind(json!({"metadata": {"name": "cloud-controller-manager"}}))?
    };
    TEST.apply(&Api::namespaced(client.clone(), SHOOT), &secret)
        .await?;
    grant_chart(client, PROVIDER, PROVIDER).await?;
    let provider = plane.client(PROVIDER, &[]).await?;
    let control_planes: Api<ControlPlane> = Api::namespaced(provider.clone(), SHOOT);
    eventually("the provider has its rights", SOON, || {
        control_planes.get_opt("none")
    })
    .await?;
    let wanted: ControlPlane = object("one", REGION, json!({"infrastructureProviderStatus": status}))?;
    Api::namespaced(client.clone(), SHOOT)
        .create(&PostParams::default(), &wanted)
        .await?;
    let parts = AwsControlPlane {
        cloud_controller_manager: Some(CloudControllerManagerSettings {
            image: "cloud-controller-manager-aws:test".into(),
            endpoint: Some(region.proxy.endpoint.clone()),
            environment: Vec::new(),
        }),
        place: build_access(region),
    };
    let provider = reconciler(&provider, ControlPlaneActuator(parts));
    eventually("the ControlPlane is deployed", SOON, || async {
        Box::pin(provider.run(&wanted)).await.map(drop)
    })
    .await?;
    mounted(client, folder).await
}

/// The files of the pod, and the arguments with the files' paths.
async fn mounted(client: &Client, folder: &Path) -> Result<Vec<String>> {
    let deployment: Deployment = Api::namespaced(client.clone(), SHOOT)
        .get("cloud-controller-manager")
        .await?;
    let pod = deployment
        .spec
        .and_then(|spec| spec.template.spec)
        .context("no pod")?;
    for volume in pod.volumes.iter().flatten() {
        let of_volume = folder.join(&volume.name);
        fs::create_dir(&of_volume)?;
        let files: BTreeMap<String, Vec<u8>> = if volume.secret.is_some() {
            let secret: Secret = Api::namespaced(client.clone(), SHOOT).get(&volume.name).await?;
            let data = secret.data.into_iter().flatten();
            data.map(|(name, value)| (name, value.0)).collect()
        } else {
            let map: ConfigMap = Api::namespaced(client.clone(), SHOOT).get(&volume.name).await?;
            let data = map.data.into_iter().flatten();
            data.map(|(name, value)| (name, value.into_bytes())).collect()
        };
        for (name, content) in files {
            fs::write(of_volume.join(name), content)?;
        }
    }
    let arguments = pod
        .containers
        .into_iter()
        .next()
        .and_then(|container| container.args);
    let arguments = arguments.context("no arguments")?.into_iter();
    let of_program = arguments.skip_while(|argument| argument != "--").skip(1);
    let folder = folder.to_str().context("a folder")?;
    Ok(of_program
        .map(|argument| argument.replace(MOUNTS, folder))
        .collect())
}

/// The shoot's RBAC, as the gardenlet writes the objects.
async fn deploy_rights(client: &Client) -> Result<()> {
    let shoot = Shoot::new(client.clone(), &Permit::sole("a test"));
    parts::controller_leaders::deploy_cloud_controller_manager_rights(&shoot).await?;
    Ok(())
}

/// A Node as a kubelet with `--cloud-provider=external` registers the Node, with the ID that the
/// machine-controller-manager adds. The instance runs in the zone.
async fn joined(
    client: &Client,
    region: &Region,
    status: &InfrastructureStatus,
    zone: &str,
    name: &str,
) -> Result<String> {
    let spec = ProviderSpec {
        ami: IMAGE.into(),
        machine_type: "m5.large".into(),
        subnet_id: status.subnet_for_nodes(zone).context("no subnet")?.to_owned(),
        security_group_ids: status.groups_of_nodes(),
        ..ProviderSpec::new(SHOOT, REGION)
    };
    let machines = Machines::for_cluster(region.direct.clone(), SHOOT);
    let instance = machines.launch(name, &spec, "true").await?;
    let node: Node = of_kind(json!({
        "metadata": {"name": name},
        "spec": {
            "providerID": ProviderId::from(&instance).to_string(),
            "taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}],
        },
    }))?;
    Api::all(client.clone())
        .create(&PostParams::default(), &node)
        .await?;
    Ok(name.to_owned())
}

async fn is_described(client: &Client, name: &str) -> Result<Node, String> {
    let node: Node = Api::all(client.clone())
        .get(name)
        .await
        .map_err(|error| error.to_string())?;
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let is_tainted = taints.into_iter().any(|taint| taint.key == UNINITIALIZED);
    if is_tainted {
        return Err("it is tainted".to_owned());
    }
    // The program writes the addresses after the removal of the taint.
    let addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    if !addresses.into_iter().any(|address| address.type_ == "InternalIP") {
        return Err("it has no address".to_owned());
    }
    Ok(node)
}

/// The reason why the program has ended, if so.
fn ended(running: &mut JoinSet<Result<(), String>>) -> String {
    match running.try_join_next() {
        Some(ended) => format!("{ended:?}"),
        None => "the program runs".to_owned(),
    }
}
