//! Writes to the status of a Shoot. Each write checks that the Shoot still belongs to this seed and is still
//! in the operation of the write. A gardenlet that was suspended and resumes must not overwrite the status of
//! the successor or of a different seed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{gardencore::Shoot, meta::LastOperationType as Type};
use futures::future::BoxFuture;
use kube::{Api, ResourceExt};
use parts::ConflictLimit;
use placement::{Role, role};
use runtime::{Error, Result, client::Cluster};
use serde_json::Value;

use crate::{
    context::{Context, MANAGER},
    shoot::operation::status,
};

/// Is notified of the writes to the status of a Shoot.
pub(crate) trait StatusObserver: Send + Sync {
    /// Reports a write. `before`: the Shoot on which the write was decided.
    fn written<'a>(&'a self, before: &'a Shoot, after: &'a Shoot) -> BoxFuture<'a, ()>;
}

/// Writes to the status of a Shoot during an operation, as the operation was at its start.
pub(crate) struct StatusWriter<'a> {
    context: &'a Context,
    begun: &'a Shoot,
    operation: Type,
    observer: &'a dyn StatusObserver,
    /// The last version of the Shoot that was read or written here; `None` for `begun`.
    last: Mutex<Option<Arc<Shoot>>>,
}

impl<'a> StatusWriter<'a> {
    /// `begun`: the Shoot after the first write of the operation.
    pub(crate) fn new(
        context: &'a Context,
        begun: &'a Shoot,
        operation: Type,
        observer: &'a dyn StatusObserver,
    ) -> Self {
        Self {
            context,
            begun,
            operation,
            observer,
            last: Mutex::default(),
        }
    }

    /// The percentage at the start of the operation. A repeated operation starts with the percentage of the
    /// previous attempt.
    pub(crate) fn reached(&self) -> i32 {
        status::reached(self.begun)
    }

    /// The Shoot at the start of the operation.
    pub(crate) fn begun(&self) -> &Shoot {
        self.begun
    }

    /// The seed of this gardenlet.
    pub(crate) fn seed_name(&self) -> &str {
        &self.context.seed_name
    }

    /// Passes the newest Shoot to `decide`, merges the returned patch into the status, and returns the Shoot
    /// that the garden has now. `None` writes no patch.
    ///
    /// `decide` gets the version that this writer has read or written last, and then a fresh read, unless the
    /// first patch was written. The garden accepts a patch only for the version on which the patch was
    /// decided. So every result follows from the newest Shoot.
    pub(crate) async fn write_if(
        &self,
        decide: impl FnMut(&Shoot) -> Result<Option<Value>>,
    ) -> Result<Arc<Shoot>> {
        // Boxed: a Shoot is large, and the stack of every caller would hold two Shoots.
        Box::pin(self.write_decided(decide)).await
    }

    /// The Shoot that the garden has now, with the checks of a write.
    pub(crate) async fn newest(&self) -> Result<Arc<Shoot>> {
        self.write_if(|_| Ok(None)).await
    }

    async fn write_decided(
        &self,
        mut decide: impl FnMut(&Shoot) -> Result<Option<Value>>,
    ) -> Result<Arc<Shoot>> {
        let api = self
            .context
            .garden
            .namespaced::<Shoot>(&self.begun.namespace().unwrap_or_default());
        if let Some(written) = self.write_on_last(&api, &mut decide).await {
            return Ok(written);
        }
        let name = self.begun.name_any();
        let mut conflicts = ConflictLimit::default();
        loop {
            let newest = api.get_opt(&name).await?;
            let newest = newest.filter(|newest| newest.uid() == self.begun.uid());
            let newest = newest.ok_or_else(|| Error::not_owner(format!("Shoot {name} is gone")))?;
            let newest = Arc::new(newest);
            self.check(&newest)?;
            *self.last() = Some(Arc::clone(&newest));
            let Some(patch) = decide(&newest)? else {
                return Ok(newest);
            };
            // If a write came in between, the patch is decided again on the newer Shoot.
            if let Some(written) = self.write(&api, &newest, &patch).await? {
                return Ok(written);
            }
            conflicts.count("Shoot", &name)?;
        }
    }

    /// Writes the patch that follows from the last version. `None` where only a fresh read decides: without a
    /// patch, after a concurrent write, and after an error.
    async fn write_on_last(
        &self,
        api: &Api<Shoot>,
        decide: &mut impl FnMut(&Shoot) -> Result<Option<Value>>,
    ) -> Option<Arc<Shoot>> {
        let last = self.last().clone();
        let last = last.as_deref().unwrap_or(self.begun);
        self.check(last).ok()?;
        let patch = decide(last).ok()??;
        match self.write(api, last, &patch).await {
            Ok(written) => written,
            Err(error) => {
                tracing::debug!(%error, "the status is decided again on a fresh read");
                None
            }
        }
    }

    /// Writes a patch that was decided on `before`. `None` after a concurrent write.
    async fn write(&self, api: &Api<Shoot>, before: &Shoot, patch: &Value) -> Result<Option<Arc<Shoot>>> {
        let Some(written) = MANAGER.try_merge_status_of(api, before, patch).await? else {
            return Ok(None);
        };
        let written = Arc::new(written);
        *self.last() = Some(Arc::clone(&written));
        self.observer.written(before, &written).await;
        Ok(Some(written))
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Shoot>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a problem to the user that does not stop the operation.
    pub(crate) async fn warn(&self, reason: &str, note: &str) {
        self.context.garden_events.warning(self.begun, reason, note).await;
    }

    /// Reports a success to the user.
    pub(crate) async fn note(&self, reason: &str, note: &str) {
        self.context.garden_events.normal(self.begun, reason, note).await;
    }

    fn check(&self, newest: &Shoot) -> Result<()> {
        let status = newest.status.as_ref();
        let operation = status.and_then(|status| status.last_operation.as_ref());
        let ours = role(newest, &self.context.seed_name) == Role::Owner
            && status.map(api::gardencore::shoot::ShootStatus::epoch)
                == self
                    .begun
                    .status
                    .as_ref()
                    .map(api::gardencore::shoot::ShootStatus::epoch);
        if ours && operation.is_none_or(|last| last.type_ == self.operation) {
            return Ok(());
        }
        Err(Error::not_owner(format!(
            "{} of Shoot {} is over for this seed: its status names seed {} and operation {}",
            self.operation,
            newest.name_any(),
            status
                .and_then(|status| status.seed_name.as_deref())
                .unwrap_or("none"),
            operation.map(|last| last.type_.to_string()).unwrap_or_default(),
        )))
    }
}
