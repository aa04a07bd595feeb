//! Writes the cloud-controller-manager into the seed, and waits until exactly the pods that are wanted run.

use std::{collections::BTreeMap, time::Duration};

use api::extensions::ControlPlane;
use extension::Context;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret},
};
use kube::{Api, api::ListParams};
use runtime::{
    Cluster, Error, Result, apply,
    error::Context as _,
    wait::{self, Look},
};

use super::cloud_controller_manager::{
    MIGRATION, NAME, SECRETS, checksum, deployment, labels, migration_file,
};

/// How long one operation waits for the new pod. Longer than a pod takes whose image is there; much shorter than a gardenlet
/// waits for a ControlPlane, as whoever waits keeps others from working. After it, the object says what is awaited.
const ROLLED_OUT_WITHIN: Duration = Duration::from_secs(20);
/// When to look again for a Secret that a gardenlet is about to write.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Makes the cloud-controller-manager what the ControlPlane says. When it returns, the wanted pod serves, and every pod with flags
/// or files of before was told to stop. One whose node does not answer may still be there: it is not waited for, since it can do
/// nothing while another one has the main lock.
pub async fn roll_out(context: &Context<ControlPlane>, image: &str) -> Result<()> {
    let namespace = context.namespace()?;
    let wanted = context.object.spec.cloud_controller_manager.as_ref();
    let file = migration_file(wanted);
    let config_maps: Api<ConfigMap> = context.seed.namespaced(&namespace);
    let mut checksums = checksums_of_secrets(context, &namespace).await?;
    if let Some(file) = &file {
        checksums.insert(MIGRATION, checksum(file.data.iter().flatten()));
        context.manager.apply(&config_maps, file).await?;
    }
    let deployments: Api<Deployment> = context.seed.namespaced(&namespace);
    let made = deployment(image, &namespace, wanted, &checksums)?;
    let generation = context
        .manager
        .apply(&deployments, &made)
        .await?
        .metadata
        .generation;
    let rolled_out = wait::until(&deployments, NAME, ROLLED_OUT_WITHIN, |found| {
        look(found, generation)
    });
    if let Err(error) = rolled_out.await {
        return Err(match what_pods_say(&context.seed.namespaced(&namespace)).await {
            Some(said) => error.context(said),
            None => error,
        });
    }
    if file.is_none() {
        // Not before: a pod that needs it and is started again would not start.
        apply::delete(&config_maps, MIGRATION).await?;
    }
    Ok(())
}

async fn checksums_of_secrets(
    context: &Context<ControlPlane>,
    namespace: &str,
) -> Result<BTreeMap<&'static str, String>> {
    let secrets: Api<Secret> = context.seed.namespaced(namespace);
    let mut checksums = BTreeMap::new();
    for name in SECRETS {
        let found = secrets.get_opt(name).await;
        let secret = found
            .context(format_args!("could not read the Secret {name}"))?
            .ok_or_else(|| {
                Error::not_ready(
                    LOOK_AGAIN,
                    format!("the Secret {name} that {NAME} needs does not exist: the gardenlet writes it"),
                )
            })?;
        let data = secret.data.iter().flatten().map(|(key, value)| (key, &value.0));
        checksums.insert(name, checksum(data));
    }
    Ok(checksums)
}

/// Whether only pods of this generation or a later one run, and are available.
fn look(deployment: Option<&Deployment>, generation: Option<i64>) -> Look {
    let wait = |why: &str| Look::Wait(why.into());
    let Some(deployment) = deployment else {
        return wait("it does not exist");
    };
    let Some(status) = &deployment.status else {
        return wait("nobody has seen it yet");
    };
    if deployment.metadata.generation < generation
        || status.observed_generation < deployment.metadata.generation
    {
        return wait("its last change has not been seen yet");
    }
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
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

/// Why the pods do not run, in the kubelet's or the scheduler's words.
async fn what_pods_say(pods: &Api<Pod>) -> Option<String> {
    let found = pods.list(&of_it()).await.ok()?;
    found.iter().find_map(what_pod_says)
}

/// Finds its pods.
pub fn of_it() -> ListParams {
    let labels: Vec<_> = labels()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    ListParams::default().labels(&labels.join(","))
}

fn what_pod_says(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let of_container = containers.filter_map(|container| {
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
        let said = [reason, message].into_iter().flatten().cloned();
        Some(said.collect::<Vec<_>>().join(": "))
    });
    let unscheduled = status.conditions.iter().flatten();
    let unscheduled = unscheduled
        .filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .filter_map(|condition| condition.message.clone());
    of_container.chain(unscheduled).find(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn is_done(observed: i64, replicas: [i32; 3]) -> bool {
        let [all, updated, available] = replicas;
        let status = json!({"observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available});
        let deployment = json!({
            "metadata": {"generation": 3}, "spec": {"replicas": 1, "selector": {}, "template": {}}, "status": status,
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        matches!(look(Some(&deployment), Some(3)), Look::Done)
    }

    #[test]
    fn rolled_out_means_that_only_the_wanted_pod_runs() {
        assert!(is_done(3, [1, 1, 1]));
        assert!(!is_done(2, [1, 1, 1]), "the change was not seen yet");
        assert!(!is_done(3, [1, 0, 1]), "the old pod runs");
        assert!(!is_done(3, [2, 1, 1]), "both run");
        assert!(!is_done(3, [1, 1, 0]), "the new one does not serve yet");
        assert!(matches!(look(None, Some(3)), Look::Wait(_)));
    }

    /// A watch may begin with what was there before the write.
    #[test]
    fn what_was_there_before_does_not_count() {
        let before = json!({
            "metadata": {"generation": 2}, "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        });
        let before = serde_json::from_value(before).unwrap();
        assert!(matches!(look(Some(&before), Some(3)), Look::Wait(_)));
        assert!(matches!(look(Some(&before), Some(2)), Look::Done));
    }

    #[test]
    fn a_pod_tells_why_it_does_not_run() {
        let says = |status| what_pod_says(&serde_json::from_value(json!({"status": status})).unwrap());
        let waiting = json!({"reason": "ErrImagePull", "message": "no such image"});
        let container = json!({"name": NAME, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": waiting}});
        assert_eq!(
            says(json!({"containerStatuses": [container]})).as_deref(),
            Some("ErrImagePull: no such image")
        );
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "no node has room"});
        assert_eq!(
            says(json!({"conditions": [condition]})).as_deref(),
            Some("no node has room")
        );
        assert_eq!(says(json!({})), None);
    }
}
