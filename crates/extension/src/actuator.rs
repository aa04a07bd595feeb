//! What a provider writes for a kind (RX-40).

use api::{
    extensions::ExtensionObject,
    meta::{NamedResourceReference, RawExtension},
};
use async_trait::async_trait;
use runtime::Result;
use serde_json::{Map, Value};

use crate::{Context, Released, forced, kind};

/// Looks after the objects of one kind and one provider type.
///
/// Every call may be repeated after success, after failure and after having been dropped half way. What is awaited is
/// said by [`runtime::Error::NotReady`]; what someone has to mend by [`runtime::Error::Config`] with codes. No message may
/// hold a secret: it ends in `status.lastError`.
#[async_trait]
pub trait Actuator<K: ExtensionObject>: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str;

    /// Brings the external world and the shoot's namespace to what the object says.
    async fn reconcile(&self, context: &Context<K>) -> Result<Outcome>;

    /// As `reconcile`, but takes over what exists already: it is named in `status.state` of the object (RX-31). An actuator
    /// that keeps no state reconciles (RX-32).
    async fn restore(&self, context: &Context<K>) -> Result<Outcome>;

    /// Cleans the shoot's namespace of what this actuator put there and touches nothing outside (RX-20, I9). What it
    /// returns is the last chance to write state (RX-11).
    async fn migrate(&self, context: &Context<K>) -> Result<Outcome>;

    /// Takes away everything, inside and outside.
    async fn delete(&self, context: &Context<K>) -> Result<()>;

    /// As `delete`, but lets go of what cannot be taken away: somebody has decided that the object is to be gone, and cleans
    /// up by hand. It must end soon whatever the world outside does, and fails only where another seed acts
    /// ([`runtime::Error::NotOwner`]). What it leaves behind is told by the reconciler.
    ///
    /// The default suits an actuator that has one thing to take away: `delete`, for a short time ([`forced::attempt`]). One
    /// that also removes something inside of the seed after something outside has to write its own, or the first refusal
    /// would leave the rest.
    async fn force_delete(&self, context: &Context<K>) -> Result<Released> {
        let what = format!("what {} {} stands for", kind::name::<K>(), context.name());
        forced::attempt(&what, || self.delete(context)).await
    }
}

/// What an operation leaves in the status. `None` leaves a field as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What `restore` must be given on another seed. Opaque to everybody else (R7-24).
    pub state: Option<RawExtension>,
    /// What other extensions of the same provider may read.
    pub provider_status: Option<RawExtension>,
    /// Objects in the shoot's namespace that must be carried with the state (RX-33).
    pub resources: Option<Vec<NamedResourceReference>>,
    /// Further fields of the kind's status, each replaced as a whole.
    pub status: Map<String, Value>,
}

impl Outcome {
    /// Nothing to tell.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a field of the kind's status.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.status.insert(field.to_owned(), value.into());
        self
    }
}
