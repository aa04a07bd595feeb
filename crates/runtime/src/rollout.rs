//! Deployments as whoever writes them sees them: whether one is rolled out or gone, why it is not, and what its pods were made
//! of.

use std::{fmt::Write as _, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{Api, ResourceExt, api::ListParams};
use sha2::{Digest, Sha256};

use crate::{
    Cluster, Result, apply,
    error::Context as _,
    wait::{self, Look},
};

/// Bytes of a checksum. Enough that no two contents of one object ever meet.
const CHECKSUM_BYTES: usize = 16;

/// A Deployment and its pods. Nothing is read before it is asked for, and the Deployment need not exist.
pub struct Rollout<'n> {
    deployments: Api<Deployment>,
    pods: Api<Pod>,
    name: &'n str,
    selected: ListParams,
}

impl<'n> Rollout<'n> {
    /// `selected` finds its pods, and no others.
    #[must_use]
    pub fn new(cluster: &impl Cluster, namespace: &str, name: &'n str, selected: ListParams) -> Self {
        Self {
            deployments: cluster.namespaced(namespace),
            pods: cluster.namespaced(namespace),
            name,
            selected,
        }
    }

    /// Waits until exactly the wanted pods run and are available. The error says what is missing, and what the pods say.
    /// `written`: as in [`look`].
    pub async fn wait_until_done(&self, written: Option<i64>, within: Duration) -> Result<()> {
        let looked = wait::until(&self.deployments, self.name, within, |found| look(found, written));
        let Err(error) = looked.await else {
            return Ok(());
        };
        Err(match what_pods_say(&self.pods, &self.selected).await {
            Some(said) => error.context(format_args!("{}: {said}", self.name)),
            None => error,
        })
    }

    /// Deletes the Deployment that is there now, and none that somebody makes meanwhile; it stays until its pods are gone.
    pub async fn delete(&self) -> Result<()> {
        let found = self.deployments.get_opt(self.name).await;
        let found = found.context(format_args!("could not read Deployment {}", self.name))?;
        match found {
            Some(found) => apply::delete_exactly(&self.deployments, &found).await,
            None => Ok(()),
        }
    }

    /// Waits until the Deployment and then every pod of it are gone: one that was deleted in another way than by
    /// [`Self::delete`] leaves pods behind, and what has no object any more may still have a process. `within`: for each object.
    pub async fn wait_until_gone(&self, within: Duration) -> Result<()> {
        wait::until_gone(&self.deployments, self.name, within).await?;
        let left = self.pods.list(&self.selected).await;
        let left = left.context(format_args!("could not list the pods of {}", self.name))?;
        for pod in left {
            wait::until_gone(&self.pods, &pod.name_any(), within).await?;
        }
        Ok(())
    }
}

/// Whether only the wanted pods run, and are available. `written`: the generation that a write has returned, since a watch may
/// begin with what was there before it. A pod that was told to stop may still be there.
#[must_use]
pub fn look(deployment: Option<&Deployment>, written: Option<i64>) -> Look {
    let wait = |why: &str| Look::Wait(why.into());
    let Some(deployment) = deployment else {
        return wait("it does not exist");
    };
    let Some(status) = &deployment.status else {
        return wait("nobody has seen it yet");
    };
    let generation = deployment.metadata.generation;
    if generation < written || status.observed_generation < generation {
        return wait("its last change has not been seen yet");
    }
    let spec = deployment.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let [all, updated, available] = [
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
    ]
    .map(Option::unwrap_or_default);
    if updated < wanted || available < wanted {
        return Look::Wait(format!(
            "of {wanted} pods {updated} are as wanted, {available} are available"
        ));
    }
    if all > wanted {
        return wait("a former pod still runs");
    }
    Look::Done
}

/// Why pods do not run, in the kubelet's or the scheduler's words; `None` if nothing is said of it. It is only for a sentence:
/// that pods cannot be listed is no error.
pub async fn what_pods_say(pods: &Api<Pod>, selected: &ListParams) -> Option<String> {
    let found = pods.list(selected).await.ok()?;
    let said: Vec<_> = found.iter().filter_map(what_pod_says).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn what_pod_says(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let of_containers = status
        .container_statuses
        .iter()
        .flatten()
        .filter_map(|container| {
            let state = container.state.as_ref()?;
            let waiting = state
                .waiting
                .as_ref()
                .map(|state| (&state.reason, &state.message));
            let ended = state
                .terminated
                .as_ref()
                .map(|state| (&state.reason, &state.message));
            let (reason, message) = waiting.or(ended)?;
            let said: Vec<_> = [reason, message].into_iter().flatten().cloned().collect();
            Some(said.join(": "))
        });
    let conditions = status.conditions.iter().flatten();
    let unscheduled = conditions
        .filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .filter_map(|condition| condition.message.clone());
    of_containers.chain(unscheduled).find(|said| !said.is_empty())
}

/// Changes with the content, and tells nothing about it: an annotation of pods that are to be made anew when what they mount
/// changes.
#[must_use]
pub fn checksum<K: AsRef<[u8]>, V: AsRef<[u8]>>(data: impl IntoIterator<Item = (K, V)>) -> String {
    let mut hash = Sha256::new();
    for (key, value) in data {
        // With their lengths, so that what one part loses is not what the next one gains.
        for part in [key.as_ref(), value.as_ref()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let digest = hash.finalize();
    let mut text = String::with_capacity(2 * CHECKSUM_BYTES);
    for byte in digest.iter().take(CHECKSUM_BYTES) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn is_done(observed: i64, replicas: [i32; 3], written: i64) -> bool {
        let [all, updated, available] = replicas;
        let deployment = json!({
            "metadata": {"generation": 3}, "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": {"observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available},
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        matches!(look(Some(&deployment), Some(written)), Look::Done)
    }

    #[test]
    fn rolled_out_means_that_only_the_wanted_pod_runs() {
        assert!(is_done(3, [1, 1, 1], 3));
        assert!(is_done(3, [1, 1, 1], 2));
        assert!(!is_done(2, [1, 1, 1], 3), "the change was not seen yet");
        assert!(!is_done(3, [1, 0, 1], 3), "the old pod runs");
        assert!(!is_done(3, [2, 1, 1], 3), "both run");
        assert!(!is_done(3, [1, 1, 0], 3), "the new one does not serve yet");
        assert!(!is_done(3, [1, 1, 1], 4), "what is seen is of before the write");
        assert!(matches!(look(None, None), Look::Wait(_)));
    }

    #[test]
    fn a_pod_tells_why_it_does_not_run() {
        let says = |status| what_pod_says(&serde_json::from_value(json!({"status": status})).unwrap());
        let waiting = json!({"reason": "ErrImagePull", "message": "no such image"});
        let container = |state| json!({"name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        assert_eq!(
            says(json!({"containerStatuses": [container(json!({"running": {}})), container(json!({"waiting": waiting}))]})).as_deref(),
            Some("ErrImagePull: no such image")
        );
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no node has room"});
        assert_eq!(
            says(json!({"conditions": [condition]})).as_deref(),
            Some("no node has room")
        );
        assert_eq!(says(json!({})), None);
    }

    #[test]
    fn a_checksum_does_not_mix_up_keys_and_values() {
        assert_eq!(checksum([("a", "bc")]), checksum([("a", "bc")]));
        assert_ne!(checksum([("a", "bc")]), checksum([("ab", "c")]));
        assert_ne!(
            checksum([("a", "b"), ("c", "d")]),
            checksum([("a", "b"), ("c", "e")])
        );
    }
}
