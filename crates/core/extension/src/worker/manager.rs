//! The machine-controller-manager for a shoot's machine objects: one Deployment in the shoot's namespace,
//! with rights only in this namespace.

use std::{collections::BTreeMap, time::Duration};

use api::extensions::Worker;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{EnvVar, Pod, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, ResourceExt};
use owner_checks::{AUTHORITY, OwnerClaim};
use runtime::{
    Error, Result,
    client::{
        Cluster, Seed,
        apply::{self, FieldManager, Object},
        wait::{self, WaitState},
    },
    error::Explain as _,
    workload::{
        self, Files, Workload,
        rollout::{Rollout, checksums_of_secrets},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::machines::Manager;
use crate::Context;

/// Name of the Deployment and of all related objects.
pub const NAME: &str = "machine-controller-manager";
/// Time in which an operation waits for the new pod. Longer than a pod takes to start with a present image.
/// Much shorter than a gardenlet's timeout for a Worker, because a waiting operation occupies a worker of the
/// controller.
const ROLLED_OUT_WITHIN: Duration = Duration::from_secs(20);
/// Time in which an operation waits for the end of a pod. Longer than the grace period; shorter than the
/// patience of a forced deletion.
const GONE_WITHIN: Duration = Duration::from_secs(17);

/// Deploys the machine-controller-manager of the provider with `replicas` (1, or 0 without work), and waits
/// for the rollout.
pub async fn deploy(context: &Context<Worker>, mut manager: Manager, replicas: i32) -> Result<()> {
    let (seed, by, namespace) = (&context.seed, context.manager, context.namespace()?);
    let cluster = context
        .cluster
        .as_ref()
        .filter(|_| manager.asks_whose_the_shoot_is);
    let asks = cluster.map_or(Ok(None), OwnerClaim::from_cluster)?;
    manager
        .args
        .extend(asks.iter().flat_map(|claim| claim.flags(&namespace)));
    let checksums = checksums_of_secrets(seed, &namespace, NAME, &manager.secrets).await?;
    let checksums = checksums
        .into_iter()
        .map(|(name, sum)| (format!("checksum/{name}"), sum))
        .collect();
    by.apply(&seed.namespaced(&namespace), &account()?).await?;
    by.apply(&seed.namespaced(&namespace), &role()?).await?;
    by.apply(&seed.namespaced(&namespace), &binding(&namespace)?)
        .await?;
    let deployment = deployment(manager, asks.is_some(), &checksums, replicas)?;
    let written = by.apply(&seed.namespaced(&namespace), &deployment).await?;
    if replicas == 0 {
        return wait_for_no_pod(seed, &namespace, written.metadata.generation).await;
    }
    let written = written.metadata.generation;
    of_it(seed, &namespace)
        .wait_until_done(written, ROLLED_OUT_WITHIN)
        .await
}

/// Scales a running machine-controller-manager to 0, and keeps the Deployment (gardener#3520). On return, no
/// controller acts on machine objects.
pub async fn stop(seed: &Seed, by: FieldManager, namespace: &str) -> Result<()> {
    let deployments: Api<Deployment> = seed.namespaced(namespace);
    let found = deployments.get_opt(NAME).await;
    if found
        .context(format_args!("could not read Deployment {NAME}"))?
        .is_none()
    {
        return wait_for_no_pod(seed, namespace, None).await;
    }
    let stopped = by
        .merge(&deployments, NAME, &json!({"spec": {"replicas": 0}}))
        .await?;
    wait_for_no_pod(seed, namespace, stopped.metadata.generation).await
}

/// Removes the machine-controller-manager with all related objects, and waits until no pod is left (I3). The
/// RBAC objects are deleted before the wait.
pub async fn remove(seed: &Seed, namespace: &str) -> Result<()> {
    let it = of_it(seed, namespace);
    it.delete().await?;
    apply::delete(&seed.namespaced::<RoleBinding>(namespace), NAME).await?;
    apply::delete(&seed.namespaced::<Role>(namespace), NAME).await?;
    apply::delete(&seed.namespaced::<ServiceAccount>(namespace), NAME).await?;
    it.wait_until_gone(GONE_WITHIN).await
}

async fn wait_for_no_pod(seed: &Seed, namespace: &str, written: Option<i64>) -> Result<()> {
    let deployments: Api<Deployment> = seed.namespaced(namespace);
    wait::until(&deployments, NAME, GONE_WITHIN, |found| {
        has_no_pod(found, written)
    })
    .await?;
    let pods: Api<Pod> = seed.namespaced(namespace);
    let left = pods.list(&workload::selected(NAME)).await;
    let left = left.context(format_args!("could not list the pods of {NAME}"))?;
    for pod in left {
        wait::until_gone(&pods, &pod.name_any(), GONE_WITHIN).await?;
    }
    Ok(())
}

fn has_no_pod(deployment: Option<&Deployment>, written: Option<i64>) -> WaitState {
    let Some(deployment) = deployment else {
        return WaitState::Done;
    };
    let status = deployment.status.clone().unwrap_or_default();
    let generation = deployment.metadata.generation;
    if generation < written || status.observed_generation < generation {
        return WaitState::Wait("its last change has not been seen yet".into());
    }
    match status.replicas.unwrap_or_default() {
        0 => WaitState::Done,
        pods => WaitState::Wait(format!("{pods} of its pods are still there")),
    }
}

fn deployment(
    manager: Manager,
    asks: bool,
    checksums: &BTreeMap<String, String>,
    replicas: i32,
) -> Result<Deployment> {
    let secrets = manager.secrets.into_iter().map(Files::Secret);
    let environment: Vec<EnvVar> = manager.environment.iter().map(Into::into).collect();
    let workload = Workload {
        name: NAME,
        image: manager.image,
        program: manager.program,
        args: manager.args,
        health: manager.health,
        files: secrets
            .chain(asks.then_some(Files::Authority(AUTHORITY)))
            .collect(),
        scratch: false,
        // A running call to the cloud may finish.
        grace_seconds: 15,
        overlaps: false,
        requests: ["32Mi", "10m"],
    };
    let mut deployment = workload.deployment_as(NAME, checksums)?;
    if let Some(spec) = &mut deployment.spec {
        spec.replicas = Some(replicas);
        let pod = spec.template.spec.iter_mut();
        for container in pod.flat_map(|pod| &mut pod.containers) {
            container.env = (!environment.is_empty()).then(|| environment.clone());
        }
    }
    Ok(deployment)
}

fn account() -> Result<ServiceAccount> {
    made(json!({"metadata": {"name": NAME}, "automountServiceAccountToken": false}))
}

fn role() -> Result<Role> {
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let kinds = ["machineclasses", "machinedeployments", "machinesets", "machines"];
    let statuses = [
        "machinedeployments/status",
        "machinesets/status",
        "machines/status",
    ];
    made(json!({
        "metadata": {"name": NAME},
        "rules": [
            {"apiGroups": ["machine.sapcloud.io"], "resources": kinds, "verbs": all},
            {"apiGroups": ["machine.sapcloud.io"], "resources": statuses, "verbs": ["patch", "update"]},
            // The process reports Nodes and instances without a Machine in this status.
            {"apiGroups": ["extensions.gardener.cloud"], "resources": ["workers"], "verbs": ["get", "list"]},
            {"apiGroups": ["extensions.gardener.cloud"], "resources": ["workers/status"], "verbs": ["patch"]},
            // User data and credentials: the names follow from pools, and pools come and go.
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "watch", "create", "update"]},
        ],
    }))
}

fn binding(namespace: &str) -> Result<RoleBinding> {
    made(json!({
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }))
}

fn made<K: Object + DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object)
        .map_err(|error| Error::bug(format!("the {} of {NAME} cannot be made: {error}", K::kind(&()))))
}

fn of_it(seed: &Seed, namespace: &str) -> Rollout<'static> {
    Rollout::new(seed, namespace, NAME, workload::selected(NAME))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Otherwise Nodes and instances without a Machine would not be reported.
    #[test]
    fn the_manager_may_report_on_the_worker_and_change_nothing_else_of_it() {
        let rules = role().unwrap().rules.unwrap();
        let of_workers = rules
            .iter()
            .filter(|rule| rule.api_groups == Some(vec!["extensions.gardener.cloud".into()]));
        let rights: Vec<_> = of_workers
            .map(|rule| (rule.resources.clone().unwrap().join(","), rule.verbs.join(",")))
            .collect();
        let expected = [("workers", "get,list"), ("workers/status", "patch")];
        assert_eq!(
            rights,
            expected.map(|(resource, verbs)| (resource.to_owned(), verbs.to_owned()))
        );
    }

    #[test]
    fn the_manager_gets_the_environment_of_its_provider() {
        let manager = || Manager::of_suite("image", "/program", "shoot--a--b");
        let of = |manager: Manager| {
            let deployment = deployment(manager, false, &BTreeMap::new(), 1).unwrap();
            let pod = deployment.spec.unwrap().template.spec.unwrap();
            pod.containers[0].env.clone()
        };
        // A change would restart each manager.
        assert_eq!(of(manager()), None);
        let mut manager = manager();
        manager.environment = vec!["HTTPS_PROXY=http://proxy:3128".parse().unwrap()];
        let variable = &of(manager).unwrap()[0];
        assert_eq!(variable.name, "HTTPS_PROXY");
        assert_eq!(variable.value.as_deref(), Some("http://proxy:3128"));
    }
}
