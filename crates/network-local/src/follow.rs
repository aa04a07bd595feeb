//! Follows the Nodes of the shoot.

use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::watch;
use tracing::warn;

use crate::fleet::{Fleet, Machines};

/// The machines that are known; none before the first list.
pub type Known = Option<Arc<Machines>>;

/// Follows the Nodes, for ever. Where they cannot be listed or watched, nothing is told: what is known stays (I4).
pub async fn follow(nodes: Api<Node>, known: watch::Sender<Known>) {
    let mut fleet = Fleet::default();
    let mut away = false;
    // The list is read with quorum (the default): an API server that is behind must not make a Node disappear.
    let events = watcher(nodes, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                away = false;
                if let Some(machines) = fleet.take(event) {
                    known.send_replace(Some(Arc::new(machines.clone())));
                }
            }
            // Once, not at each try: a move takes a while.
            Err(error) if !away => {
                away = true;
                warn!(%error, "the Nodes cannot be read; the network stays as it is");
            }
            Err(_) => {}
        }
    }
}
