//! Writes to a Shoot's status, each with the test that the Shoot is still this seed's and still in the
//! operation that the write is about: a gardenlet that was stopped and wakes up must not write over what its
//! successor or another seed wrote.

use std::time::Duration;

use api::{gardencore::Shoot, meta::LastOperationType as Type};
use kube::ResourceExt;
use placement::{Role, role};
use runtime::{Cluster, Error, Result};
use serde_json::Value;

use super::{status, zone_story};
use crate::context::{Context, MANAGER};

/// What is being done with a Shoot, as it was recorded when it began.
pub(super) struct Record<'a> {
    context: &'a Context,
    begun: &'a Shoot,
    operation: Type,
}

impl<'a> Record<'a> {
    /// `begun`: the Shoot as the first write of the operation has left it.
    pub(super) fn new(context: &'a Context, begun: &'a Shoot, operation: Type) -> Self {
        Self {
            context,
            begun,
            operation,
        }
    }

    /// The percentage at which the operation began: of an operation that is tried again, what the last
    /// attempt has reached.
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

    /// Merges the patch that `decide` makes of the newest Shoot into the status, and returns the Shoot that
    /// the garden has now. `None` writes nothing.
    pub(super) async fn write_if(
        &self,
        decide: impl FnMut(&Shoot) -> Result<Option<Value>>,
    ) -> Result<Shoot> {
        // A Shoot is large, and two of them would be on the stack of whoever writes.
        Box::pin(self.write_decided(decide)).await
    }

    async fn write_decided(&self, mut decide: impl FnMut(&Shoot) -> Result<Option<Value>>) -> Result<Shoot> {
        let api = self
            .context
            .garden
            .namespaced::<Shoot>(&self.begun.namespace().unwrap_or_default());
        let name = self.begun.name_any();
        loop {
            let newest = api.get_opt(&name).await?;
            let newest = newest.filter(|newest| newest.uid() == self.begun.uid());
            let newest = newest.ok_or_else(|| Error::NotOwner(format!("Shoot {name} is gone")))?;
            self.check(&newest)?;
            let Some(patch) = decide(&newest)? else {
                return Ok(newest);
            };
            // Somebody else wrote in between: what is written is decided on what he wrote.
            if let Some(written) = MANAGER.try_merge_status_of(&api, &newest, &patch).await? {
                zone_story::tell(self.context, &newest, &written).await;
                return Ok(written);
            }
        }
    }

    /// Something that its user should know, and that stops nothing.
    pub(super) async fn warn(&self, reason: &str, note: &str) {
        self.context.garden_events.warning(self.begun, reason, note).await;
    }

    /// Something went as wanted.
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
