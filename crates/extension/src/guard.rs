//! The one place at which a seed that does not own a shoot is held back (RX-41, R17-60).
//!
//! A guard gets the whole work of an actuator as a future and drops it when ownership is lost; dropping stops the work,
//! because nothing of it is spawned. `migrate` is never guarded: it cleans Kubernetes objects only, and must be able to run
//! exactly when ownership has been given away (RX-42).

use std::future::Future;

use runtime::Result;

/// Whose shoot an operation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object in the seed (the shoot's technical id), if it has one.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// Runs work only while this seed owns the shoot.
pub trait Guard: Send + Sync + 'static {
    /// Runs `work`; ends it with [`runtime::Error::NotOwner`] when this seed does not own the shoot, before or half way.
    fn run<T: Send>(
        &self,
        subject: &Subject,
        work: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send;
}

/// Takes this seed for the owner of every shoot in it. That holds while shoots move only as planned, with the source
/// having been cleaned before the destination begins; the owner record of GEP-17 takes this place for the bad case.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysOwner;

impl Guard for AlwaysOwner {
    async fn run<T: Send>(&self, _: &Subject, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        work.await
    }
}
