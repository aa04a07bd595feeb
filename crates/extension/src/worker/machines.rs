//! What a provider writes for Workers.

use std::collections::BTreeMap;

use api::{
    extensions::{Worker, WorkerPool},
    machine::labels,
    meta::{ErrorCode, RawExtension},
};
use runtime::{
    Error, Result, Variable,
    workload::{Health, mounted},
};
use serde::de::DeserializeOwned;

use crate::Context;

/// What a provider says of its machines.
pub trait Machines: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "worker";

    /// What a machine of this pool in this zone is. `zone` is empty where the pool names none.
    ///
    /// # Errors
    /// The pool or the infrastructure's status cannot be understood: [`runtime::Error::Config`].
    fn class(&self, context: &Context<Worker>, pool: &WorkerPool, zone: &str) -> Result<Class>;

    /// What the account calls the zone with this physical ID (RZ-01): the name that pools have. Of a provider
    /// that says nothing no zone can be cut off.
    ///
    /// # Errors
    /// No zone has it, or several have: [`runtime::Error::Config`].
    fn zone_of(&self, context: &Context<Worker>, id: &str) -> Result<String> {
        Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the provider {} cannot say which zone has the ID {id:?}: take isolatedZoneID away",
                context.object.spec.default.type_
            ),
        ))
    }

    /// The program that acts on the machine objects of the shoot's namespace.
    ///
    /// # Errors
    /// As for [`Machines::class`].
    fn manager(&self, context: &Context<Worker>) -> Result<Manager>;
}

/// What a machine is in a provider's cloud.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// Name of the provider.
    pub provider: String,
    /// What only the provider's program understands. A change of it alone replaces no machine.
    pub provider_spec: RawExtension,
    /// What of it replaces machines when it changes, besides what always does
    /// ([`super::wanted::rolls_with`]).
    pub rolls_with: Vec<String>,
    /// Labels of the provider on the machine's Node, such as the ID of its zone. A change replaces no
    /// machine.
    pub node_labels: BTreeMap<String, String>,
}

impl Class {
    /// Labels of a Node of this class. The place is the provider's to say: a label of the pool of the same
    /// name has no effect.
    #[must_use]
    pub fn labels_of_node(&self, pool: &WorkerPool, region: &str, zone: &str) -> BTreeMap<String, String> {
        let place = [(labels::REGION, region), (labels::ZONE, zone)];
        let place = place.into_iter().filter(|(_, name)| !name.is_empty());
        let place = place.map(|(label, name)| (label.to_owned(), name.to_owned()));
        let pool = pool.labels.clone().into_iter();
        pool.chain(place).chain(self.node_labels.clone()).collect()
    }
}

/// A program that acts on machine objects, one in each shoot's namespace.
pub struct Manager {
    /// Image with tag.
    pub image: String,
    /// Path of the program.
    pub program: String,
    /// Flags, in a fixed order. Secrets are mounted where [`runtime::workload::mounted`] says.
    pub args: Vec<String>,
    /// Variables of its environment, such as those of a proxy.
    pub environment: Vec<Variable>,
    /// Where it says how it is.
    pub health: Health,
    /// Secrets of the namespace that it reads. All must exist before it is started.
    pub secrets: Vec<&'static str>,
    /// It knows the flags of [`owner_checks::OwnerFlags`], and is given them where the seed says whose its
    /// shoots are (R17-60).
    pub asks_whose_the_shoot_is: bool,
}

/// Name of the Secret with the kubeconfig of the shoot, which a gardenlet makes.
const KUBECONFIG: &str = "machine-controller-manager";
/// Where it says whether it lives.
const HEALTH_PORT: u16 = 8080;

impl Manager {
    /// One that is made of the crate `machine-controller-manager`, whose flags it knows, for the shoot in a
    /// namespace. Flags of its own come after these.
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

/// What a CloudProfile says to its provider in `spec.providerConfig`, or its default where it says nothing.
///
/// # Errors
/// It cannot be understood: [`runtime::Error::Config`].
pub fn cloud_profile_config<T: DeserializeOwned + Default>(profile: Option<&RawExtension>) -> Result<T> {
    let config = profile.and_then(|profile| profile.0.pointer("/spec/providerConfig"));
    let config = config.map(|raw| serde_json::from_value(raw.clone())).transpose();
    let config = config.map_err(|error| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("spec.providerConfig of the CloudProfile cannot be understood: {error}"),
        )
    })?;
    Ok(config.unwrap_or_default())
}
