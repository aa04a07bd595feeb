//! Asks the provider whether the instance of a Machine runs.

use std::{sync::Arc, time::Duration};

use api::machine::Machine;
use kube::ResourceExt;
use runtime::{Error, Result};
use tokio::time::{Instant, timeout};
use tracing::info;

use super::Machines;
use crate::driver::InstancePower;

/// How long an answer may take. Shorter than the time between two questions, so that a provider that does not
/// answer holds no worker of the controller for long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

impl Machines {
    /// Whether the instance runs; `None` while that is not known. The error is a right that was lost.
    pub(super) async fn query_power(&self, machine: &Arc<Machine>) -> Result<Option<InstancePower>> {
        let uid = machine.uid().unwrap_or_default();
        let Ok(_place) = self.power.slots.try_acquire() else {
            return Ok(None);
        };
        if !self.power.is_due(&uid, Instant::now()) {
            return Ok(None);
        }
        let asking = async {
            let class = self.cloud.class(machine).await?;
            self.cloud.power(machine, &class).await
        };
        let answer = query_cloud(machine, "whether the instance runs", asking).await?;
        let answer = answer.unwrap_or(InstancePower::Unclear);
        Ok(self.power.record_answer(&uid, answer, Instant::now()))
    }
}

/// The answer of the cloud within [`ANSWERS_WITHIN`]; `None` without an answer. The error is a right that was
/// lost. `question` is for the log.
pub(super) async fn query_cloud<T>(
    machine: &Machine,
    question: &str,
    asking: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    match timeout(ANSWERS_WITHIN, Box::pin(asking)).await {
        Ok(Err(error @ Error::NotOwner(_))) => Err(error),
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) => {
            info!(
                machine = machine.name_any(),
                error = format_args!("{error:#}"),
                "the cloud does not report {question}"
            );
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}
