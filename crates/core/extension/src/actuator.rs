//! The trait that a provider implements for a kind (RX-40).

use api::extensions::ExtensionObject;
use async_trait::async_trait;
use runtime::Result;

use crate::{Context, Outcome, Released, forced, kind};

/// Reconciles the objects of one kind and one provider type.
///
/// Every call may be repeated after success, after failure and after an earlier call was dropped midway.
/// Return [`runtime::Error::NotReady`] for awaited events, and [`runtime::Error::Config`] with codes for a
/// fault that a person has to fix. No message may hold a secret: the message ends in `status.lastError`.
#[async_trait]
pub trait Actuator<K: ExtensionObject>: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str;

    /// Brings the outside systems and the shoot's namespace to the state that the object describes.
    async fn reconcile(&self, context: &Context<K>) -> Result<Outcome>;

    /// As `reconcile`, but adopts the existing resources that `status.state` of the object names (RX-31). An
    /// actuator without state reconciles (RX-32).
    async fn restore(&self, context: &Context<K>) -> Result<Outcome>;

    /// Removes from the shoot's namespace all objects of this actuator, and touches no outside system (RX-20,
    /// I9). The returned outcome is the last chance to write state (RX-11).
    async fn migrate(&self, context: &Context<K>) -> Result<Outcome>;

    /// Removes all resources, inside and outside of the seed.
    async fn delete(&self, context: &Context<K>) -> Result<()>;

    /// As `delete`, but releases resources that cannot be removed: the user has decided that the object must
    /// go, and cleans up by hand. The call must end soon whatever outside systems do. The call fails only
    /// where a different seed acts ([`runtime::Error::NotOwner`]). The reconciler reports the resources that
    /// are left behind.
    ///
    /// The default suits an actuator with a single resource to remove: `delete`, for a short time
    /// ([`forced::attempt`]). An actuator that removes objects in the seed after outside resources needs its
    /// own implementation, or the first refusal would leave the rest.
    async fn force_delete(&self, context: &Context<K>) -> Result<Released> {
        let what = format!("what {} {} stands for", kind::name::<K>(), context.name());
        forced::attempt(&what, || self.delete(context)).await
    }
}
