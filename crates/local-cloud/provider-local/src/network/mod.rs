//! Network: the agent `network-local` on each machine of the shoot, deployed by the resource-manager. There
//! is no outside resource and no state, so restore is a plain reconcile (RX-32).
//!
//! A ready Network promises that the agent's objects are applied in the shoot, not that the agent runs. There
//! may be no machine yet, and machines wait for the agent. For a hibernated shoot, a ready Network only
//! promises that the objects are wanted, because the API does not answer. A migrated Network is gone from the
//! seed, and the agent continues in the shoot (RX-02, RX-23).

mod objects;

use std::time::Duration;

use api::{extensions::Network, gardencore::shoot::IPFamily, meta::ErrorCode};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome, Released, forced};
use ipnet::Ipv4Net;
use runtime::{
    Error, Result,
    workload::manifests::{self, Manifests},
};
use serde::Deserialize;
use serde_json::json;

use crate::unread;
use objects::{Api, objects};

/// Name of the ManagedResource.
pub const MANAGED_RESOURCE: &str = "extension-network-local";
/// Time in which an operation waits for the resource-manager. Much shorter than a gardenlet's timeout for a
/// Network, because a waiting operation occupies a worker of the controller. After the timeout, the object
/// reports the awaited event.
const DONE_WITHIN: Duration = Duration::from_secs(17);

/// Reconciles Networks.
pub struct NetworkActuator {
    /// Image of the agent, with tag.
    pub image: String,
}

#[async_trait]
impl Actuator<Network> for NetworkActuator {
    const NAME: &'static str = "network";

    async fn reconcile(&self, context: &Context<Network>) -> Result<Outcome> {
        let namespace = context.namespace()?;
        let (pods, api) = (pods(&context.object)?, api_of(context)?);
        let manifests = Manifests::new(MANAGED_RESOURCE, &objects(&self.image, pods, &api));
        manifests
            .deploy(context.manager, &context.seed, &namespace)
            .await?;
        if !context.is_hibernated() {
            manifests.applied(&context.seed, &namespace, DONE_WITHIN).await?;
        }
        Ok(Outcome::none().with("ipFamilies", json!([IPFamily::IPv4])))
    }

    async fn restore(&self, context: &Context<Network>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<Network>) -> Result<Outcome> {
        remove(context, true).await.map(|()| Outcome::none())
    }

    async fn delete(&self, context: &Context<Network>) -> Result<()> {
        remove(context, false).await
    }

    /// A shoot that does not answer is about to be deleted with all content: the objects in the shoot are
    /// left.
    async fn force_delete(&self, context: &Context<Network>) -> Result<Released> {
        let what = format!(
            "ManagedResource {MANAGED_RESOURCE} in namespace {}",
            context.namespace()?
        );
        let released = forced::attempt(&what, || remove(context, false)).await?;
        if released.left_behind.is_empty() {
            return Ok(released);
        }
        forced::attempt(&what, || remove(context, true)).await
    }
}

async fn remove(context: &Context<Network>, keep: bool) -> Result<()> {
    let namespace = context.namespace()?;
    let (manager, seed) = (context.manager, &context.seed);
    manifests::remove(manager, seed, &namespace, MANAGED_RESOURCE, keep, DONE_WITHIN).await
}

/// The range of pods, if the agent supports all settings of the Network.
fn pods(object: &Network) -> Result<Ipv4Net> {
    let wrong = |what: String| Error::config(ErrorCode::ErrConfigurationProblem, what);
    if object.spec.ip_families.contains(&IPFamily::IPv6) {
        return Err(wrong(
            "spec.ipFamilies names IPv6, which the network plugin `local` does not serve: take it out"
                .to_owned(),
        ));
    }
    let config = object.spec.default.provider_config.as_ref();
    unread::refuse("spec.networking.providerConfig of the Shoot", config)?;
    object.spec.pod_cidr.parse::<Ipv4Net>().map_err(|_| {
        wrong(format!(
            "spec.podCIDR {:?} is no range of IPv4 addresses such as 100.96.0.0/11: the network plugin `local` serves no other",
            object.spec.pod_cidr
        ))
    })
}

/// The required fields of the Shoot in the Cluster.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Shoot {
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    advertised_addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    name: String,
    url: String,
}

/// The address of the API for processes in the shoot: the name for machines, or else the name for users.
fn api_of(context: &Context<Network>) -> Result<Api> {
    let shoot: Shoot = context
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.spec.shoot.decode().ok())
        .unwrap_or_default();
    let of = |name: &str| {
        let all = &shoot.status.advertised_addresses;
        all.iter().find(|address| address.name == name)?.url.parse().ok()
    };
    of("internal").or_else(|| of("external")).ok_or_else(|| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            "status.advertisedAddresses of the Shoot in the Cluster names no address of the API: add spec.dns.internal to the \
             Seed, or spec.dns.domain to the Shoot",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn network(range: &str, families: &[&str]) -> Network {
        serde_json::from_value(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Network", "metadata": {"name": "n"},
            "spec": {"type": "local", "podCIDR": range, "serviceCIDR": "100.64.0.0/13", "ipFamilies": families},
        }))
        .unwrap()
    }

    #[test]
    fn a_network_is_of_version_4() {
        let range = pods(&network("100.96.0.0/11", &["IPv4"])).unwrap();
        assert_eq!(range.to_string(), "100.96.0.0/11");
        for (range, families) in [
            ("fd00::/48", &[][..]),
            ("", &[]),
            ("100.96.0.0/11", &["IPv4", "IPv6"]),
        ] {
            let refused = pods(&network(range, families)).unwrap_err();
            assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem], "{range:?}");
        }
    }

    #[test]
    fn settings_of_another_plugin_are_refused() {
        let mut network = network("100.96.0.0/11", &[]);
        network.spec.default.provider_config = Some(json!({"overlay": {"enabled": false}}).into());
        let refused = pods(&network).unwrap_err();
        assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(
            refused.to_string().contains("spec.networking.providerConfig"),
            "{refused}"
        );
    }
}
