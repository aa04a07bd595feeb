//! Deployments from the point of view of their writer. This module tells whether a Deployment is rolled out
//! or gone, why a rollout is stuck, and the checksums of mounted Secrets.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerState, ContainerStatus, Pod, Secret},
};
use kube::{Api, ResourceExt, api::ListParams};
use sha2::{Digest, Sha256};

use crate::{
    Error, Result,
    client::{
        Cluster, apply,
        wait::{self, WaitState},
    },
    error::Explain as _,
};

/// Bytes of a checksum. Enough to exclude a collision between two contents of an object.
const CHECKSUM_BYTES: usize = 16;
/// Requeue interval for a Secret that a gardenlet is about to write.
const MISSING_SECRET_REQUEUE: Duration = Duration::from_secs(5);
/// Maximum characters quoted from the last output of a process. Enough for a long sentence, too few for a
/// page in `lastErrors`.
const LAST_WORDS: usize = 500;

/// A Deployment and the pods of the Deployment. The constructor reads nothing, and the Deployment need not
/// exist.
pub struct Rollout<'n> {
    deployments: Api<Deployment>,
    pods: Api<Pod>,
    name: &'n str,
    selected: ListParams,
}

impl<'n> Rollout<'n> {
    /// `selected` must match exactly the pods of the Deployment.
    #[must_use]
    pub fn new(cluster: &impl Cluster, namespace: &str, name: &'n str, selected: ListParams) -> Self {
        Self {
            deployments: cluster.namespaced(namespace),
            pods: cluster.namespaced(namespace),
            name,
            selected,
        }
    }

    /// Waits until exactly the wanted pods run and are available. The error states the missing part and the
    /// messages of the pods. `written`: as in [`check`].
    pub async fn wait_until_done(&self, written: Option<i64>, within: Duration) -> Result<()> {
        let looked = wait::until(&self.deployments, self.name, within, |found| {
            check(found, written)
        });
        let Err(error) = looked.await else {
            return Ok(());
        };
        Err(match what_pods_say(&self.pods, &self.selected).await {
            Some(said) => error.context(format_args!("{}: {said}", self.name)),
            None => error,
        })
    }

    /// Deletes the Deployment that exists now (by UID), not a Deployment created meanwhile. The Deployment
    /// object stays until all pods are gone (foreground deletion).
    pub async fn delete(&self) -> Result<()> {
        let found = self.deployments.get_opt(self.name).await;
        let found = found.context(format_args!("could not read Deployment {}", self.name))?;
        match found {
            Some(found) => apply::delete_exactly(&self.deployments, &found).await,
            None => Ok(()),
        }
    }

    /// Waits until a Deployment with zero replicas has no pod left, terminating pods included. `within`: for
    /// each object.
    pub async fn wait_until_stopped(&self, within: Duration) -> Result<()> {
        wait::until(&self.deployments, self.name, within, |found| check(found, None)).await?;
        self.wait_until_no_pod(within).await
    }

    /// Waits until the Deployment and then every pod of the Deployment are gone. A Deployment deleted without
    /// [`Self::delete`] leaves pods behind, and those pods may still run processes. `within`: for each
    /// object.
    pub async fn wait_until_gone(&self, within: Duration) -> Result<()> {
        wait::until_gone(&self.deployments, self.name, within).await?;
        self.wait_until_no_pod(within).await
    }

    async fn wait_until_no_pod(&self, within: Duration) -> Result<()> {
        // Repeat after each round: a controller may have created a pod between the list and the end of the
        // controller's object.
        loop {
            let left = self.pods.list(&self.selected).await;
            let left = left.context(format_args!("could not list the pods of {}", self.name))?;
            if left.items.is_empty() {
                return Ok(());
            }
            for pod in left {
                wait::until_gone(&self.pods, &pod.name_any(), within).await?;
            }
        }
    }
}

/// Whether only the wanted pods run, and are available. `written`: the generation that a write has returned,
/// because a watch may begin with the state before the write. A terminating pod may still exist.
#[must_use]
pub fn check(deployment: Option<&Deployment>, written: Option<i64>) -> WaitState {
    let wait = |why: &str| WaitState::Wait(why.into());
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
        return WaitState::Wait(format!(
            "of {wanted} pods {updated} are as wanted, {available} are available"
        ));
    }
    if all > wanted {
        return wait("a former pod still runs");
    }
    WaitState::Done
}

/// The reason why pods do not run, in the words of the kubelet or the scheduler; `None` without such a
/// message. The text only completes a sentence, so a failed list of pods is not an error.
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
        .filter_map(what_container_says);
    let conditions = status.conditions.iter().flatten();
    let unscheduled = conditions
        .filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .filter_map(|condition| condition.message.clone());
    of_containers.chain(unscheduled).find(|said| !said.is_empty())
}

/// For a process that crashes repeatedly, the last output counts, not the back-off message of the kubelet.
/// This also holds while the process runs again and is not ready.
///
/// The output gets into `lastErrors` and conditions, which have more readers than logs. The logs of control
/// plane processes hold no secrets:
/// - Keys and tokens are passed as files, never as flags or environment.
/// - An unusable file is logged by path, not by content.
/// - The processes run without `-v`, so that Kubernetes components log neither requests nor headers.
///
/// A foreign container is quoted only if `terminationMessagePolicy` of the container allows that, or if the
/// container wrote the message.
fn what_container_says(container: &ContainerStatus) -> Option<String> {
    let last_words = |state: Option<&ContainerState>| -> Option<String> {
        let words = end_of(state?.terminated.as_ref()?.message.as_deref()?);
        (!words.is_empty()).then_some(words)
    };
    let (state, last) = (container.state.as_ref()?, container.last_state.as_ref());
    let (reason, message) = if let Some(waiting) = &state.waiting {
        let is_left_alone = waiting.reason.as_deref() == Some("CrashLoopBackOff");
        let words = last.filter(|_| is_left_alone);
        (
            waiting.reason.clone(),
            last_words(words).or_else(|| waiting.message.clone()),
        )
    } else if let Some(ended) = &state.terminated {
        (ended.reason.clone(), last_words(Some(state)))
    } else if container.ready {
        return None;
    } else {
        (None, last_words(last))
    };
    let said: Vec<_> = [reason, message].into_iter().flatten().collect();
    Some(said.join(": "))
}

/// The end of an output, on one line: the reason of a crash stands last.
fn end_of(output: &str) -> String {
    let line = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = line.char_indices().rev().nth(LAST_WORDS - 1);
    match start.and_then(|(start, _)| line.split_at_checked(start)) {
        Some((cut, end)) if !cut.is_empty() => format!("…{end}"),
        _ => line,
    }
}

/// The checksums of Secrets that a process mounts, by Secret name. A missing Secret is awaited: a gardenlet
/// writes the Secret.
///
/// # Errors
/// [`Error::NotReady`] while a Secret is missing; the cluster does not answer.
pub async fn checksums_of_secrets(
    cluster: &impl Cluster,
    namespace: &str,
    process: &str,
    names: &[&'static str],
) -> Result<BTreeMap<&'static str, String>> {
    let secrets: Api<Secret> = cluster.namespaced(namespace);
    let mut checksums = BTreeMap::new();
    for name in names {
        let found = secrets.get_opt(name).await;
        let secret = found
            .context(format_args!("could not read the Secret {name}"))?
            .ok_or_else(|| {
                let why =
                    format!("the Secret {name} that {process} needs does not exist: the gardenlet writes it");
                Error::not_ready(MISSING_SECRET_REQUEUE, why)
            })?;
        let data = secret.data.iter().flatten().map(|(key, value)| (key, &value.0));
        checksums.insert(*name, checksum(data));
    }
    Ok(checksums)
}

/// Changes with the content and reveals nothing about the content. The checksum is an annotation of pods, so
/// that pods are recreated when a mounted object changes.
#[must_use]
pub fn checksum<K: AsRef<[u8]>, V: AsRef<[u8]>>(data: impl IntoIterator<Item = (K, V)>) -> String {
    let mut hash = Sha256::new();
    for (key, value) in data {
        // The lengths are hashed too. Otherwise two different pairs could have the same concatenation, and so
        // the same hash.
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
    use serde_json::{Value, json};

    use super::*;

    fn is_done(observed: i64, replicas: [i32; 3], written: i64) -> bool {
        let [all, updated, available] = replicas;
        let deployment = json!({
            "metadata": {"generation": 3}, "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": {"observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available},
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        matches!(check(Some(&deployment), Some(written)), WaitState::Done)
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
        assert!(matches!(check(None, None), WaitState::Wait(_)));
    }

    fn says(status: &Value) -> Option<String> {
        what_pod_says(&serde_json::from_value(json!({"status": status})).unwrap())
    }

    fn container(state: &Value, last: &Value) -> Value {
        json!({"name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state, "lastState": last})
    }

    fn container_says(state: &Value, last: &Value) -> Option<String> {
        says(&json!({"containerStatuses": [container(state, last)]}))
    }

    fn ended(message: &str) -> Value {
        json!({"terminated": {"exitCode": 1, "reason": "Error", "message": message}})
    }

    #[test]
    fn a_pod_tells_why_it_does_not_run() {
        let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
        let containers = [
            container(&json!({"running": {}}), &json!({})),
            container(&waiting, &json!({})),
        ];
        assert_eq!(
            says(&json!({"containerStatuses": containers})).as_deref(),
            Some("ErrImagePull: no such image")
        );
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no node has room"});
        assert_eq!(
            says(&json!({"conditions": [condition]})).as_deref(),
            Some("no node has room")
        );
        assert_eq!(says(&json!({})), None);
    }

    #[test]
    fn a_process_that_ends_again_and_again_is_quoted() {
        let waits = |reason| json!({"waiting": {"reason": reason, "message": "back-off 10s restarting failed container"}});
        let last = ended("I0101 starting\nunknown flag: --x\n");
        let quoted = "I0101 starting unknown flag: --x";
        for (state, last, expected) in [
            (
                waits("CrashLoopBackOff"),
                &last,
                format!("CrashLoopBackOff: {quoted}"),
            ),
            (last.clone(), &json!({}), format!("Error: {quoted}")),
            (json!({"running": {}}), &last, quoted.to_owned()),
            // The process has written no message.
            (
                waits("CrashLoopBackOff"),
                &ended(" "),
                "CrashLoopBackOff: back-off 10s restarting failed container".to_owned(),
            ),
            // The present problem differs from the reason of the earlier crash.
            (
                waits("CreateContainerConfigError"),
                &last,
                "CreateContainerConfigError: back-off 10s restarting failed container".to_owned(),
            ),
        ] {
            assert_eq!(container_says(&state, last), Some(expected));
        }
        let mut ready = container(&json!({"running": {}}), &last);
        ready["ready"] = json!(true);
        assert_eq!(says(&json!({"containerStatuses": [ready]})), None);
    }

    #[test]
    fn of_a_long_output_the_end_is_quoted() {
        for length in [LAST_WORDS, LAST_WORDS + 1, 3 * LAST_WORDS] {
            // Two bytes each.
            let output = "ü".repeat(length - 1) + "!";
            let said = container_says(&ended(&output), &json!({})).unwrap();
            let words = said.strip_prefix("Error: ").unwrap();
            let cut = words.strip_prefix('…');
            assert_eq!(cut.is_some(), length > LAST_WORDS);
            let kept = cut.unwrap_or(words);
            assert!(kept.ends_with("ü!"));
            assert_eq!(kept.chars().count(), LAST_WORDS);
        }
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
