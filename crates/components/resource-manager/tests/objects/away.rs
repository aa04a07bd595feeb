//! Unreachable shoots.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use api::meta::ConditionStatus;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, api::DeleteParams};
use resource_manager::names::KUBECONFIG_SECRET;
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::world::{World, condition, map};

/// The shoot's API does not answer: the condition reports that, and the ManagedResource can be deleted with
/// the namespace.
pub async fn a_shoot_that_is_away(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--away").await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    place.applied("core", None).await?;
    let nowhere = SocketAddr::from(([127, 0, 0, 1], testkit::free_port()?));
    place.give_way(&way_by(world, nowhere)?).await?;
    let told = "the API server of the shoot does not answer: ";
    let resource = place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    let healthy = condition(&resource, "ResourcesHealthy").unwrap();
    ensure!(
        healthy.status == ConditionStatus::Unknown && healthy.reason == "TargetUnavailable",
        "{healthy:?}"
    );
    place.delete("core").await?;
    let told = "It ends when that is over, when spec.keepObjects is true, or with its namespace.";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::Progressing, told)
        .await?;
    Api::<Namespace>::all(world.seed.clone())
        .delete(place.name, &DeleteParams::default())
        .await?;
    place.gone("core").await
}

/// The shoot's API is away for a moment, without a change meanwhile: the condition reports that, and then
/// that all objects are applied, as before.
pub async fn a_shoot_that_is_away_for_a_moment(world: &World) -> Result<()> {
    let road = Road::new(world).await?;
    let place = world.namespace("shoot--dev--moment").await?;
    place.give_way(&way_by(world, road.address)?).await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    place.applied("core", None).await?;
    let told = "All resources are healthy.";
    place
        .tells("core", "ResourcesHealthy", ConditionStatus::True, told)
        .await?;
    let road = road.close();
    let told = "the API server of the shoot does not answer: ";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    let road = road.open().await?;
    place.applied("core", None).await?;
    let told = "All resources are healthy.";
    place
        .tells("core", "ResourcesHealthy", ConditionStatus::True, told)
        .await?;
    place.delete("core").await?;
    place.gone("core").await?;
    drop(road);
    Ok(())
}

/// The kubeconfig Secret does not exist yet, or was deleted.
pub async fn a_shoot_without_a_way(world: &World) -> Result<()> {
    let place = world.namespace("shoot--dev--new").await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    let told = "there is no way into the shoot: the Secret resource-manager of this namespace is awaited";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(b"users: [s3cret").await?;
    let told =
        "there is no way into the shoot: key kubeconfig of the Secret resource-manager is no kubeconfig";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(world.way()).await?;
    place.applied("core", None).await?;
    place
        .in_seed::<Secret>()
        .delete(KUBECONFIG_SECRET, &DeleteParams::default())
        .await?;
    let told = "there is no way into the shoot: the Secret resource-manager of this namespace is awaited";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(world.way()).await?;
    place.applied("core", None).await?;
    Ok(())
}

/// The kubeconfig of the shoots, with the address of the API server replaced.
fn way_by(world: &World, address: SocketAddr) -> Result<Vec<u8>> {
    let mut way: Value = serde_json::from_slice(world.way())?;
    way["clusters"][0]["cluster"]["server"] = json!(format!("https://{address}"));
    Ok(serde_json::to_vec(&way)?)
}

/// A way to the API server of the shoots. A drop ends all connections; new connections are refused.
struct Road {
    address: SocketAddr,
    server: String,
    _connections: JoinSet<()>,
}

/// A closed [`Road`].
struct ClosedRoad {
    address: SocketAddr,
    server: String,
}

impl Road {
    async fn new(world: &World) -> Result<Self> {
        let way: Value = serde_json::from_slice(world.way())?;
        let server = way["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let closed = ClosedRoad {
            address: SocketAddr::from(([127, 0, 0, 1], testkit::free_port()?)),
            server: server.trim_start_matches("https://").to_owned(),
        };
        closed.open().await
    }

    fn close(self) -> ClosedRoad {
        ClosedRoad {
            address: self.address,
            server: self.server,
        }
    }
}

impl ClosedRoad {
    async fn open(self) -> Result<Road> {
        let listener = TcpListener::bind(self.address).await?;
        let server = self.server.clone();
        let mut all = JoinSet::new();
        all.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                connections.spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Ok(Road {
            address: self.address,
            server: self.server,
            _connections: all,
        })
    }
}
