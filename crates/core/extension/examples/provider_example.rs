//! A provider for a cloud that is a folder: a network is a file in the folder. Four functions make a provider
//! that supports moves; docs/understand/adding-an-actuator.md explains the functions. The provider passes the
//! contract test (tests/contract/example.rs).

use std::{path::PathBuf, process::ExitCode};

use api::{
    extensions::{ExtensionClass, Infrastructure},
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use extension::{
    Actuator, Context, Outcome, OwnerChecks, controller, heartbeat,
    reconciler::{Provider, namespaced},
};
use runtime::{
    Error, Result,
    client::{Cluster, Connection, Permit, Seed, apply::FieldManager},
    controller::{Events, runner::Settings},
    process::Process,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::fs;

/// The field manager of writes into the seed: the provider's name.
pub const MANAGER: FieldManager = FieldManager("provider-example");

/// The common settings of the provider's objects.
#[must_use]
pub fn provider(seed: &Seed, owners: &OwnerChecks) -> Provider {
    Provider {
        seed: seed.clone(),
        manager: MANAGER,
        type_: "example",
        classes: &[ExtensionClass::Shoot],
        owners: owners.clone(),
    }
}

/// `status.state`: the data with which the destination seed finds the network.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    network_id: String,
}

/// Reconciles Infrastructures: each Infrastructure is a network.
pub struct InfrastructureActuator;

#[async_trait]
impl Actuator<Infrastructure> for InfrastructureActuator {
    const NAME: &'static str = "infrastructure";

    async fn reconcile(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        let network_id = network_of(context)?;
        Cloud::open(context).await?.make(&network_id).await?;
        outcome(&network_id)
    }

    async fn restore(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        let Some(State { network_id }) = context.state()? else {
            return self.reconcile(context).await;
        };
        if !Cloud::open(context).await?.has(&network_id).await? {
            return Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "the network {network_id} is not there: machines depend on it, so it is not made anew; bring it back"
                ),
            ));
        }
        outcome(&network_id)
    }

    async fn migrate(&self, _: &Context<Infrastructure>) -> Result<Outcome> {
        // Nothing was put into the seed, and what is outside stays. The state of the last reconcile is kept.
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<Infrastructure>) -> Result<()> {
        // Also without state: it may have been made by an attempt that could not write it.
        Cloud::open(context).await?.remove(&network_of(context)?).await
    }
}

/// The network of this shoot: the network named in the state, or else a name that is equal in each attempt.
/// So a second attempt finds the network of the first attempt.
fn network_of(context: &Context<Infrastructure>) -> Result<String> {
    match context.state::<State>()? {
        Some(state) => Ok(state.network_id),
        None => Ok(format!("network-{}", context.namespace()?)),
    }
}

fn outcome(network_id: &str) -> Result<Outcome> {
    let state = State {
        network_id: network_id.to_owned(),
    };
    let state = RawExtension::encode(&state).map_err(|e| Error::bug(e.to_string()))?;
    Ok(Outcome {
        state: Some(state.clone()),
        provider_status: Some(state),
        ..Outcome::none()
    }
    .with("nodesCIDR", json!("10.250.0.0/16")))
}

/// The cloud: a folder that the credentials name.
struct Cloud {
    folder: PathBuf,
}

impl Cloud {
    async fn open(context: &Context<Infrastructure>) -> Result<Self> {
        let credentials = context.credentials().await?;
        Ok(Self {
            folder: PathBuf::from(credentials.text("folder")?),
        })
    }

    async fn make(&self, name: &str) -> Result<()> {
        if self.has(name).await? {
            return Ok(());
        }
        let made = fs::write(self.folder.join(name), "").await;
        made.map_err(|error| self.refused(&error))
    }

    async fn has(&self, name: &str) -> Result<bool> {
        // A cloud that does not answer has not reported an absent network.
        fs::metadata(&self.folder)
            .await
            .map_err(|error| self.refused(&error))?;
        let there = fs::try_exists(self.folder.join(name)).await;
        there.map_err(|error| self.refused(&error))
    }

    async fn remove(&self, name: &str) -> Result<()> {
        if !self.has(name).await? {
            return Ok(());
        }
        let removed = fs::remove_file(self.folder.join(name)).await;
        removed.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &std::io::Error) -> Error {
        Error::config(
            ErrorCode::ErrInfraUnauthenticated,
            format!(
                "the folder {} cannot be used: {error}; correct the Secret",
                self.folder.display()
            ),
        )
    }
}

fn main() -> ExitCode {
    runtime::process::run(async {
        let connection = Connection::inferred().await?;
        // One replica and no lock: a Deployment with the strategy Recreate.
        let permit = Permit::sole("it runs once");
        let seed = Seed::new(connection, &permit);
        let mut process = Process::new(MANAGER.0);
        let (namespace, identity) = ("extension-provider-example".to_owned(), MANAGER.0.to_owned());
        process.part(
            "heartbeat",
            heartbeat::run(seed.clone(), MANAGER, namespace, identity),
        );
        let settings = Settings {
            concurrency: 5,
            shutdown: process.shutdown.clone(),
            events: Events::new(seed.client().clone(), MANAGER.0),
            metrics: process.metrics.clone(),
            permit,
        };
        let ours = provider(&seed, &OwnerChecks::new(&process.metrics));
        let infrastructure = controller::run(ours, namespaced, InfrastructureActuator, settings);
        process.part("infrastructure", infrastructure);
        process.run().await.map_err(|error| error.to_string())
    })
}
