//! Reports on the Worker that machines outside of the isolated zone are not ready. A failover does not wait
//! for these machines, so that no error of the Worker would report the failure.

use api::{
    constants::condition::EVERY_NODE_READY,
    extensions::Worker,
    meta::{Condition, ConditionStatus},
};
use kube::Api;
use runtime::{Error, Result, client::Cluster as _, clock};
use serde_json::json;

use crate::Context;

/// Reason of condition `EveryNodeReady` of the Worker. The report counts for the Shoot's condition of the
/// same type.
const ROLLOUT_INCOMPLETE: &str = "RolloutIncomplete";

/// Writes the condition while `failure` lasts, and removes the condition afterwards.
pub async fn report(context: &Context<Worker>, failure: Option<&Error>) -> Result<()> {
    let is_reported = context.object.status.as_ref().is_some_and(|status| {
        let conditions = &status.default.conditions;
        conditions.iter().any(is_ours)
    });
    if failure.is_none() && !is_reported {
        return Ok(());
    }
    let workers: Api<Worker> = context.seed.namespaced(&context.namespace()?);
    let newest = workers.get(&context.name()).await?;
    let mut conditions = newest.status.unwrap_or_default().default.conditions;
    if let Some(failure) = failure {
        let message = format!("The roll-out outside of the isolated zone is not complete: {failure}");
        let mut condition = Condition::new(
            EVERY_NODE_READY,
            ConditionStatus::False,
            ROLLOUT_INCOMPLETE,
            &message,
            clock::now_k8s(),
        );
        condition.codes = failure.codes().to_vec();
        condition.merge_into(&mut conditions);
    } else {
        conditions.retain(|condition| !is_ours(condition));
    }
    let patch = json!({"conditions": conditions});
    context
        .manager
        .merge_status(&workers, &context.name(), &patch)
        .await
        .map(drop)
}

fn is_ours(condition: &Condition) -> bool {
    condition.type_ == EVERY_NODE_READY && condition.reason == ROLLOUT_INCOMPLETE
}
