//! What a provider writes for Workers.

use api::{
    extensions::{Worker, WorkerPool},
    meta::{ErrorCode, RawExtension},
};
use runtime::{Error, Result, workload::Health};

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

    /// What the account calls the zone with this physical ID (RZ-01): the name that pools have. Of a provider that says nothing no zone
    /// can be cut off.
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
    /// What of it replaces machines when it changes, besides what always does ([`super::wanted::rolls_with`]).
    pub rolls_with: Vec<String>,
}

/// A program that acts on machine objects, one in each shoot's namespace.
pub struct Manager {
    /// Image with tag.
    pub image: String,
    /// Path of the program.
    pub program: String,
    /// Flags, in a fixed order. Secrets are mounted where [`runtime::workload::mounted`] says.
    pub args: Vec<String>,
    /// Where it says how it is.
    pub health: Health,
    /// Secrets of the namespace that it reads. All must exist before it is started.
    pub secrets: Vec<&'static str>,
    /// It knows the flags of [`owner_checks::OwnerFlags`], and is given them where the seed says whose its shoots are (R17-60).
    pub asks_whose_the_shoot_is: bool,
}
