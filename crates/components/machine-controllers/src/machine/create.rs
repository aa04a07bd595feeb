//! Finds or creates the instance of a Machine, always in this order.

use std::{sync::Arc, time::Duration};

use api::{
    machine::{Machine, MachineClass},
    meta::ErrorCode,
};
use kube::{Api, ResourceExt};
use runtime::{Error, Result, controller::Next, error::Explain as _};
use serde_json::json;
use tracing::info;

use super::{
    Machines,
    configuration::MachineConfiguration,
    identity::{node_name, provider_id},
    status::{MachineReport, Operation, State, elapsed_since, write},
};
use crate::{
    constants::{NAME_PLACEHOLDER, NODE, TOKEN_PLACEHOLDER},
    driver::Instance,
    isolation::is_isolated,
    phase::Phase,
};

/// Before the next attempt for a Machine of an isolated zone.
const RETRY_IN_ISOLATED_ZONE: Duration = Duration::from_secs(60);

impl Machines {
    /// Finds or creates the instance of a Machine that has not recorded an instance yet. The status shows a
    /// refusal of the cloud or an invalid configuration.
    pub(super) async fn ensure_instance(
        &self,
        machine: &Arc<Machine>,
        configuration: &MachineConfiguration,
    ) -> Result<Next> {
        let error = match self.find_or_create(machine, configuration).await {
            Ok(()) => return Ok(Next::After(self.timing.poll_interval)),
            Err(error) => error,
        };
        if error.is_failure() {
            // The MachineSet then creates a new Machine, perhaps of a different class. Not while the shoot's
            // API does not answer. Not for a Machine that already had an instance: a user has to explain the
            // loss of the instance.
            let has_timed_out = provider_id(machine).is_none()
                && elapsed_since(machine.creation_timestamp().map(|t| t.0)) >= configuration.creation
                && self.reach.check_reachable().await.is_ok();
            let phase = if has_timed_out {
                Phase::Failed
            } else {
                Phase::CrashLoopBackOff
            };
            let report = MachineReport::error(phase, Operation::Create, &error);
            self.write_report(machine, &report).await?;
        }
        Err(error)
    }

    async fn find_or_create(
        &self,
        machine: &Arc<Machine>,
        configuration: &MachineConfiguration,
    ) -> Result<()> {
        // A Node with the provider id identifies the instance without a call of the cloud.
        if let Some(id) = provider_id(machine)
            && let Some(node) = self.find_node_name(id)?
        {
            return self
                .record_new_instance(
                    machine,
                    &Instance {
                        provider_id: id.to_owned(),
                        node_name: node,
                    },
                )
                .await;
        }
        let class = self.cloud.class(machine).await?;
        let instance = match (self.cloud.status(machine, &class).await?, provider_id(machine)) {
            (Some(instance), _) => instance,
            // The Machine already had an instance. A new instance would be a different machine (R7-03).
            (None, Some(id)) => {
                return Err(Error::config(
                    ErrorCode::ErrInfraDependencies,
                    format!(
                        "the cloud does not know the instance {id}, and a machine is not made twice: if it is really \
                         gone, delete the Machine; if not, correct the credentials of MachineClass {}",
                        class.name_any()
                    ),
                ));
            }
            (None, None) if is_isolated(&machine.spec) => {
                return Err(self.refuse_in_isolated_zone(machine).await?);
            }
            (None, None) => self.create(machine, &class, configuration).await?,
        };
        self.record_new_instance(machine, &instance).await
    }

    /// A change of the Machine's template starts the next attempt, so that the requeue is only a safeguard.
    async fn refuse_in_isolated_zone(&self, machine: &Machine) -> Result<Error> {
        let why = "no instance is created, because the zone of the Machine is isolated";
        let phase = Phase::from_status(machine).unwrap_or(Phase::Pending);
        let report = MachineReport::new(phase, Operation::Create, State::Processing, why);
        self.write_report(machine, &report).await?;
        Ok(Error::not_ready(RETRY_IN_ISOLATED_ZONE, why))
    }

    async fn create(
        &self,
        machine: &Arc<Machine>,
        class: &Arc<MachineClass>,
        configuration: &MachineConfiguration,
    ) -> Result<Instance> {
        let mut user_data = self.cloud.user_data(class).await?;
        if user_data.contains(TOKEN_PLACEHOLDER) {
            let token = self.tokens.ensure(machine, configuration.creation).await?;
            user_data = user_data.replace(TOKEN_PLACEHOLDER, &token);
        }
        let user_data = user_data.replace(NAME_PLACEHOLDER, &machine.name_any());
        let creating = MachineReport::new(
            Phase::Pending,
            Operation::Create,
            State::Processing,
            "its instance is made",
        );
        // The phase keeps the former value while the cloud refuses, to avoid flapping.
        if Phase::from_status(machine).is_none() {
            self.write_report(machine, &creating).await?;
        }
        let instance = self.cloud.create(machine, class, user_data).await?;
        info!(
            machine = machine.name_any(),
            id = instance.provider_id,
            "an instance was made"
        );
        Ok(instance)
    }

    /// Records the instance in the Machine, so that no second instance is made for the Machine.
    pub(super) async fn record_instance(&self, machine: &Machine, instance: &Instance) -> Result<Machine> {
        let name = machine.name_any();
        let body = json!({
            "metadata": {"labels": {NODE: instance.node_name}, "uid": machine.uid()},
            "spec": {"providerID": instance.provider_id},
        });
        let written: Machine = self.manager.merge(&self.machines_api(), &name, &body).await?;
        if node_name(&written) != Some(&instance.node_name) {
            return Err(Error::bug(format!("the label of Machine {name} was not written")));
        }
        Ok(written)
    }

    /// Records the instance, and reports a new instance.
    async fn record_new_instance(&self, machine: &Machine, instance: &Instance) -> Result<()> {
        let written = self.record_instance(machine, instance).await?;
        // An instance that existed before is not new, and has the health of the Node.
        if provider_id(machine).is_some() {
            return Ok(());
        }
        let joining = format!(
            "the instance {} is there; its Node is awaited",
            instance.provider_id
        );
        let report = MachineReport::new(Phase::Pending, Operation::Create, State::Processing, joining);
        self.write_report(&written, &report).await
    }

    /// The name of the Node that has this provider id.
    pub(super) fn find_node_name(&self, id: &str) -> Result<Option<String>> {
        let nodes = self.nodes.all()?;
        let found = nodes
            .iter()
            .find(|node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) == Some(id));
        Ok(found.map(|node| node.name_any()))
    }

    /// Writes the report, if the report is new.
    pub(super) async fn write_report(&self, machine: &Machine, report: &MachineReport) -> Result<()> {
        write(self.manager, &self.machines_api(), machine, Some(report), None)
            .await
            .context("the status is not up to date")
    }

    pub(super) fn machines_api(&self) -> Api<Machine> {
        use runtime::client::Cluster as _;
        self.seed.namespaced(&self.namespace)
    }
}
