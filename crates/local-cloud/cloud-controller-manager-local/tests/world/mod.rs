//! The test environment: a shoot and a cloud in a single real API server. The cloud account has exactly the
//! rights that the controllers need.
#![allow(dead_code)] // each test file uses its own part of it

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use cloud_controller_manager_local::{
    controllers::{self, Context},
    flags::{Options, PodRanges},
    names::Name,
};
use cloud_local::{Instance, Source, instances};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Node},
    events::v1::Event,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use runtime::{
    client::Permit,
    process::{Process, metrics::Metrics},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The cloud account: a namespace.
pub const ACCOUNT: &str = "account";
/// The shoot's technical id.
pub const CLUSTER: &str = "shoot--dev--one";
/// The user of the account.
pub const USER: &str = "cloud-user";
/// Longer than any of these steps takes on a busy machine. The longest step is a hand-over between two
/// kube-controller-managers, where two locks expire in sequence: over half a minute.
pub const SOON: Duration = Duration::from_secs(180);
/// The taint of a Node that a kubelet has just registered.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

pub struct World {
    pub plane: ControlPlane,
    pub shoot: Client,
    /// The mounted Secret `cloudprovider`.
    pub credentials: tempfile::TempDir,
}

impl World {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start("shoot").await?;
        if std::env::var_os("RUST_LOG").is_some() {
            let _ = Process::new("test"); // logs of the controllers
        }
        let world = Self {
            shoot: plane.admin(),
            plane,
            credentials: tempfile::tempdir()?,
        };
        let client = world.shoot.clone();
        create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": ACCOUNT}})).await?;
        let verbs = ["get", "create", "patch"];
        let role = json!({
            "metadata": {"name": "cloud"},
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["services"], "verbs": ["create", "patch", "delete"]},
                {"apiGroups": [""], "resources": ["services/status"], "verbs": ["patch"]},
            ],
        });
        create::<Role>(&Api::namespaced(client.clone(), ACCOUNT), role).await?;
        let binding = json!({
            "metadata": {"name": "cloud"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cloud"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        create::<RoleBinding>(&Api::namespaced(client, ACCOUNT), binding).await?;
        world.good_credentials()?;
        Ok(world)
    }

    /// Writes valid credentials of the account.
    pub fn good_credentials(&self) -> Result<()> {
        let kubeconfig = self.plane.kubeconfig(USER, &[])?;
        self.write_credentials(&serde_json::to_value(kubeconfig)?, ACCOUNT)
    }

    /// Writes different credentials, as after a change of the Secret.
    pub fn write_credentials(&self, kubeconfig: &Value, namespace: &str) -> Result<()> {
        std::fs::write(
            self.credentials.path().join("kubeconfig"),
            serde_json::to_vec(kubeconfig)?,
        )?;
        std::fs::write(self.credentials.path().join("namespace"), namespace)?;
        Ok(())
    }

    pub fn folder(&self) -> PathBuf {
        self.credentials.path().to_owned()
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.shoot.clone())
    }

    pub fn cloud(&self) -> Api<ConfigMap> {
        Api::namespaced(self.shoot.clone(), ACCOUNT)
    }

    /// Writes exactly this list of instances.
    pub async fn list(&self, instances: &[(&str, Value)]) -> Result<()> {
        let data: BTreeMap<_, _> = instances
            .iter()
            .map(|(name, i)| ((*name).to_owned(), i.to_string()))
            .collect();
        for instance in instances {
            serde_json::from_value::<Instance>(instance.1.clone()).context("a wrong instance in the test")?;
        }
        self.write_list(data).await
    }

    /// As [`Self::list`], with any content of the entries.
    pub async fn write_list(&self, data: BTreeMap<String, String>) -> Result<()> {
        self.no_list().await?;
        create(
            &self.cloud(),
            json!({"metadata": {"name": instances(CLUSTER)}, "data": data}),
        )
        .await?;
        Ok(())
    }

    /// Deletes the list of instances.
    pub async fn no_list(&self) -> Result<()> {
        match self
            .cloud()
            .delete(&instances(CLUSTER), &DeleteParams::default())
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts these controllers.
    pub fn run(&self, names: &[Name], options: Options) -> Running {
        let context = Context {
            shoot: self.shoot.clone().into(),
            permit: Permit::sole("a test"),
            cloud: Source::Folder(self.folder()),
            options: Arc::new(options),
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
        };
        let metrics = context.metrics.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(controllers::run(names.iter().copied().collect(), context));
        Running { tasks, metrics }
    }

    /// Creates a Node like a kubelet.
    pub async fn node(&self, name: &str, spec: Value) -> Result<Node> {
        create(&self.nodes(), json!({"metadata": {"name": name}, "spec": spec})).await
    }

    /// Simulates the report of the kubelet.
    pub async fn report(&self, name: &str, ready: &str) -> Result<()> {
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]}});
        self.nodes()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        Ok(())
    }

    /// Waits until `look` accepts the Node.
    pub async fn until(&self, name: &str, what: &str, look: impl Fn(&Node) -> bool) -> Result<Node> {
        eventually(what, SOON, || async {
            let node = self.nodes().get(name).await?;
            ensure!(look(&node), "Node {name}: {:?} {:?}", node.spec, node.status);
            anyhow::Ok(node)
        })
        .await
    }

    /// Removes the objects of a scenario, regardless of the result: the next scenario begins in a clean
    /// environment.
    pub async fn clean(&self) -> Result<()> {
        self.good_credentials()?;
        self.no_list().await?;
        self.no_nodes().await
    }

    /// Removes all Nodes.
    pub async fn no_nodes(&self) -> Result<()> {
        self.nodes()
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await?;
        eventually("no nodes", SOON, || async {
            let left = self.nodes().list(&ListParams::default()).await?.items.len();
            ensure!(left == 0, "{left} are left");
            anyhow::Ok(())
        })
        .await
    }

    /// Waits for an Event about an object.
    pub async fn event(&self, kind: &str, name: &str, reason: &str) -> Result<()> {
        eventually("the event", SOON, || async {
            let events = Api::<Event>::all(self.shoot.clone())
                .list(&ListParams::default())
                .await?;
            let found = events.iter().any(|event| {
                let about = event.regarding.as_ref();
                event.reason.as_deref() == Some(reason)
                    && about
                        .is_some_and(|o| o.kind.as_deref() == Some(kind) && o.name.as_deref() == Some(name))
            });
            ensure!(found, "{kind} {name} has no Event {reason}");
            anyhow::Ok(())
        })
        .await
    }
}

/// Running controllers; stopped by [`Self::stop`] or a drop.
pub struct Running {
    tasks: JoinSet<Result<(), String>>,
    metrics: Metrics,
}

impl Running {
    /// Stops the controllers; no work continues afterwards.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    /// The number of reconciles of a controller with these results.
    pub fn outcomes(&self, controller: Name, results: &[&str]) -> u64 {
        let text = self.metrics.encode();
        let of = |line: &&str| {
            line.starts_with("controller_reconciles_total{")
                && line.contains(&format!("controller=\"{controller}\""))
                && results
                    .iter()
                    .any(|result| line.contains(&format!("result=\"{result}\"")))
        };
        text.lines()
            .filter(of)
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum()
    }
}

/// Fast options; the ranges are small.
pub fn options(pods: Option<&str>) -> Options {
    Options {
        kubeconfig: PathBuf::new(),
        cloud: Source::Folder(PathBuf::new()),
        cluster: CLUSTER.to_owned(),
        controllers: Name::ALL.into(),
        pods: pods.map(|range| PodRanges {
            range: range.parse().expect("a range"),
            size: 24,
            blocked: Vec::new(),
        }),
        load_balancer_range: "10.184.0.0/28".parse().expect("a range"),
        refresh_every: Duration::from_secs(1),
        look_every: Duration::from_millis(500),
        concurrency: 5,
    }
}

/// An instance with a single address.
pub fn instance(id: &str, address: &str, state: &str) -> Value {
    json!({
        "id": id, "addresses": [{"type": "InternalIP", "address": address}],
        "zone": "zone-a", "region": "local", "type": "small", "state": state,
    })
}

/// Creates an object from JSON.
pub async fn create<K>(api: &Api<K>, mut object: Value) -> Result<K>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let object: K = serde_json::from_value(object).context("the object does not fit its kind")?;
    let name = object.name_any();
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("could not create {} {name}", K::kind(&())))
}

/// The range of pod addresses of a Node.
pub fn range(node: &Node) -> Option<String> {
    node.spec.as_ref()?.pod_cidr.clone()
}

/// Whether a Node has a taint.
pub fn is_tainted(node: &Node, key: &str) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == key)
}
