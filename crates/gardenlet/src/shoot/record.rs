//! Writes to the status of a Shoot. Each write checks that the Shoot still belongs to this seed and is still
//! in the operation of the write. A gardenlet that was suspended and resumes must not overwrite the status of
//! the successor or of a different seed.

use std::time::Duration;

use api::{gardencore::Shoot, meta::LastOperationType as Type};
use kube::ResourceExt;
use parts::ConflictLimit;
use placement::{Role, role};
use runtime::{Cluster, Error, Result};
use serde_json::Value;

use super::{status, zone_story};
use crate::context::{Context, MANAGER};

/// The running operation of a Shoot, as recorded at its start.
pub(super) struct Record<'a> {
    context: &'a Context,
    begun: &'a Shoot,
    operation: Type,
}

impl<'a> Record<'a> {
    /// `begun`: the Shoot after the first write of the operation.
    pub(super) fn new(context: &'a Context, begun: &'a Shoot, operation: Type) -> Self {
        Self {
            context,
            begun,
            operation,
        }
    }

    /// The percentage at the start of the operation. A repeated operation starts with the percentage of the
    /// previous attempt.
    pub(super) fn reached(&self) -> i32 {
        status::reached(self.begun)
    }

    /// The seed of this gardenlet.
    pub(super) fn seed_name(&self) -> &str {
        &self.context.seed_name
    }

    /// How long the failover of a zone may take before the network of the zone is closed.
    pub(super) fn zone_budget(&self) -> Duration {
        self.context.config.zone_close_within
    }

    /// Passes the newest Shoot to `decide`, merges the returned patch into the status, and returns the Shoot
    /// that the garden has now. `None` writes no patch.
    pub(super) async fn write_if(
        &self,
        decide: impl FnMut(&Shoot) -> Result<Option<Value>>,
    ) -> Result<Shoot> {
        // Boxed: a Shoot is large, and the stack of every caller would hold two Shoots.
        Box::pin(self.write_decided(decide)).await
    }

    /// The Shoot that the garden has now, with the checks of a write.
    pub(super) async fn newest(&self) -> Result<Shoot> {
        self.write_if(|_| Ok(None)).await
    }

    async fn write_decided(&self, mut decide: impl FnMut(&Shoot) -> Result<Option<Value>>) -> Result<Shoot> {
        let api = self
            .context
            .garden
            .namespaced::<Shoot>(&self.begun.namespace().unwrap_or_default());
        let name = self.begun.name_any();
        let mut conflicts = ConflictLimit::default();
        loop {
            let newest = api.get_opt(&name).await?;
            let newest = newest.filter(|newest| newest.uid() == self.begun.uid());
            let newest = newest.ok_or_else(|| Error::NotOwner(format!("Shoot {name} is gone")))?;
            self.check(&newest)?;
            let Some(patch) = decide(&newest)? else {
                return Ok(newest);
            };
            // If a write came in between, the patch is decided again on the newer Shoot.
            if let Some(written) = MANAGER.try_merge_status_of(&api, &newest, &patch).await? {
                zone_story::tell(self.context, &newest, &written).await;
                return Ok(written);
            }
            conflicts.count("Shoot", &name)?;
        }
    }

    /// Reports a problem to the user that does not stop the operation.
    pub(super) async fn warn(&self, reason: &str, note: &str) {
        self.context.garden_events.warning(self.begun, reason, note).await;
    }

    /// Reports a success to the user.
    pub(super) async fn note(&self, reason: &str, note: &str) {
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
        Err(Error::NotOwner(format!(
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
