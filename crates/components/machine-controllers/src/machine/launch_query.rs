//! Asks the cloud whether a launch was ended, and reports the cause.

use std::sync::Arc;

use api::machine::Machine;
use kube::ResourceExt;
use runtime::{Error, Result, controller::Next};
use tokio::time::Instant;

use super::{
    Machines,
    configuration::MachineConfiguration,
    power_query::query_cloud,
    status::{MachineReport, Operation, elapsed_since},
};
use crate::phase::Phase;

impl Machines {
    /// Reports that the cloud has ended the instance of a Machine without a Node. The Machine fails when the
    /// time for the creation has passed, as after a refused launch: a cause that stays must not make a new
    /// instance every minute. Returns `None` where no such end is known.
    pub(super) async fn report_ended_launch(
        &self,
        machine: &Arc<Machine>,
        configuration: &MachineConfiguration,
    ) -> Result<Option<Next>> {
        let Some(failure) = self.query_launch_failure(machine).await? else {
            return Ok(None);
        };
        let has_timed_out = elapsed_since(machine.creation_timestamp().map(|time| time.0))
            >= configuration.creation
            && self.reach.check_reachable().await.is_ok();
        if has_timed_out {
            let report = MachineReport::error(Phase::Failed, Operation::Create, &failure);
            self.write_report(machine, &report).await?;
            self.events
                .warning(machine.as_ref(), "MachineFailed", &failure.to_string())
                .await;
            return Ok(Some(Next::Change));
        }
        let report = MachineReport::error(Phase::CrashLoopBackOff, Operation::Create, &failure);
        self.write_report(machine, &report).await?;
        Ok(Some(Next::After(self.timing.poll_interval)))
    }

    /// The failure of the launch, if the cloud has reported a failure. The only error is a permit that was
    /// lost.
    async fn query_launch_failure(&self, machine: &Arc<Machine>) -> Result<Option<Error>> {
        let uid = machine.uid().unwrap_or_default();
        let (is_due, failure) = self.launches.is_due(&uid, Instant::now());
        if !is_due {
            return Ok(failure);
        }
        let Ok(_place) = self.power.slots.try_acquire() else {
            return Ok(None);
        };
        let asking = async {
            let class = self.cloud.class(machine).await?;
            self.cloud.launch_failure(machine, &class).await
        };
        let failure = query_cloud(machine, "whether the launch was ended", asking)
            .await?
            .flatten();
        self.launches.record(uid, failure.clone(), Instant::now());
        Ok(failure)
    }
}
