//! A provider of further extensions, installed by hand in both seeds: a type for each possible lifecycle
//! time. The outside things are in the memory of the test, shared by both seeds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::extensions::{Extension, ExtensionClass};
use api::meta::RawExtension;
use async_trait::async_trait;
use extension::reconciler::{Provider, namespaced};
use extension::{Actuator, Context, Outcome, OwnerChecks, Released, controller};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use runtime::client::apply::FieldManager;
use runtime::{
    Error, Result,
    client::{Cluster, Permit, Seed},
    controller::{Events, runner},
    process::Process,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::foreign;
use crate::subject::transient;

/// Types, each with the times of reconcile, migrate and delete.
const TYPES: [(&str, [&str; 3]); 4] = [
    (
        foreign::TYPE,
        ["AfterKubeAPIServer", "BeforeKubeAPIServer", "BeforeKubeAPIServer"],
    ),
    ("early", ["BeforeKubeAPIServer"; 3]),
    ("late", ["AfterKubeAPIServer"; 3]),
    (
        "last",
        ["AfterWorker", "BeforeKubeAPIServer", "BeforeKubeAPIServer"],
    ),
];

/// The outside things of shoots: by namespace and type, a unique number.
#[derive(Clone, Default)]
pub struct Outside(Arc<Mutex<Things>>);

/// The last number that was given, and the number of each thing that is there.
type Things = (u32, BTreeMap<(String, String), u32>);

impl Outside {
    /// The things of this shoot.
    pub fn list(&self, namespace: &str) -> BTreeMap<String, u32> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = inner.1.iter().filter(|((of, _), _)| of == namespace);
        own.map(|((_, type_), number)| (type_.clone(), *number)).collect()
    }

    fn make(&self, key: (String, String)) -> u32 {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = inner.0 + 1;
        let number = *inner.1.entry(key).or_insert(fresh);
        inner.0 = fresh.max(number);
        number
    }

    fn get(&self, key: &(String, String)) -> Option<u32> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .get(key)
            .copied()
    }

    fn remove(&self, key: &(String, String)) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .remove(key);
    }
}

/// `status.state`.
#[derive(Serialize, Deserialize)]
struct State {
    number: u32,
    /// The number of migrations: only migrate writes this number.
    left: u32,
}

/// Further kinds that provider-local serves in these seeds.
const OF_PROVIDER: [&str; 9] = [
    "BackupBucket",
    "BackupEntry",
    "ControlPlane",
    "DNSRecord",
    "Infrastructure",
    "Network",
    "OperatingSystemConfig",
    "SubnetIsolation",
    "Worker",
];

/// The ControllerRegistration in the garden, without a deployment because of the installation by hand. If a
/// single provider is registered, all must be registered, or no seed would count as serving the shoot's
/// kinds.
pub fn registration() -> Value {
    let extensions = TYPES.map(|(type_, [reconcile, migrate, delete])| {
        json!({"kind": "Extension", "type": type_, "workerlessSupported": true,
            "lifecycle": {"reconcile": reconcile, "migrate": migrate, "delete": delete}})
    });
    let others = OF_PROVIDER.map(|kind| json!({"kind": kind, "type": "local"}));
    let resources = [&extensions[..], &others[..]].concat();
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": {"name": "guest"},
        "spec": {"resources": resources},
    })
}

/// The extensions in the Shoot's spec.
pub fn wanted() -> Value {
    json!(TYPES.map(|(type_, _)| json!({"type": type_})))
}

/// How many each Shoot has.
pub const PER_SHOOT: usize = TYPES.len();

/// The number of an object's migrations, from the state.
pub fn left(object: &Extension) -> Option<u32> {
    let state = object.status.as_ref()?.state.as_ref()?;
    serde_json::from_value(state.0.clone())
        .ok()
        .map(|state: State| state.left)
}

/// Runs the provider in a seed.
pub fn join(process: &mut Process, seed: &Client, outside: &Outside) {
    for (type_, _) in TYPES {
        let permit = Permit::sole("the drill has no other process");
        let provider = Provider {
            seed: Seed::new(seed.clone(), &permit),
            manager: FieldManager("guest"),
            type_,
            classes: &[ExtensionClass::Shoot],
            owners: OwnerChecks::default(),
        };
        let settings = runner::Settings {
            concurrency: 20,
            shutdown: process.shutdown.clone(),
            permit,
            metrics: process.metrics.clone(),
            events: Events::new(seed.clone(), "guest"),
        };
        let guest = Guest(outside.clone());
        process.part(type_, controller::run(provider, namespaced, guest, settings));
    }
}

struct Guest(Outside);

#[async_trait]
impl Actuator<Extension> for Guest {
    const NAME: &'static str = "guest";

    async fn reconcile(&self, context: &Context<Extension>) -> Result<Outcome> {
        let Some(state) = context.state::<State>()? else {
            let number = self.0.make(key(context)?);
            plant(context, number).await?;
            return outcome(number, 0);
        };
        self.keep(context, &state)?;
        plant(context, state.number).await?;
        outcome(state.number, state.left)
    }

    async fn restore(&self, context: &Context<Extension>) -> Result<Outcome> {
        let Some(state) = context.state::<State>()? else {
            // An extension that was never completed in the source has no state, and may have an outside
            // thing.
            return self.reconcile(context).await;
        };
        self.keep(context, &state)?;
        if context.name() == foreign::TYPE {
            let (seed, namespace) = (context.seed.client(), context.namespace()?);
            foreign::check_carried(seed, &namespace, state.number)
                .await
                .map_err(|error| Error::bug(format!("{error:#}")))?;
        }
        plant(context, state.number).await?;
        outcome(state.number, state.left)
    }

    async fn migrate(&self, context: &Context<Extension>) -> Result<Outcome> {
        check_order(context).await?;
        let Some(state) = context.state::<State>()? else {
            return Ok(Outcome::none());
        };
        outcome(state.number, state.left + 1)
    }

    async fn delete(&self, context: &Context<Extension>) -> Result<()> {
        check_order(context).await?;
        if context.name() == foreign::TYPE {
            let (seed, namespace) = (context.seed.client(), context.namespace()?);
            foreign::withdraw(seed, &namespace).await.map_err(transient)?;
        }
        self.0.remove(&key(context)?);
        Ok(())
    }

    async fn force_delete(&self, context: &Context<Extension>) -> Result<Released> {
        self.0.remove(&key(context)?);
        Ok(Released::default())
    }
}

impl Guest {
    fn keep(&self, context: &Context<Extension>, state: &State) -> Result<()> {
        let found = self.0.get(&key(context)?);
        if found == Some(state.number) {
            return Ok(());
        }
        Err(Error::bug(format!(
            "number {} of {} is to be kept, and outside is {found:?}",
            state.number,
            context.name()
        )))
    }
}

/// Writes the objects of the third-party provider into the shoot's namespace.
async fn plant(context: &Context<Extension>, number: u32) -> Result<()> {
    if context.name() != foreign::TYPE {
        return Ok(());
    }
    let (seed, namespace) = (context.seed.client(), context.namespace()?);
    foreign::plant(seed, &namespace, number, context.is_hibernated())
        .await
        .map_err(transient)
}

fn key(context: &Context<Extension>) -> Result<(String, String)> {
    Ok((context.namespace()?, context.name()))
}

fn outcome(number: u32, left: u32) -> Result<Outcome> {
    let state =
        RawExtension::encode(&State { number, left }).map_err(|error| Error::bug(error.to_string()))?;
    Ok(Outcome {
        state: Some(state),
        ..Outcome::none()
    })
}

/// The late extension is migrated and deleted only after the shoot's API has stopped.
async fn check_order(context: &Context<Extension>) -> Result<()> {
    let deployments = context.seed.namespaced::<Deployment>(&context.namespace()?);
    let api = deployments.get_opt("kube-apiserver").await?;
    let serves = api
        .and_then(|api| api.spec?.replicas)
        .is_some_and(|replicas| replicas > 0);
    if serves && context.name() == "late" {
        return Err(Error::bug(
            "the late extension is handled while the API is still there",
        ));
    }
    Ok(())
}
