//! The Deployment and the configuration of the cloud-controller-manager of a shoot.
//!
//! The container runs `cloud-controller-manager-aws`. This process starts Kubernetes' own program under the
//! owner's permit. The program runs only the controllers of Nodes, under the lock of the program in the
//! shoot.

use api::extensions::CloudControllerManager;
use cloud_aws::infrastructure::InfrastructureStatus;
use k8s_openapi::{
    ByteString,
    api::core::v1::{EnvVar, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use owner_checks::{AUTHORITY, OwnerClaim};
use runtime::{
    Result,
    client::Credentials,
    workload::{Files, Health, MOUNTS, Variable, Workload, mounted},
};

use crate::problem::problem;

/// Name of the Deployment, of the lock in the shoot, and of the Secret with the shoot's kubeconfig.
pub const NAME: &str = "cloud-controller-manager";
/// The Secret with the keys of the compared account. The account of these keys equals the account of the
/// network.
pub const ACCOUNT: &str = "cloud-controller-manager-account";
/// The keys of the Secret that the process reads.
const KEYS: [&str; 3] = ["accessKeyID", "secretAccessKey", "sessionToken"];
/// The ConfigMap with the cloud configuration.
pub const CLOUD_PROVIDER_CONFIG: &str = "cloud-provider-config";
/// Key of the ConfigMap.
pub const FILE: &str = "cloudprovider.conf";
/// Service ID of EC2 in the AWS SDK, for the override of the endpoint.
const EC2: &str = "EC2";
const HEALTH_PORT: u16 = 8080;

/// Settings that all shoots of a seed share.
#[derive(Clone, Debug)]
pub struct CloudControllerManagerSettings {
    /// The image with a tag.
    pub image: String,
    /// Endpoint of EC2. The SDK's endpoint of the region by default.
    pub endpoint: Option<String>,
    /// Variables of the operator. `HTTPS_PROXY` and `NO_PROXY` have an effect.
    pub environment: Vec<Variable>,
}

/// Controllers of different managers do not exist in this program.
///
/// # Errors
/// The Shoot gives node IPAM to the cloud-controller-manager.
pub fn refuse_guests(spec: Option<&CloudControllerManager>) -> Result<()> {
    match spec.filter(|spec| spec.node_ipam.is_some() || spec.leader_migration.is_some()) {
        None => Ok(()),
        Some(_) => Err(problem(
            "spec.kubernetes.controllerLeaders gives node-ipam-controller to the cloud-controller-manager, which has no such \
             controller on AWS: leave node-ipam-controller in the kube-controller-manager",
        )),
    }
}

/// The configuration in the format of the program.
///
/// # Errors
/// The infrastructure has no subnet, or the region is not a region.
pub fn cloud_config(
    infrastructure: &InfrastructureStatus,
    region: &str,
    cluster: &str,
    endpoint: Option<&str>,
) -> Result<String> {
    // The format has no escape for the end of a line: the program would read a further line as a setting.
    let is_in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if region.is_empty() || !region.chars().all(is_in_name) {
        return Err(problem(format!(
            "spec.region {region:?} is not a region of AWS: correct the Shoot's region"
        )));
    }
    let vpc = &infrastructure.vpc;
    // With VPC and SubnetID the program does not ask the metadata service of the seed's instance. The
    // controllers of Nodes use neither setting.
    let subnet = vpc.subnets.first().map(|subnet| subnet.id.as_str());
    let subnet = subnet.ok_or_else(|| {
        problem("spec.infrastructureProviderStatus names no subnet: the object is wanted before its infrastructure")
    })?;
    let elsewhere = endpoint.map_or_else(String::new, |endpoint| {
        format!(
            "\n[ServiceOverride \"ec2\"]\nService = {EC2}\nRegion = {region}\nURL = \"{endpoint}\"\nSigningRegion = {region}\n\
             SigningName = ec2\nSigningMethod = v4\n"
        )
    });
    Ok(format!(
        "[Global]\nRegion = {region}\nVPC = {}\nSubnetID = {subnet}\nKubernetesClusterID = {cluster}\n{elsewhere}",
        vpc.id
    ))
}

/// The Secret with these keys, for the process alone.
#[must_use]
pub fn account_secret(credentials: &Credentials) -> Secret {
    let data = credentials.data().iter();
    let data = data.filter(|(key, _)| KEYS.contains(&key.as_str()));
    Secret {
        metadata: ObjectMeta {
            name: Some(ACCOUNT.into()),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".into()),
        data: Some(
            data.map(|(key, value)| (key.clone(), ByteString(value.clone())))
                .collect(),
        ),
        ..Secret::default()
    }
}

/// The process.
#[must_use]
pub fn process(
    settings: &CloudControllerManagerSettings,
    cluster: &str,
    owner: Option<&OwnerClaim>,
) -> Workload {
    let mut files = vec![
        Files::Secret(NAME),
        Files::Secret(ACCOUNT),
        Files::ConfigMap(CLOUD_PROVIDER_CONFIG),
    ];
    files.extend(owner.map(|_| Files::Authority(AUTHORITY)));
    let mut args = vec![
        format!("--cloud-credentials={MOUNTS}/{ACCOUNT}"),
        format!("--health-address=0.0.0.0:{HEALTH_PORT}"),
    ];
    args.extend(settings.environment.iter().filter_map(proxy_flag));
    args.extend(owner.iter().flat_map(|owner| owner.flags(cluster)));
    args.push("--".into());
    args.extend(arguments(cluster));
    Workload {
        name: NAME,
        image: settings.image.clone(),
        program: "/cloud-controller-manager-aws".into(),
        args,
        health: Health {
            scheme: "HTTP",
            port: HEALTH_PORT,
            readiness: "/readyz",
            liveness: "/healthz",
        },
        files,
        scratch: false,
        // The program is killed at once. The lock expires without a release.
        grace_seconds: 15,
        overlaps: false,
        requests: ["64Mi", "10m"],
    }
}

/// The proxy is the gate's, and not a variable of the program.
fn proxy_flag(variable: &Variable) -> Option<String> {
    let EnvVar { name, value, .. } = variable.into();
    let value = value.unwrap_or_default();
    match name.as_str() {
        "HTTPS_PROXY" | "https_proxy" => Some(format!("--https-proxy={value}")),
        "NO_PROXY" | "no_proxy" => Some(format!("--no-proxy={value}")),
        _ => None,
    }
}

/// Arguments of Kubernetes' program, in a fixed order.
fn arguments(cluster: &str) -> Vec<String> {
    vec![
        "--cloud-provider=aws".into(),
        format!("--cloud-config={}", mounted(CLOUD_PROVIDER_CONFIG, FILE)),
        format!("--kubeconfig={}", mounted(NAME, "kubeconfig")),
        format!("--cluster-name={cluster}"),
        "--controllers=cloud-node-controller,cloud-node-lifecycle-controller".into(),
        "--configure-cloud-routes=false".into(),
        "--leader-elect=true".into(),
        format!("--leader-elect-resource-name={NAME}"),
        "--leader-elect-resource-namespace=kube-system".into(),
        // The metrics of the program would need a certificate, and the file system is read-only.
        "--secure-port=0".into(),
    ]
}

#[cfg(test)]
#[path = "cloud_controller_manager_tests.rs"]
mod tests;
