//! What a provider writes for a kind (RX-40).

use api::extensions::ExtensionObject;
use async_trait::async_trait;
use runtime::Result;

use crate::{Context, Outcome, Released, forced, kind};

/// Looks after the objects of one kind and one provider type.
///
/// Every call may be repeated after success, after failure and after having been dropped half way. What is
/// awaited is said by [`runtime::Error::NotReady`]; what someone has to mend by [`runtime::Error::Config`]
/// with codes. No message may hold a secret: it ends in `status.lastError`.
#[async_trait]
pub trait Actuator<K: ExtensionObject>: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str;

    /// Brings the external world and the shoot's namespace to what the object says.
    async fn reconcile(&self, context: &Context<K>) -> Result<Outcome>;

    /// As `reconcile`, but takes over what exists already: it is named in `status.state` of the object
    /// (RX-31). An actuator that keeps no state reconciles (RX-32).
    async fn restore(&self, context: &Context<K>) -> Result<Outcome>;

    /// Cleans the shoot's namespace of what this actuator put there and touches nothing outside (RX-20, I9).
    /// What it returns is the last chance to write state (RX-11).
    async fn migrate(&self, context: &Context<K>) -> Result<Outcome>;

    /// Takes away everything, inside and outside.
    async fn delete(&self, context: &Context<K>) -> Result<()>;

    /// As `delete`, but lets go of what cannot be taken away: somebody has decided that the object is to be
    /// gone, and cleans up by hand. It must end soon whatever the world outside does, and fails only where
    /// another seed acts ([`runtime::Error::NotOwner`]). What it leaves behind is told by the reconciler.
    ///
    /// The default suits an actuator that has one thing to take away: `delete`, for a short time
    /// ([`forced::attempt`]). One that also removes something inside of the seed after something outside has
    /// to write its own, or the first refusal would leave the rest.
    async fn force_delete(&self, context: &Context<K>) -> Result<Released> {
        let what = format!("what {} {} stands for", kind::name::<K>(), context.name());
        forced::attempt(&what, || self.delete(context)).await
    }
}
