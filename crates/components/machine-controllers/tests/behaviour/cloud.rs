//! A cloud in memory. The cloud counts calls, refuses and hangs on request, and each machine registers a Node
//! at once.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::machine::MachineClass;
use async_trait::async_trait;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use machine_controllers::{Driver, Instance, InstancePower, ListedInstance, Request};
use runtime::{Error, Result, client::Credentials};
use serde_json::json;
use tokio::sync::watch;

/// Before a deletion that hangs is asked for again.
const HANGING: Duration = Duration::from_millis(300);

#[derive(Default)]
struct State {
    /// Provider ids by Machine name.
    instances: BTreeMap<String, String>,
    calls: Vec<String>,
    user_data: BTreeMap<String, String>,
    refuses: Option<Error>,
    /// Reports about instances by Machine name, in the place of [`InstancePower::Running`].
    power: BTreeMap<String, Result<InstancePower>>,
    /// Errors of launches that the cloud has accepted and then ended, by Machine name.
    ended: BTreeMap<String, Error>,
    /// Instances do not end.
    hangs: bool,
    /// The longest time for which, according to the controllers, an instance has been ending.
    ending_for: Duration,
    /// Machines whose kubelets register while the instances are deleted.
    late: Vec<String>,
}

/// The cloud.
pub struct Cloud {
    shoot: Client,
    state: Mutex<State>,
    /// Whether machines register Nodes.
    pub joins: watch::Sender<bool>,
    /// Whether instances are created; while false, `create` does not answer.
    pub answers: watch::Sender<bool>,
}

impl Cloud {
    pub fn new(shoot: Client) -> Self {
        Self {
            shoot,
            state: Mutex::default(),
            joins: watch::Sender::new(true),
            answers: watch::Sender::new(true),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls so far that begin so.
    pub fn calls(&self, prefix: &str) -> Vec<String> {
        let state = self.state();
        let calls = state.calls.iter().filter(|call| call.starts_with(prefix));
        calls.cloned().collect()
    }

    /// Instances by the names of the Machines.
    pub fn instances(&self) -> Vec<String> {
        self.state().instances.keys().cloned().collect()
    }

    /// The user data of a machine.
    pub fn user_data(&self, machine: &str) -> Option<String> {
        self.state().user_data.get(machine).cloned()
    }

    /// Makes the cloud refuse to create instances, or stops the refusal.
    pub fn refuse(&self, error: Option<Error>) {
        self.state().refuses = error;
    }

    /// The kubelet of this machine registers while the instance is deleted.
    pub fn registers_at_the_end(&self, machine: &str) {
        self.state().late.push(machine.to_owned());
    }

    /// From now on the cloud reports this about the instance of a machine.
    pub fn report_power(&self, machine: &str, report: Result<InstancePower>) {
        self.state().power.insert(machine.to_owned(), report);
    }

    /// The cloud ends the instance of a machine after the launch.
    pub fn end_launch(&self, machine: &str, error: Error) {
        self.state().ended.insert(machine.to_owned(), error);
    }

    /// Makes deletions of instances hang, or stops the hang.
    pub fn hang_deletions(&self, hangs: bool) {
        self.state().hangs = hangs;
    }

    /// The longest time for which, according to the controllers, an instance had been ending.
    pub fn longest_ending(&self) -> Duration {
        self.state().ending_for
    }

    /// Adds an instance without a request of the controllers.
    pub fn add_instance(&self, machine: &str) -> String {
        let id = id(machine);
        self.state().instances.insert(machine.to_owned(), id.clone());
        id
    }

    /// Removes an instance without a request of the controllers.
    pub fn take(&self, machine: &str) {
        self.state().instances.remove(machine);
    }

    /// Registers the machine's kubelet with a `Ready` status.
    pub async fn register(&self, machine: &str, ready: &str) -> kube::Result<()> {
        let nodes: Api<Node> = Api::all(self.shoot.clone());
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": node(machine)},
            "spec": {"providerID": id(machine)},
        });
        let params = PatchParams::apply("kubelet").force();
        nodes
            .patch(&node_name(&node), &params, &Patch::Apply(&node))
            .await?;
        report(&self.shoot, &node_name(&node), ready).await
    }
}

/// Writes the `Ready` status of a Node as the kubelet would.
pub async fn report(shoot: &Client, node: &str, ready: &str) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(shoot.clone());
    let now = runtime::clock::now();
    let status = json!({"status": {"conditions": [{
        "type": "Ready", "status": ready, "reason": "Test", "message": "so", "lastTransitionTime": now.to_string(),
    }]}});
    nodes
        .patch_status(node, &PatchParams::default(), &Patch::Merge(status))
        .await
        .map(drop)
}

pub fn id(machine: &str) -> String {
    format!("memory:///i-{machine}")
}

pub fn node(machine: &str) -> String {
    format!("node-{machine}")
}

fn node_name(node: &serde_json::Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

#[async_trait]
impl Driver for Cloud {
    async fn create(&self, request: &Request<'_>) -> Result<Instance> {
        let name = request.machine.name_any();
        self.state().calls.push(format!("create {name}"));
        let mut answers = self.answers.subscribe();
        let _ = answers.wait_for(|answers| *answers).await;
        if let Some(error) = self.state().refuses.clone() {
            return Err(error);
        }
        request.credentials.text("token")?;
        let user_data = request.user_data.clone().unwrap_or_default();
        self.state().user_data.insert(name.clone(), user_data);
        let provider_id = self.add_instance(&name);
        if *self.joins.borrow() {
            let registered = self.register(&name, "True").await;
            registered.map_err(|error| Error::bug(error.to_string()))?;
        }
        Ok(Instance {
            provider_id,
            node_name: node(&name),
        })
    }

    async fn delete(&self, request: &Request<'_>) -> Result<()> {
        let name = request.machine.name_any();
        self.state().calls.push(format!("delete {name}"));
        let is_late = self.state().late.contains(&name);
        if is_late {
            let registered = self.register(&name, "True").await;
            registered.map_err(|error| Error::bug(error.to_string()))?;
        }
        let hangs = {
            let mut state = self.state();
            state.ending_for = state.ending_for.max(request.ending_for);
            state.hangs
        };
        if hangs {
            return Err(Error::not_ready(HANGING, "the instance shuts down"));
        }
        self.take(&name);
        Ok(())
    }

    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>> {
        let name = request.machine.name_any();
        self.state().calls.push(format!("status {name}"));
        let found = self.state().instances.get(&name).cloned();
        Ok(found.map(|provider_id| Instance {
            provider_id,
            node_name: node(&name),
        }))
    }

    async fn power(&self, request: &Request<'_>) -> Result<InstancePower> {
        let name = request.machine.name_any();
        let mut state = self.state();
        state.calls.push(format!("power {name}"));
        state
            .power
            .get(&name)
            .cloned()
            .unwrap_or(Ok(InstancePower::Running))
    }

    async fn launch_failure(&self, request: &Request<'_>) -> Result<Option<Error>> {
        Ok(self.state().ended.get(&request.machine.name_any()).cloned())
    }

    async fn list(&self, _: &MachineClass, _: Credentials) -> Result<Vec<ListedInstance>> {
        let mut state = self.state();
        state.calls.push("list".into());
        let found = state
            .instances
            .iter()
            .map(|(machine_name, provider_id)| ListedInstance {
                machine_name: machine_name.clone(),
                provider_id: provider_id.clone(),
            });
        Ok(found.collect())
    }
}
