//! Asks the cloud whether a launch was ended, and reports the cause.

use std::sync::Arc;

use api::machine::Machine;
use kube::ResourceExt;
use runtime::{Error, Next, Result};
use tokio::time::Instant;

use super::{
    Machines,
    bounds::Bounds,
    power_query::answer,
    status::{Doing, MachineReport, since},
};
use crate::phase::Phase;

impl Machines {
    /// Reports that the cloud has ended the instance of a Machine without a Node. The Machine fails when the
    /// time for the creation has passed, as after a refused launch: a cause that stays must not make a new
    /// instance every minute. Returns `None` where no such end is known.
    pub(super) async fn report_ended_launch(
        &self,
        machine: &Arc<Machine>,
        bounds: &Bounds,
    ) -> Result<Option<Next>> {
        let Some(failure) = self.launch_failure(machine).await? else {
            return Ok(None);
        };
        let is_over = since(machine.creation_timestamp().map(|time| time.0)) >= bounds.creation
            && self.reach.answers_for().await.is_ok();
        if is_over {
            self.tell(
                machine,
                &MachineReport::error(Phase::Failed, Doing::Create, &failure),
            )
            .await?;
            self.events
                .warning(machine.as_ref(), "MachineFailed", &failure.to_string())
                .await;
            return Ok(Some(Next::Change));
        }
        let report = MachineReport::error(Phase::CrashLoopBackOff, Doing::Create, &failure);
        self.tell(machine, &report).await?;
        Ok(Some(Next::After(self.timing.look_every)))
    }

    /// The failure of the launch, if the cloud has reported a failure. The only error is a permit that was
    /// lost.
    async fn launch_failure(&self, machine: &Arc<Machine>) -> Result<Option<Error>> {
        let uid = machine.uid().unwrap_or_default();
        let (is_due, failure) = self.launches.is_due(&uid, Instant::now());
        if !is_due {
            return Ok(failure);
        }
        let Ok(_place) = self.power.places.try_acquire() else {
            return Ok(None);
        };
        let asking = async {
            let class = self.cloud.class(machine).await?;
            self.cloud.launch_failure(machine, &class).await
        };
        let failure = answer(machine, "whether the launch was ended", asking)
            .await?
            .flatten();
        self.launches.record(uid, failure.clone(), Instant::now());
        Ok(failure)
    }
}
