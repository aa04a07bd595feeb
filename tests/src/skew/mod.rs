//! Three nodes of a shoot's control plane, each with a process of both managers, as pods that the test
//! creates from the existing Deployments. So two releases can work side by side, and a single Deployment
//! cannot show that.
//!
//! - [`Release::N`]: the kube-controller-manager shares node IPAM with any manager, by a file in version
//!   v1alpha1. The cloud-controller-manager runs without node IPAM and without flags of leader migration.
//! - [`Release::Next`]: the kube-controller-manager runs without node IPAM and without flags of leader
//!   migration. The cloud-controller-manager shares node IPAM, by files in v1beta1 and v1, with old and new
//!   names.

mod template;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Pod},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::Condition,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use template::Template;

use crate::{availability::Manager, managers, proof, watched};

/// The lock of a migration of node IPAM.
pub const LOCK: &str = "node-ipam-migration";
/// Nodes of the control plane.
pub const NODES: usize = 3;
/// Name of the test's single objects, and the label of the test's pods.
const MADE: &str = "version-skew";
const LABEL: &str = "repot.test/made=version-skew";
/// Where locks are, in the shoot.
const SYSTEM: &str = "kube-system";
/// Bounds the start and the end of a process.
const STARTED_WITHIN: Duration = Duration::from_secs(120);
/// Bounds a change of a lock's holder: the lock may have to expire with the default timing, fifteen seconds,
/// on a slow machine.
const HELD_WITHIN: Duration = Duration::from_secs(90);

/// The settings of the managers of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Node IPAM belongs to the kube-controller-manager and may be shared.
    N,
    /// Node IPAM belongs to the cloud-controller-manager.
    Next,
}

/// The three nodes.
pub struct ControlPlaneNodes {
    pods: Api<Pod>,
    leases: Api<Lease>,
    kubernetes: Template,
    cloud: Template,
    /// The pods of each node: of the kube-controller-manager and of the cloud-controller-manager.
    running: [[String; 2]; NODES],
    /// Each pod gets a new name, because the name identifies the holder of a lock.
    started: usize,
}

/// Replaces the two Deployments; the Deployments must have node IPAM in the cloud-controller-manager. No
/// process runs yet.
pub async fn take_over(seed: &Client, namespace: &str, shoot: &Client) -> Result<ControlPlaneNodes> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    let (kubernetes, cloud) = Template::both(
        &deployments.get(managers::KUBERNETES).await?,
        &deployments.get(managers::CLOUD).await?,
    )?;
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    for name in [managers::KUBERNETES, managers::CLOUD] {
        scale(&deployments, name, 0).await?;
    }
    for name in [managers::KUBERNETES, managers::CLOUD] {
        none_left(&pods, &format!("app=kubernetes,role={name}")).await?;
    }
    let leases: Api<Lease> = Api::namespaced(shoot.clone(), SYSTEM);
    // kube-controller-manager does not release the lock; the pod is gone, so the expiry need not be awaited.
    delete(&leases, &kubernetes.lock).await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(seed.clone(), namespace);
    create(&config_maps, json!({"data": template::files()})).await?;
    share_lock(shoot).await?;
    Ok(ControlPlaneNodes {
        pods,
        leases,
        kubernetes,
        cloud,
        running: Default::default(),
        started: 0,
    })
}

/// The right to the lock, as docs/understand/leader-migration.md describes.
async fn share_lock(shoot: &Client) -> Result<()> {
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LOCK], "verbs": ["get", "watch", "update"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    ]);
    let user = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("system:{name}")});
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": MADE},
        "subjects": [user(managers::KUBERNETES), user(managers::CLOUD)],
    });
    create(
        &Api::<Role>::namespaced(shoot.clone(), SYSTEM),
        json!({"rules": rules}),
    )
    .await?;
    create(&Api::<RoleBinding>::namespaced(shoot.clone(), SYSTEM), binding).await
}

/// Removes all objects of the test and starts the Deployments again. Safe to repeat, also before the test has
/// begun.
pub async fn give_back(seed: &Client, namespace: &str, shoot: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    pods.delete_collection(&DeleteParams::default(), &ListParams::default().labels(LABEL))
        .await?;
    none_left(&pods, LABEL).await?;
    delete(&Api::<ConfigMap>::namespaced(seed.clone(), namespace), MADE).await?;
    delete(&Api::<RoleBinding>::namespaced(shoot.clone(), SYSTEM), MADE).await?;
    delete(&Api::<Role>::namespaced(shoot.clone(), SYSTEM), MADE).await?;
    delete(&Api::<Lease>::namespaced(shoot.clone(), SYSTEM), LOCK).await?;
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    for name in [managers::KUBERNETES, managers::CLOUD] {
        scale(&deployments, name, 1).await?;
    }
    let available = |deployment: Option<&Deployment>| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.available_replicas == Some(1))
    };
    for name in [managers::KUBERNETES, managers::CLOUD] {
        until(
            &deployments,
            name,
            STARTED_WITHIN,
            "is available again",
            available,
        )
        .await?;
    }
    Ok(())
}

impl ControlPlaneNodes {
    /// Starts the managers of a release on all nodes at once. Returns when all run; a process of each kind
    /// leads, or will lead.
    pub async fn start(&mut self, release: Release) -> Result<()> {
        for node in 0..NODES {
            self.create(node, release).await?;
        }
        try_join_all((0..NODES).map(|node| self.ready(node))).await?;
        Ok(())
    }

    /// Stops the managers of a node and starts the managers of a release there. Returns when both run,
    /// leading or not.
    pub async fn roll(&mut self, node: usize, release: Release) -> Result<()> {
        try_join_all(self.running[node].iter().map(|name| self.stop(name))).await?;
        self.create(node, release).await?;
        self.ready(node).await
    }

    async fn create(&mut self, node: usize, release: Release) -> Result<()> {
        self.started += 1;
        let managers = [&self.kubernetes, &self.cloud];
        let names = managers.map(|of| format!("skew-{}-node-{node}-{}", self.started, of.name));
        for (name, of) in names.iter().zip(managers) {
            let pod = of.pod(name, node, release)?;
            self.pods.create(&PostParams::default(), &pod).await?;
        }
        self.running[node] = names;
        Ok(())
    }

    async fn ready(&self, node: usize) -> Result<()> {
        let ready = |pod: Option<&Pod>| {
            let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
        };
        for name in &self.running[node] {
            until(&self.pods, name, STARTED_WITHIN, "is ready", ready).await?;
        }
        Ok(())
    }

    /// All nodes; the last node has the leading manager of this kind.
    ///
    /// A manager competes for the migration lock only while the manager holds the main lock. The manager that
    /// runs node IPAM now must be replaced last. Otherwise the main locks could go to two processes of which
    /// neither may run node IPAM.
    pub async fn leader_last(&self, manager: Manager) -> Result<Vec<usize>> {
        let of = match manager {
            Manager::Kubernetes => &self.kubernetes,
            Manager::Cloud => &self.cloud,
        };
        let holder = self.holder(&of.lock).await?;
        let mut nodes: Vec<_> = (0..NODES).collect();
        nodes.sort_by_key(|node| self.running[*node].contains(&holder));
        Ok(nodes)
    }

    /// Waits until a running process holds the lock, and returns the name of the pod.
    pub async fn holder(&self, lock: &str) -> Result<String> {
        let running: Vec<String> = self.running.iter().flatten().cloned().collect();
        let holder = |lease: Option<&Lease>| {
            let identity = lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.clone())?;
            let runs = |name: &&String| identity.split('_').next() == Some(name.as_str());
            running.iter().find(runs).cloned()
        };
        let held = |lease: Option<&Lease>| holder(lease).is_some();
        let lease = until(
            &self.leases,
            lock,
            HELD_WITHIN,
            "is held by a process that runs",
            held,
        )
        .await?;
        holder(lease.as_ref()).context("held")
    }

    async fn stop(&self, name: &str) -> Result<()> {
        self.pods.delete(name, &DeleteParams::default()).await?;
        until(
            &self.pods,
            name,
            STARTED_WITHIN,
            "is gone",
            |pod: Option<&Pod>| pod.is_none(),
        )
        .await?;
        Ok(())
    }
}

async fn scale(deployments: &Api<Deployment>, name: &str, replicas: u32) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    deployments
        .patch_scale(name, &PatchParams::default(), &patch)
        .await
        .with_context(|| format!("Deployment {name} cannot be scaled"))?;
    Ok(())
}

async fn none_left(pods: &Api<Pod>, label: &str) -> Result<()> {
    let labelled = ListParams::default().labels(label);
    let left = proof::until_nothing(STARTED_WITHIN, || async {
        Ok(pods
            .list(&labelled)
            .await?
            .iter()
            .map(ResourceExt::name_any)
            .collect())
    })
    .await?;
    ensure!(left.is_empty(), "pods do not go: {left:?}");
    Ok(())
}

/// Waits for an object.
async fn until<K>(
    api: &Api<K>,
    name: &str,
    within: Duration,
    what: &str,
    done: impl Condition<K>,
) -> Result<Option<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let seen = watched::until(api, name, within, done).await;
    seen.with_context(|| what.to_owned())
}

/// Makes an object called [`MADE`].
async fn create<K>(api: &Api<K>, mut body: Value) -> Result<()>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    body["metadata"] = json!({"name": MADE});
    api.create(&PostParams::default(), &serde_json::from_value(body)?)
        .await?;
    Ok(())
}

async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
