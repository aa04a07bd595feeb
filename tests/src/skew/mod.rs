//! Three nodes of a shoot's control plane, each with one process of both managers, as pods that the test makes from the
//! Deployments that are there. So two releases of them can work side by side, which one Deployment cannot show.
//!
//! | release | kube-controller-manager | cloud-controller-manager |
//! |---|---|---|
//! | [`Release::N`] | shares node IPAM with any; file in version v1alpha1 | without node IPAM, no flag of leader migration |
//! | [`Release::Next`] | without node IPAM, no flag of leader migration | shares node IPAM; files in v1beta1 and v1, old and new names |

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
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
    runtime::wait::{Condition, await_condition},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    availability::Manager,
    managers::{self, WITHOUT_NODE_IPAM},
    proof,
};

/// The lock of a migration of node IPAM.
pub const LOCK: &str = "node-ipam-migration";
/// Nodes of the control plane.
pub const NODES: usize = 3;
/// Name of what the test makes once, and the label of its pods.
const MADE: &str = "version-skew";
const LABEL: &str = "repot.test/made=version-skew";
const FILES: &str = "/srv/version-skew";
/// Locks that run out soon, so that the test need not wait long.
const TIMING: [&str; 3] = [
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// Flags that say who runs node IPAM, and the timing of locks: the test sets its own.
const REPLACED: [&str; 7] = [
    "--allocate-node-cidrs",
    "--cluster-cidr",
    "--enable-leader-migration",
    "--leader-migration-config",
    "--leader-elect-lease-duration",
    "--leader-elect-renew-deadline",
    "--leader-elect-retry-period",
];
/// Bounds the start of a process, and its end.
const STARTED_WITHIN: Duration = Duration::from_secs(45);
/// Bounds a lock's change of hands: it may have to run out at the timing of before, fifteen seconds, on a slow machine.
const HELD_WITHIN: Duration = Duration::from_secs(45);

/// What the managers of one node are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Node IPAM is at home and may be shared.
    N,
    /// Node IPAM is the cloud's.
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
    /// Pods have names of their own each time, as a lock tells its holder by them.
    started: usize,
}

/// What pods of a manager are made from.
struct Template {
    name: &'static str,
    pod: Value,
    flags: Vec<String>,
    /// Flags by which it gives ranges.
    ranges: Vec<String>,
    /// Its main lock.
    lock: String,
}

/// Takes the place of the two Deployments, which must give node IPAM to the cloud-controller-manager. Nothing runs yet.
pub async fn take_over(seed: &Client, namespace: &str, shoot: Client) -> Result<ControlPlaneNodes> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    let kubernetes = deployments.get(managers::KUBERNETES).await?;
    let cloud = deployments.get(managers::CLOUD).await?;
    let ranges: Vec<String> = managers::flags(&cloud)
        .into_iter()
        .filter(|flag| flag.starts_with("--allocate-node-cidrs") || flag.starts_with("--cluster-cidr="))
        .collect();
    ensure!(
        ranges.len() == 2,
        "the cloud-controller-manager gives no ranges: {ranges:?}"
    );
    for name in [managers::KUBERNETES, managers::CLOUD] {
        scale(&deployments, name, 0).await?;
    }
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    for name in [managers::KUBERNETES, managers::CLOUD] {
        none_left(&pods, &format!("app=kubernetes,role={name}")).await?;
    }
    create(
        &Api::<ConfigMap>::namespaced(seed.clone(), namespace),
        json!({"data": files()}),
    )
    .await?;
    // As docs/leader-migration.md says.
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LOCK], "verbs": ["get", "watch", "update"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    ]);
    let user = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("system:{name}")});
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": MADE});
    let subjects = [user(managers::KUBERNETES), user(managers::CLOUD)];
    let locks = |shoot: &Client| shoot.clone();
    create(
        &Api::<Role>::namespaced(locks(&shoot), "kube-system"),
        json!({"rules": rules}),
    )
    .await?;
    let binding = json!({"roleRef": role_ref, "subjects": subjects});
    create(
        &Api::<RoleBinding>::namespaced(locks(&shoot), "kube-system"),
        binding,
    )
    .await?;
    Ok(ControlPlaneNodes {
        pods,
        leases: Api::namespaced(shoot, "kube-system"),
        kubernetes: Template::of(managers::KUBERNETES, &kubernetes, ranges.clone())?,
        cloud: Template::of(managers::CLOUD, &cloud, ranges)?,
        running: Default::default(),
        started: 0,
    })
}

/// Takes away all that the test made and starts the Deployments again. Safe to repeat, and where nothing was begun.
pub async fn give_back(seed: &Client, namespace: &str, shoot: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    pods.delete_collection(&DeleteParams::default(), &ListParams::default().labels(LABEL))
        .await?;
    none_left(&pods, LABEL).await?;
    delete(&Api::<ConfigMap>::namespaced(seed.clone(), namespace), MADE).await?;
    delete(
        &Api::<RoleBinding>::namespaced(shoot.clone(), "kube-system"),
        MADE,
    )
    .await?;
    delete(&Api::<Role>::namespaced(shoot.clone(), "kube-system"), MADE).await?;
    delete(&Api::<Lease>::namespaced(shoot.clone(), "kube-system"), LOCK).await?;
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
    /// Stops the managers of a node and starts those of a release there. Returns when both run; they need not lead.
    pub async fn roll(&mut self, node: usize, release: Release) -> Result<()> {
        let old = self.running[node].clone();
        try_join_all(
            old.iter()
                .filter(|name| !name.is_empty())
                .map(|name| self.stop(name)),
        )
        .await?;
        self.started += 1;
        let names = [&self.kubernetes, &self.cloud]
            .map(|of| format!("skew-{}-node-{node}-{}", self.started, of.name));
        let ready = |pod: Option<&Pod>| {
            let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
        };
        for (name, of) in names.iter().zip([&self.kubernetes, &self.cloud]) {
            let pod = of.pod(name, node, release)?;
            self.pods.create(&PostParams::default(), &pod).await?;
        }
        for name in &names {
            until(&self.pods, name, STARTED_WITHIN, "is ready", ready).await?;
        }
        self.running[node] = names;
        Ok(())
    }

    /// All nodes; last the one whose manager of this kind leads now.
    ///
    /// A manager asks for the migration lock only while it holds its main lock. Whoever runs node IPAM now must be the last to
    /// go: else the main locks could come to those two processes of which neither may run it.
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

    /// Waits until the lock is held by a process that runs, and gives the name of its pod.
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

impl Template {
    fn of(name: &'static str, deployment: &Deployment, ranges: Vec<String>) -> Result<Self> {
        let template = deployment.spec.as_ref().map(|spec| &spec.template);
        let pod = serde_json::to_value(template.and_then(|template| template.spec.as_ref()))?;
        let given = managers::flags(deployment);
        let named = given
            .iter()
            .find_map(|flag| flag.strip_prefix("--leader-elect-resource-name="));
        let lock = named.unwrap_or(name).to_owned();
        let replaced = |flag: &String| {
            let name = flag.split('=').next().unwrap_or_default();
            REPLACED.contains(&name)
        };
        let kept = given.into_iter().filter(|flag| !replaced(flag));
        let flags = kept
            .map(|flag| flag.replace(&format!(",{WITHOUT_NODE_IPAM}"), ""))
            .collect();
        Ok(Self {
            name,
            pod,
            flags,
            ranges,
            lock,
        })
    }

    fn pod(&self, name: &str, node: usize, release: Release) -> Result<Pod> {
        let kubernetes = self.name == managers::KUBERNETES;
        let mut flags = self.flags.clone();
        flags.extend(TIMING.map(str::to_owned));
        let file = match (kubernetes, release) {
            (true, Release::N) => Some("kubernetes.yaml".to_owned()),
            (false, Release::Next) => Some(format!("cloud-{node}.yaml")),
            (true, Release::Next) => {
                let chosen = flags.iter_mut().find(|flag| flag.starts_with("--controllers="));
                let chosen = chosen.context("the kube-controller-manager has no --controllers")?;
                *chosen = format!("{chosen},{WITHOUT_NODE_IPAM}");
                None
            }
            (false, Release::N) => None,
        };
        if let Some(file) = file {
            flags.extend(self.ranges.iter().cloned());
            flags.push("--enable-leader-migration".to_owned());
            flags.push(format!("--leader-migration-config={FILES}/{file}"));
        }
        let mut spec = self.pod.clone();
        spec["containers"][0]["args"] = json!(flags);
        push(
            &mut spec["volumes"],
            json!({"name": MADE, "configMap": {"name": MADE}}),
        );
        push(
            &mut spec["containers"][0]["volumeMounts"],
            json!({"name": MADE, "mountPath": FILES}),
        );
        let (key, value) = LABEL.split_once('=').context("a label has a value")?;
        let pod = json!({"metadata": {"name": name, "labels": {key: value}}, "spec": spec});
        Ok(serde_json::from_value(pod)?)
    }
}

fn push(list: &mut Value, entry: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(entry),
        None => *list = json!([entry]),
    }
}

/// The files: one of the home and one of each node's guest. Kubernetes knows the new name of the controller only.
fn files() -> Value {
    let file = |version: &str, more: &str, name: &str, component: &str| {
        format!(
            "apiVersion: controllermanager.config.k8s.io/{version}\nkind: LeaderMigrationConfiguration\nleaderName: {LOCK}\n{more}\
             controllerLeaders:\n- name: {name}\n  component: \"{component}\"\n"
        )
    };
    let (old, new) = ("nodeipam", "node-ipam-controller");
    json!({
        "kubernetes.yaml": file("v1alpha1", "resourceLock: leases\n", new, "*"),
        "cloud-0.yaml": file("v1beta1", "resourceLock: leases\n", old, "*"),
        "cloud-1.yaml": file("v1", "", new, "cloud-controller-manager"),
        "cloud-2.yaml": file("v1", "", old, "*"),
    })
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
    let waiting = Box::pin(await_condition(api.clone(), name, done));
    match tokio::time::timeout(within, waiting).await {
        Ok(object) => Ok(object?),
        Err(_) => bail!("{} {name} {what}: not so within {within:?}", K::kind(&())),
    }
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
