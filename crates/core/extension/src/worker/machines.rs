//! The trait that a provider implements for Workers.

use std::collections::BTreeMap;

use api::{
    extensions::{Worker, WorkerPool},
    machine::labels,
    meta::{ErrorCode, RawExtension},
};
use runtime::{
    Error, Result,
    workload::{Health, Variable, mounted},
};
use serde::de::DeserializeOwned;

use crate::Context;

/// The machines in a provider's cloud.
pub trait Machines: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "worker";

    /// The class of a machine of this pool in this zone. `zone` is empty for a pool without zones.
    ///
    /// # Errors
    /// The pool or the infrastructure's status is invalid: [`runtime::Error::Config`].
    fn class(&self, context: &Context<Worker>, pool: &WorkerPool, zone: &str) -> Result<Class>;

    /// The account's name of the zone with this physical ID (RZ-01): the name that pools use. Without an
    /// implementation, no zone of the provider can be isolated.
    ///
    /// # Errors
    /// No zone has the ID, or several zones have the ID: [`runtime::Error::Config`].
    fn zone_of(&self, context: &Context<Worker>, id: &str) -> Result<String> {
        Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the provider {} cannot say which zone has the ID {id:?}: take isolatedZoneID away",
                context.object.spec.default.type_
            ),
        ))
    }

    /// The machine-controller-manager for the machine objects of the shoot's namespace.
    ///
    /// # Errors
    /// As for [`Machines::class`].
    fn manager(&self, context: &Context<Worker>) -> Result<Manager>;
}

/// A machine in a provider's cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// Name of the provider.
    pub provider: String,
    /// Data for the provider's machine-controller-manager only. A change of this field alone replaces no
    /// machine.
    pub provider_spec: RawExtension,
    /// The values whose change replaces machines, in addition to the values that always do
    /// ([`super::wanted::rolls_with`]).
    pub rolls_with: Vec<String>,
    /// Labels of the provider on the machine's Node, such as the ID of the zone. A change replaces no
    /// machine.
    pub node_labels: BTreeMap<String, String>,
}

impl Class {
    /// Labels of a Node of this class. The provider decides on region and zone: a label of the pool with the
    /// same name has no effect.
    #[must_use]
    pub fn labels_of_node(&self, pool: &WorkerPool, region: &str, zone: &str) -> BTreeMap<String, String> {
        let place = [(labels::REGION, region), (labels::ZONE, zone)];
        let place = place.into_iter().filter(|(_, name)| !name.is_empty());
        let place = place.map(|(label, name)| (label.to_owned(), name.to_owned()));
        let pool = pool.labels.clone().into_iter();
        pool.chain(place).chain(self.node_labels.clone()).collect()
    }
}

/// A machine-controller-manager: one process in each shoot's namespace.
pub struct Manager {
    /// Image with tag.
    pub image: String,
    /// Path of the program.
    pub program: String,
    /// Flags, in a fixed order. Secrets are mounted at [`runtime::workload::mounted`].
    pub args: Vec<String>,
    /// Environment variables, such as the variables of a proxy.
    pub environment: Vec<Variable>,
    /// The health endpoints of the process.
    pub health: Health,
    /// Secrets of the namespace that the process reads. All Secrets must exist before the start.
    pub secrets: Vec<&'static str>,
    /// Whether the process knows the flags of [`owner_checks::OwnerFlags`]. The flags are passed where the
    /// seed checks owners (R17-60).
    pub asks_whose_the_shoot_is: bool,
}

/// Name of the Secret with the kubeconfig of the shoot; a gardenlet writes the Secret.
const KUBECONFIG: &str = "machine-controller-manager";
/// Port of the health endpoints.
const HEALTH_PORT: u16 = 8080;

impl Manager {
    /// A manager built with the crate `machine-controller-manager`, with the flags of that crate, for the
    /// shoot in a namespace. The provider's own flags follow.
    #[must_use]
    pub fn of_suite(image: &str, program: &str, namespace: &str) -> Self {
        Self {
            image: image.to_owned(),
            program: program.to_owned(),
            args: vec![
                format!("--namespace={namespace}"),
                format!("--target-kubeconfig={}", mounted(KUBECONFIG, "kubeconfig")),
                format!("--leader-elect-resource-namespace={namespace}"),
                format!("--health-address=0.0.0.0:{HEALTH_PORT}"),
            ],
            environment: Vec::new(),
            health: Health {
                scheme: "HTTP",
                port: HEALTH_PORT,
                readiness: "/readyz",
                liveness: "/healthz",
            },
            secrets: vec![KUBECONFIG],
            asks_whose_the_shoot_is: true,
        }
    }
}

/// The `spec.providerConfig` of a CloudProfile, or the default.
///
/// # Errors
/// The configuration is invalid: [`runtime::Error::Config`].
pub fn cloud_profile_config<T: DeserializeOwned + Default>(profile: Option<&RawExtension>) -> Result<T> {
    let config = profile.and_then(|profile| profile.0.pointer("/spec/providerConfig"));
    let config = config.map(|raw| serde_json::from_value(raw.clone())).transpose();
    let config = config.map_err(|error| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            "spec.providerConfig of the CloudProfile cannot be understood",
        )
        .caused_by(error)
    })?;
    Ok(config.unwrap_or_default())
}
