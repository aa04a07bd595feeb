//! Infrastructure: a shoot's node network in the cloud, and the list of the instances in the network.
//!
//! State (RX-30) is the network's id and range. A restore finds exactly this network and never creates a new
//! network, because machines are in the network (I4, I9). Migrate has no object to clean in the seed and
//! touches nothing in the cloud.

mod config;

use std::collections::BTreeSet;

use api::{
    extensions::Infrastructure,
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use cloud_local::{Network, Networks, Request, instances, range};
use extension::{Actuator, Context, Outcome, Released, forced};
use ipnet::Ipv4Net;
use runtime::{Error, Result};
use serde_json::Value;
use tracing::warn;

pub use config::{InfrastructureConfig, InfrastructureStatus, State, Zone};

use crate::{API_VERSION, account};

/// Reconciles Infrastructures.
pub struct InfrastructureActuator;

#[async_trait]
impl Actuator<Infrastructure> for InfrastructureActuator {
    const NAME: &'static str = "infrastructure";

    async fn reconcile(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        let networks = open(context).await?;
        let name = context.namespace()?;
        let request = request(context)?;
        let network = match networks.find(&name).await? {
            Some(network) => match &request.before {
                Some(before) if *before != network => {
                    return Err(lost(&name, before, Some(&network), networks.account()));
                }
                _ => network,
            },
            None => networks.make(&name, &request).await?,
        };
        if let Some(fixed) = request.fixed.filter(|fixed| *fixed != network.range) {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "the node network is {} and cannot become {fixed}: machines live in it; set networks.workers of the \
                     infrastructure's configuration back",
                    network.range
                ),
            ));
        }
        outcome(context, &network)
    }

    async fn restore(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        let name = context.namespace()?;
        let state: State = context.state()?.ok_or_else(|| {
            Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "no state was carried for the infrastructure of {name}, so its network cannot be told from another's; \
                     put the ShootState's entry of kind Infrastructure back"
                ),
            )
        })?;
        let networks = open(context).await?;
        let before = Network {
            range: range::parse(&state.nodes_cidr, "nodesCIDR of the state")?,
            id: state.network_id,
        };
        match networks.find(&name).await? {
            Some(network) if network == before => outcome(context, &network),
            found => Err(lost(&name, &before, found.as_ref(), networks.account())),
        }
    }

    async fn migrate(&self, _: &Context<Infrastructure>) -> Result<Outcome> {
        // All resources are outside, and the state of the last reconciliation is complete (RX-11).
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<Infrastructure>) -> Result<()> {
        let networks = open(context).await?;
        let name = context.namespace()?;
        let ours = context.state::<State>()?;
        match (networks.find(&name).await?, ours) {
            (Some(network), Some(ours)) if network.id != ours.network_id => {
                warn!(
                    network = network.id,
                    ours = ours.network_id,
                    "the network is not ours any more and is left alone"
                );
                Ok(())
            }
            _ => networks.remove(&name).await,
        }
    }

    async fn force_delete(&self, context: &Context<Infrastructure>) -> Result<Released> {
        // A state that cannot be read must not block a forced deletion.
        let what = match context.state::<State>() {
            Ok(Some(state)) => format!("network {} with range {} of", state.network_id, state.nodes_cidr),
            _ => "the network of".into(),
        };
        let name = context.namespace()?;
        let what = format!("{what} {name}, with the list {},", instances(&name));
        forced::attempt(&what, || self.delete(context)).await
    }
}

async fn open(context: &Context<Infrastructure>) -> Result<Networks> {
    Ok(Networks::new(account::open(context).await?))
}

/// The requested network: by the provider's configuration, then by the shoot, then by the choice of an
/// earlier reconciliation.
fn request(context: &Context<Infrastructure>) -> Result<Request> {
    let config: InfrastructureConfig = context.provider_config()?;
    let shoot = |field: &str| -> Result<Option<Ipv4Net>> {
        context
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.spec.shoot.0.pointer(field)?.as_str())
            .map(|text| range::parse(text, &format!("{field} of the Shoot")))
            .transpose()
    };
    let fixed = match &config.networks.workers {
        Some(workers) => Some(range::parse(
            workers,
            "networks.workers of the infrastructure's configuration",
        )?),
        None => shoot("/spec/networking/nodes")?,
    };
    let before = match context.state::<State>()? {
        Some(state) => Some(Network {
            range: range::parse(&state.nodes_cidr, "nodesCIDR of the state")?,
            id: state.network_id,
        }),
        None => None,
    };
    let mut taken = Vec::new();
    for field in ["/spec/networking/pods", "/spec/networking/services"] {
        taken.extend(shoot(field)?);
    }
    Ok(Request {
        pool: range::parse(&config.pool, "pool of the infrastructure's configuration")?,
        fixed,
        before,
        taken,
    })
}

/// The zones of the shoot's worker pools. A gardenlet uses the list to map an ID of `isolated-zone` to a
/// zone.
fn zones(context: &Context<Infrastructure>) -> Vec<Zone> {
    let shoot = context.cluster.as_ref().map(|cluster| &cluster.spec.shoot.0);
    let pools = shoot.and_then(|shoot| shoot.pointer("/spec/provider/workers")?.as_array());
    let zones = pools
        .into_iter()
        .flatten()
        .filter_map(|pool| pool.get("zones")?.as_array());
    let names: BTreeSet<_> = zones.flatten().filter_map(Value::as_str).collect();
    names.into_iter().map(Zone::named).collect()
}

/// A network that machines live in is not there, or not the same any more.
fn lost(name: &str, before: &Network, found: Option<&Network>, account: &str) -> Error {
    let what = found.map_or_else(
        || "does not exist".into(),
        |other| format!("was replaced by {} ({})", other.id, other.range),
    );
    Error::config(
        ErrorCode::ErrInfraDependencies,
        format!(
            "the network {} with range {} of {name} {what} in account {account}; another one is never made in its place, \
             because machines live in it: put ConfigMap {name} back",
            before.id, before.range,
        ),
    )
}

fn outcome(context: &Context<Infrastructure>, network: &Network) -> Result<Outcome> {
    let encode = |value: std::result::Result<RawExtension, serde_json::Error>| {
        value.map_err(|e| Error::bug("the infrastructure's status does not serialise").caused_by(e))
    };
    let range = network.range.to_string();
    let status = InfrastructureStatus {
        api_version: API_VERSION.into(),
        kind: "InfrastructureStatus".into(),
        network_id: network.id.clone(),
        zones: zones(context),
    };
    let state = State {
        network_id: network.id.clone(),
        nodes_cidr: range.clone(),
    };
    Ok(Outcome {
        state: Some(encode(RawExtension::encode(&state))?),
        provider_status: Some(encode(RawExtension::encode(&status))?),
        ..Outcome::none()
    }
    .with("nodesCIDR", range.clone())
    .with("networking", serde_json::json!({"nodes": [range]})))
}
