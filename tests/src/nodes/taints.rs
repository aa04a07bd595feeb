//! Taints that evict pods from a node: a move must cause none.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::task::JoinSet;

/// Records the taints of nodes since the begin of the watch.
pub struct Taints {
    seen: Arc<Mutex<BTreeSet<String>>>,
    _watching: JoinSet<()>,
}

impl Taints {
    /// Starts the watch. The watch uses the shoot's name, and begins again when the API is back, so that the
    /// present taints are seen.
    #[must_use]
    pub fn watch(shoot: &Client) -> Self {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let mut watching = JoinSet::new();
        let (nodes, told) = (Api::<Node>::all(shoot.clone()), Arc::clone(&seen));
        watching.spawn(async move {
            watcher(nodes, watcher::Config::default())
                .default_backoff()
                .applied_objects()
                // An error does not end the watch: the API is away while the shoot moves.
                .for_each(|node| {
                    let mut all = told.lock().unwrap_or_else(PoisonError::into_inner);
                    all.extend(node.iter().flat_map(no_execute_taints));
                    futures::future::ready(())
                })
                .await;
        });
        Self {
            seen,
            _watching: watching,
        }
    }

    /// All recorded taints, with the present taints.
    pub async fn collect(&self, shoot: &Client) -> Result<Vec<String>> {
        let now = Api::<Node>::all(shoot.clone())
            .list(&kube::api::ListParams::default())
            .await?;
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(now.items.iter().flat_map(no_execute_taints));
        Ok(all.into_iter().collect())
    }
}

fn no_execute_taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    taints
        .filter(|taint| taint.effect == "NoExecute")
        .map(|taint| format!("{} {}", node.name_any(), taint.key))
        .collect()
}
