//! Workers through the contract, with a fake manager of machines: the generic actuator releases and restores
//! machines, without code of the provider (RX-43).

use anyhow::Result;
use api::extensions::Worker;
use extension::{
    Context, ExtensionReconciler,
    reconciler::namespaced,
    worker::{Class, Machines, Manager, WorkerActuator},
};
use extension_contract::Contract;
use extension_contract::machines::FakeMachines;
pub use extension_contract::machines::MANAGER;
use futures::FutureExt;
use kube::Client;
use runtime::workload::Health;
use serde_json::json;

use crate::world::{Seeds, object, proven, reconciler, set_secret, text};

const NAMESPACE: &str = "shoot--toy--machines";

/// A provider of machines.
pub struct ToyMachines;

impl Machines for ToyMachines {
    fn class(
        &self,
        _: &Context<Worker>,
        pool: &api::extensions::WorkerPool,
        zone: &str,
    ) -> runtime::Result<Class> {
        Ok(Class {
            provider: "toy".into(),
            provider_spec: json!({"type": pool.machine_type, "zone": zone}).into(),
            rolls_with: Vec::new(),
            ..Class::default()
        })
    }

    fn zone_of(&self, _: &Context<Worker>, id: &str) -> runtime::Result<String> {
        let zone = id.strip_prefix("id-").map(str::to_owned);
        zone.ok_or_else(|| {
            let code = api::meta::ErrorCode::ErrConfigurationProblem;
            runtime::Error::config(code, format!("no zone has the ID {id:?}"))
        })
    }

    fn manager(&self, _: &Context<Worker>) -> runtime::Result<Manager> {
        Ok(Manager {
            image: "toy".into(),
            program: "/toy".into(),
            args: Vec::new(),
            health: Health {
                scheme: "HTTP",
                port: 8080,
                readiness: "/readyz",
                liveness: "/healthz",
            },
            secrets: vec![MANAGER],
            environment: Vec::new(),
            asks_whose_the_shoot_is: false,
        })
    }
}

pub async fn keep_it(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let machines = &FakeMachines::new(NAMESPACE);
    for seed in [&seeds.a, &seeds.b] {
        set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
        set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    }
    let _managers = [&seeds.a, &seeds.b].map(|seed| machines.managed_by(seed));
    let wanted: Worker = object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": 3,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))?;
    let make = |seed: &Client| -> ExtensionReconciler<Worker, _> {
        reconciler(seed, namespaced, WorkerActuator(ToyMachines))
    };
    let contract = Contract::new(|| make(&seeds.a), || make(&seeds.b), [wanted.clone(), wanted])
        .outside(Box::new(|| async { Ok(machines.list_instances()) }.boxed()))
        .inside_source(Box::new(|| {
            async { machines.manager_in(&seeds.a).await.map_err(text) }.boxed()
        }))
        .inside_destination(Box::new(|| {
            async { machines.manager_in(&seeds.b).await.map_err(text) }.boxed()
        }))
        .carried_apart(Box::new(|| {
            async { machines.collect_and_forget(&seeds.a, 3).await.map_err(text) }.boxed()
        }));
    proven(contract.prove().await)
}
