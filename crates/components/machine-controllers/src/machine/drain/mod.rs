//! Empties a Node by the Eviction API, which honours PodDisruptionBudgets. Pods are read only here.
//! This file has a round of evictions, the wait and the forced deletion.
//!
//! | file | content |
//! |---|---|
//! | `pods` | the pods that have to leave; these pods alone are evicted, awaited and deleted by force |
//! | `eviction` | evicts a pod, and explains a refusal |
//! | `volumes` | volumes that are attached to the Node |

mod eviction;
mod pods;
mod volumes;

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
    runtime::{WatchStreamExt, watcher},
};
use runtime::{
    Result,
    client::{Cluster as _, Shoot},
    error::Explain as _,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use self::{
    eviction::{ANSWERS_WITHIN, Refused, evict, explain},
    pods::{Refusals, describe_pods, format_name, has_to_leave},
};
use super::status::elapsed_since;
use crate::reach::bounded_list;

pub use volumes::{Detachment, Volumes};

/// Evictions or deletions of pods of a Node that are under way at once.
const AT_ONCE: usize = 10;

/// The longest time for the deletion of a Pod. Longer than the API server waits for a webhook (30 s), because
/// a request that is dropped earlier has no effect.
const DELETED_WITHIN: Duration = Duration::from_secs(35);

/// Empties Nodes of a shoot.
pub struct Drain {
    shoot: Shoot,
    /// Slots for workers that wait for pods. The remaining workers handle different Machines meanwhile.
    waiting: Semaphore,
}

/// The progress of a drain.
#[derive(Debug, PartialEq, Eq)]
pub enum DrainProgress {
    /// No pod is left that has to leave.
    Empty,
    /// Pods are left: the pods, each with the reason.
    Waits(String),
}

/// The deletion of the Pods that an eviction has not removed.
#[derive(Debug, PartialEq, Eq)]
pub struct ForcedDeletion {
    /// The Pods that were deleted, each with the reason of the refused eviction; `None` without such Pods.
    pub deleted: Option<String>,
    /// The Pods whose deletion the API refused, each with the reason; `None` without such Pods.
    pub refused: Option<String>,
    /// All Pods that are left were refused, so that no Pod of the Node is ending.
    pub is_rest_refused: bool,
}

/// The answer to the deletion of a Pod.
enum Deletion {
    Accepted,
    /// The Pod is gone, or a later Pod has the same name.
    Needless,
    Refused(String),
}

impl Drain {
    /// Drains Nodes of this shoot; `at_once` Machines are reconciled at once.
    pub fn new(shoot: &Shoot, at_once: u16) -> Self {
        Self {
            shoot: shoot.clone(),
            waiting: Semaphore::new(usize::from(at_once / 2)),
        }
    }

    /// Evicts all pods of a Node and waits for at most `wait` until the pods are gone.
    pub async fn run_round(&self, node: &str, wait: Duration) -> Result<DrainProgress> {
        let until = Instant::now() + wait;
        let pods = self.list_pods(node).await?;
        if pods.is_empty() {
            return Ok(DrainProgress::Empty);
        }
        let refused = self.evict_all(&pods).await?;
        if let Ok(_place) = self.waiting.try_acquire()
            && timeout_at(until, self.wait_until_empty(node)).await.is_ok()
        {
            return Ok(DrainProgress::Empty);
        }
        let left: Vec<_> = pods.iter().map(format_name).collect();
        Ok(DrainProgress::Waits(describe_pods(&left, &refused)))
    }

    /// Evicts the pods a last time and deletes the pods that are still there. A Pod whose deletion the API
    /// refuses, as by a webhook without backend, does not stop the deletion of the remaining Pods.
    pub async fn delete_pods(&self, node: &str) -> Result<ForcedDeletion> {
        let refused = self.evict_all(&self.list_pods(node).await?).await?;
        let pods = self.list_pods(node).await?;
        let deletions: Vec<_> = pods
            .iter()
            .filter(|pod| !is_terminating(pod))
            .map(|pod| self.delete(pod))
            .collect();
        let deletions: Vec<_> = stream::iter(deletions)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let (mut deleted, mut kept) = (Vec::new(), Refusals::new());
        for (pod, deletion) in deletions {
            match deletion {
                Deletion::Accepted => deleted.push(pod),
                Deletion::Refused(why) => drop(kept.insert(pod, why)),
                Deletion::Needless => {}
            }
        }
        let names: Vec<_> = kept.keys().cloned().collect();
        Ok(ForcedDeletion {
            is_rest_refused: !kept.is_empty() && kept.len() == pods.len(),
            deleted: (!deleted.is_empty()).then(|| describe_pods(&deleted, &refused)),
            refused: (!kept.is_empty()).then(|| describe_pods(&names, &kept)),
        })
    }

    async fn delete(&self, pod: &Pod) -> Result<(String, Deletion)> {
        let api: Api<Pod> = self.shoot.namespaced(&pod.namespace().unwrap_or_default());
        let (name, params) = (pod.name_any(), build_delete_params(pod));
        let deletion = match timeout(DELETED_WITHIN, api.delete(&name, &params)).await {
            Ok(Ok(_)) => Deletion::Accepted,
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => {
                Deletion::Needless
            }
            Ok(Err(kube::Error::Api(status))) => Deletion::Refused(status.message.clone()),
            Ok(Err(error)) => {
                return Err(error).context(format_args!("could not delete Pod {}", format_name(pod)));
            }
            Err(_) => Deletion::Refused(format!("the deletion was not answered within {DELETED_WITHIN:?}")),
        };
        Ok((format_name(pod), deletion))
    }

    /// Evicts all pods that are not terminating. Returns the reason for each refusal.
    async fn evict_all(&self, pods: &[Pod]) -> Result<Refusals> {
        // A bound of the round: slow webhooks must not multiply the drain by the number of pods.
        let deadline = Instant::now() + ANSWERS_WITHIN;
        let evictions: Vec<_> = pods
            .iter()
            .filter(|pod| !is_terminating(pod))
            .map(|pod| evict(&self.shoot, pod, deadline))
            .collect();
        let refused: Vec<Refused<'_>> = stream::iter(evictions)
            .buffer_unordered(AT_ONCE)
            .try_filter_map(|refusal| async move { Ok(refusal) })
            .try_collect()
            .await?;
        explain(&self.shoot, refused).await
    }

    async fn list_pods(&self, node: &str) -> Result<Vec<Pod>> {
        let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let listing = async {
            let pods = self.shoot.all::<Pod>().list(&of_node).await;
            pods.context(format_args!("could not list the pods of Node {node}"))
        };
        let mut pods = bounded_list(listing).await?.items;
        pods.retain(has_to_leave);
        Ok(pods)
    }

    /// Waits until no pod is left that has to leave.
    async fn wait_until_empty(&self, node: &str) {
        let of_node = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        let events = watcher(self.shoot.all::<Pod>(), of_node).default_backoff();
        futures::pin_mut!(events);
        let mut left = BTreeSet::new();
        let mut listed = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => {
                    left.clear();
                    listed = false;
                }
                Ok(watcher::Event::InitDone) => listed = true,
                Ok(watcher::Event::Delete(pod)) => {
                    left.remove(&format_name(&pod));
                }
                Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => {
                    if has_to_leave(&pod) {
                        left.insert(format_name(&pod));
                    } else {
                        left.remove(&format_name(&pod));
                    }
                }
                Err(_) => listed = false,
            }
            if listed && left.is_empty() {
                return;
            }
        }
    }
}

fn is_terminating(pod: &Pod) -> bool {
    pod.meta().deletion_timestamp.is_some()
}

/// Parameters that delete this pod, and not a later pod of the same name.
fn build_delete_params(pod: &Pod) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

/// The time for which a Node has not been ready; `None` while the Node is ready.
pub fn unready_for(node: &Node) -> Option<Duration> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    (ready.status != "True").then(|| elapsed_since(ready.last_transition_time.as_ref().map(|time| time.0)))
}

#[cfg(test)]
mod tests;
