//! The cloud-controller-manager beside a shoot's control plane, derived from the ControlPlane.
//!
//! A pod is recreated whenever a mounted object changes. So a change of the file of leader migration takes
//! effect, although the process reads the file only at the start.

use api::extensions::CloudControllerManager;
use ipnet::Ipv4Net;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use owner_checks::{AUTHORITY, OwnerClaim};
use runtime::workload::{Files, Health, MOUNTS, Workload};

/// Name of the Deployment and of the container. The same name belongs to the Secret with the kubeconfig of
/// the shoot, written by a gardenlet, and to the main lock in the shoot. The kubeconfig has rights for that
/// lock.
pub const NAME: &str = "cloud-controller-manager";
/// The Secret with the account in the cloud.
const CLOUD_PROVIDER: &str = "cloudprovider";
/// The ConfigMap with the file of leader migration. Exists only while controllers move.
pub const MIGRATION: &str = "cloud-controller-manager-leader-migration";
/// The key of the ConfigMap.
const FILE: &str = "leader-migration.yaml";
/// The mounted Secrets.
const SECRETS: [&str; 2] = [NAME, CLOUD_PROVIDER];

/// Port of the health endpoints.
const HEALTH_PORT: u16 = 8080;

/// The file of leader migration; `None` if no controller moves.
#[must_use]
pub fn migration_file(wanted: Option<&CloudControllerManager>) -> Option<ConfigMap> {
    let migration = wanted?.leader_migration.as_ref()?;
    Some(ConfigMap {
        metadata: ObjectMeta {
            name: Some(MIGRATION.into()),
            ..ObjectMeta::default()
        },
        data: Some([(FILE.to_owned(), migration.file())].into()),
        ..ConfigMap::default()
    })
}

/// The inputs for the cloud-controller-manager of a shoot.
#[derive(Clone, Copy, Debug, Default)]
pub struct ManagerInputs<'a> {
    /// The shoot's technical id.
    pub cluster: &'a str,
    /// The part of the ControlPlane's spec.
    pub spec: Option<&'a CloudControllerManager>,
    /// The expected owner of the shoot (R17-60); without a claim, no check runs.
    pub owner: Option<&'a OwnerClaim>,
}

impl ManagerInputs<'_> {
    fn migrates(&self) -> bool {
        self.spec.is_some_and(|spec| spec.leader_migration.is_some())
    }
}

/// The process.
#[must_use]
pub fn process(settings: &Settings, wanted: ManagerInputs<'_>) -> Workload {
    let mut files: Vec<_> = SECRETS.map(Files::Secret).into();
    if wanted.migrates() {
        files.push(Files::ConfigMap(MIGRATION));
    }
    if wanted.owner.is_some() {
        files.push(Files::Authority(AUTHORITY));
    }
    Workload {
        name: NAME,
        image: settings.image.clone(),
        program: "/cloud-controller-manager-local".into(),
        args: arguments(settings, wanted),
        health: Health {
            scheme: "HTTP",
            port: HEALTH_PORT,
            readiness: "/readyz",
            liveness: "/healthz",
        },
        files,
        scratch: false,
        // The process releases the locks immediately after the request to stop.
        grace_seconds: 15,
        overlaps: false,
        requests: ["32Mi", "10m"],
    }
}

/// Settings by the operator of the seed, for all shoots.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image, with tag.
    pub image: String,
    /// Range for addresses of load balancers; `None` for the default of the cloud-controller-manager.
    pub load_balancer_range: Option<Ipv4Net>,
}

/// The flags of the process, in a fixed order.
fn arguments(settings: &Settings, wanted: ManagerInputs<'_>) -> Vec<String> {
    let cluster = wanted.cluster;
    let mut arguments = vec![
        format!("--kubeconfig={MOUNTS}/{NAME}/kubeconfig"),
        format!("--cloud-credentials={MOUNTS}/{CLOUD_PROVIDER}"),
        format!("--cluster-name={cluster}"),
        format!("--health-address=0.0.0.0:{HEALTH_PORT}"),
        format!("--leader-elect-resource-name={NAME}"),
    ];
    if let Some(range) = settings.load_balancer_range {
        arguments.push(format!("--load-balancer-range={range}"));
    }
    if let Some(ranges) = wanted.spec.and_then(|spec| spec.node_ipam.as_ref()) {
        arguments.extend([
            "--allocate-node-cidrs".to_owned(),
            format!("--cluster-cidr={}", ranges.cluster_cidr),
            format!("--service-cluster-ip-range={}", ranges.service_cluster_ip_range),
        ]);
    }
    if wanted.migrates() {
        arguments.extend([
            "--enable-leader-migration".to_owned(),
            format!("--leader-migration-config={MOUNTS}/{MIGRATION}/{FILE}"),
        ]);
    }
    arguments.extend(wanted.owner.iter().flat_map(|owner| owner.flags(cluster)));
    arguments
}

#[cfg(test)]
#[path = "cloud_controller_manager_tests.rs"]
mod tests;
