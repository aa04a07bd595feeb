//! A real API server that is seed and shoot; each scenario has a separate namespace and cloud.

use std::{fmt::Debug, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};
use k8s_openapi::api::{
    core::v1::{Namespace, Node, Secret},
    events::v1::Event,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use machine_controllers::{Context, NAMES, Timing};
use runtime::{
    client::{Connection, Permit, Seed, Shoot, apply::FieldManager},
    controller::{Events, runner},
    process::metrics::Metrics,
};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cloud::Cloud;

/// Longer than any of these steps takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// A namespace with a cloud.
pub struct World {
    pub client: Client,
    pub namespace: String,
    pub cloud: Arc<Cloud>,
}

/// Controllers that run until this is dropped.
pub struct Running {
    _tasks: JoinSet<Result<(), String>>,
    metrics: Metrics,
}

impl Running {
    /// Number of reconciliations of a controller that ended with this result.
    pub fn outcomes(&self, controller: &str, result: &str) -> u64 {
        let text = self.metrics.encode();
        let of = |line: &&str| {
            line.starts_with("controller_reconciles_total{")
                && line.contains(&format!("controller=\"{controller}\""))
                && line.contains(&format!("result=\"{result}\""))
        };
        let counts = text
            .lines()
            .filter(of)
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        counts.sum()
    }

    /// Waits until a controller has ended so many more times with this result.
    pub async fn until(&self, controller: &str, result: &str, more: u64) -> Result<()> {
        let before = self.outcomes(controller, result);
        eventually("reconciliations", SOON, || async {
            let seen = self.outcomes(controller, result) - before;
            ensure!(seen >= more, "{controller} ended {seen} times with {result}");
            anyhow::Ok(())
        })
        .await
    }
}

/// Short times; each scenario sets the times that matter there.
pub fn timing() -> Timing {
    Timing {
        poll_interval: Duration::from_millis(300),
        orphans_every: Duration::from_millis(500),
        creation: Duration::from_secs(300),
        health: Duration::from_secs(300),
        ..Timing::default()
    }
}

impl World {
    pub async fn start(client: &Client, name: &str) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        create(&namespaces, json!({"metadata": {"name": name}})).await?;
        let world = Self {
            client: client.clone(),
            namespace: name.to_owned(),
            cloud: Arc::new(Cloud::new(client.clone())),
        };
        let script = "join as <<MACHINE_NAME>> with <<BOOTSTRAP_TOKEN>>";
        world.secret("script", json!({"userData": script})).await?;
        world.secret("account", json!({"token": "t"})).await?;
        world.class("first", "script").await?;
        Ok(world)
    }

    pub fn run(&self, timing: Timing) -> Running {
        self.run_as(timing, &Permit::sole("a test"), self.client.clone().into())
    }

    pub fn run_as(&self, timing: Timing, permit: &Permit, shoot: Connection) -> Running {
        let metrics = Metrics::default();
        let context = Context {
            control: Seed::new(self.client.clone(), permit),
            namespace: self.namespace.clone(),
            shoot: Shoot::new(shoot, permit),
            driver: self.cloud.clone(),
            settings: runner::Settings {
                concurrency: 10,
                shutdown: CancellationToken::new(),
                permit: permit.clone(),
                metrics: metrics.clone(),
                events: Events::new(Connection::from(self.client.clone()).client(permit), "test"),
            },
            manager: FieldManager("test"),
            timing,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(machine_controllers::run(NAMES.to_vec(), context));
        Running {
            _tasks: tasks,
            metrics,
        }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub async fn secret(&self, name: &str, data: Value) -> Result<Secret> {
        create(
            &self.api(),
            json!({"metadata": {"name": name}, "stringData": data}),
        )
        .await
    }

    pub async fn class(&self, name: &str, script: &str) -> Result<MachineClass> {
        let reference = |name: &str| json!({"name": name, "namespace": self.namespace});
        let class = json!({
            "metadata": {"name": name}, "provider": "memory", "providerSpec": {},
            "secretRef": reference(script), "credentialsSecretRef": reference("account"),
        });
        create(&self.api(), class).await
    }

    /// A deployment called like the namespace, of the class `first`.
    pub async fn deployment(&self, replicas: i32, spec: Value) -> Result<MachineDeployment> {
        let labels = json!({"pool": self.namespace});
        let mut body = json!({
            "metadata": {"name": self.namespace},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"class": {"kind": "MachineClass", "name": "first"}}},
            },
        });
        json_patch::merge(&mut body["spec"], &spec);
        create(&self.api(), body).await
    }

    /// A Machine of no set.
    pub async fn machine(&self, name: &str, spec: Value) -> Result<Machine> {
        let mut body = json!({
            "metadata": {"name": name}, "spec": {"class": {"kind": "MachineClass", "name": "first"}},
        });
        json_patch::merge(&mut body["spec"], &spec);
        create(&self.api(), body).await
    }

    pub async fn change_deployment(&self, spec: Value) -> Result<()> {
        let api: Api<MachineDeployment> = self.api();
        let body = Patch::Merge(json!({"spec": spec}));
        api.patch(&self.namespace, &PatchParams::default(), &body).await?;
        Ok(())
    }

    pub async fn machines(&self) -> Result<Vec<Machine>> {
        Ok(self.api::<Machine>().list(&ListParams::default()).await?.items)
    }

    pub async fn sets(&self) -> Result<Vec<MachineSet>> {
        Ok(self.api::<MachineSet>().list(&ListParams::default()).await?.items)
    }

    /// Waits until a Machine satisfies `look`.
    pub async fn until(&self, name: &str, what: &str, look: impl Fn(&Machine) -> bool) -> Result<Machine> {
        eventually(what, SOON, || async {
            let machine = self.api::<Machine>().get(name).await?;
            ensure!(look(&machine), "{:?}", machine.status);
            anyhow::Ok(machine)
        })
        .await
    }

    /// Waits until all machines of the deployment have the present template and are ready, and returns the
    /// Machines.
    pub async fn until_done(&self, replicas: i32) -> Result<Vec<Machine>> {
        eventually("the deployment is done", SOON, || async {
            let deployment = self.api::<MachineDeployment>().get(&self.namespace).await?;
            let (generation, status) = (
                deployment.metadata.generation,
                deployment.status.unwrap_or_default(),
            );
            let counts = [
                status.replicas,
                status.updated_replicas,
                status.available_replicas,
            ];
            let machines = self.machines().await?;
            ensure!(
                status.observed_generation == generation
                    && counts == [Some(replicas); 3]
                    && i32::try_from(machines.len()).is_ok_and(|there| there == replicas),
                "{counts:?} {:?}",
                machines
                    .iter()
                    .map(|m| (m.name_any(), phase(m), last(m)))
                    .collect::<Vec<_>>()
            );
            Ok(machines)
        })
        .await
    }

    pub async fn delete_machine(&self, name: &str) -> Result<()> {
        self.api::<Machine>()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    pub async fn until_gone(&self, name: &str) -> Result<()> {
        eventually("the Machine is gone", SOON, || async {
            let left = self.api::<Machine>().get_opt(name).await?;
            ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
            anyhow::Ok(())
        })
        .await
    }

    /// Waits for an Event about an object of this scenario, and returns the note.
    pub async fn event(&self, about: &str, reason: &str) -> Result<String> {
        eventually("the event", SOON, || async {
            let events = self.api::<Event>().list(&ListParams::default()).await?;
            let of = |event: &&Event| {
                event.reason.as_deref() == Some(reason)
                    && event.regarding.as_ref().and_then(|o| o.name.as_deref()) == Some(about)
            };
            let found = events.iter().find(of).and_then(|event| event.note.clone());
            found.with_context(|| format!("{about} has no Event {reason}"))
        })
        .await
    }
}

pub fn phase(machine: &Machine) -> String {
    let status = machine
        .status
        .as_ref()
        .and_then(|status| status.current_status.as_ref());
    status.and_then(|status| status.phase.clone()).unwrap_or_default()
}

/// The code and the description of the last operation of a Machine.
pub fn last(machine: &Machine) -> (String, String) {
    let status = machine
        .status
        .as_ref()
        .and_then(|status| status.last_operation.clone());
    let last = status.unwrap_or_default();
    (
        last.error_code.unwrap_or_default(),
        last.description.unwrap_or_default(),
    )
}

/// Creates an object from JSON.
pub async fn create<K>(api: &Api<K>, mut object: Value) -> Result<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let object: K = serde_json::from_value(object).context("the object does not fit its kind")?;
    let name = object.name_any();
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("could not create {} {name}", K::kind(&())))
}
