//! node-ipam-controller: gives each Node a range of pod addresses, once, out of the cluster's range.
//!
//! The controller may take over from the node IPAM of a kube-controller-manager and hand back: only the
//! ranges in the Nodes count. The ranges of all Nodes are recorded ([`book`]) before the first range is
//! assigned. A Node with a range keeps the range. A range is free again when the Node is gone. Without a free
//! range, the Node gets the Event CIDRNotAvailable, as from Kubernetes, and a range as soon as a range is
//! free.

pub mod book;
#[cfg(test)]
mod book_tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{Future, TryStreamExt};
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use runtime::{
    Error, Result,
    client::{Cluster, Shoot},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use serde_json::json;
use tracing::info;

use crate::nodes;
use book::{Answer, Book, has_range};

/// Requeue interval for a Node without a range. Longer than a request takes, shorter than a person waits.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The controller.
pub struct NodeIpam {
    shoot: Shoot,
    book: Arc<Mutex<Book>>,
    events: Events,
}

impl NodeIpam {
    /// For the Nodes of this shoot. The book must be new: the book has to be filled under the lock of this
    /// controller.
    #[must_use]
    pub fn new(shoot: Shoot, book: Book, events: Events) -> Self {
        Self {
            shoot,
            book: Arc::new(Mutex::new(book)),
            events,
        }
    }

    /// Runs until shutdown.
    pub fn run(self, settings: Settings) -> impl Future<Output = ()> + Send {
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let book = Arc::clone(&self.book);
        // The first list is read with quorum (the default), and thus contains every write of the former lock
        // holder.
        let events = watcher(nodes.clone(), watcher::Config::default())
            .default_backoff()
            .modify(|node| node.managed_fields_mut().clear())
            // Before the cache, so that the controller never queries the book about a Node that the book has
            // not seen.
            .inspect_ok(move |event| locked(&book).take(event));
        let controller = runner::controller_of_events(events, fingerprint);
        runner::run(controller, move |_| nodes.clone(), Arc::new(self), settings)
    }

    async fn assign(&self, node: &Node, range: Ipv4Net) -> Result<Next> {
        let name = node.name_any();
        // Without the resourceVersion: the API server refuses a change of existing ranges, and a Node's
        // status is written often while the kubelet starts.
        let body = json!({
            "metadata": {"uid": node.uid()},
            "spec": {"podCIDR": range.to_string(), "podCIDRs": [range.to_string()]},
        });
        let written = nodes::patch(&self.shoot.cluster_wide(), &name, body).await;
        match written {
            Ok(_) => {
                info!(node = name, %range, "the node has its range of pod addresses");
                Ok(Next::Change)
            }
            // The Node is gone, was replaced, or got a range from a different writer: the watch reports the
            // case.
            Err(kube::Error::Api(status))
                if status.is_not_found() || status.is_conflict() || status.is_invalid() =>
            {
                locked(&self.book).give_back(node);
                let why = format!("Node {name} does not take the range {range}: {}", status.message);
                Err(Error::not_ready(ASK_AGAIN, why))
            }
            // The write may have succeeded regardless: the range stays reserved for this Node, and the write
            // is retried.
            Err(error) => {
                let message = format!("Node {name} could not be given the range {range}");
                self.events.warning(node, "CIDRAssignmentFailed", &message).await;
                Err(error).context(message)
            }
        }
    }

    async fn check(&self, node: &Node) {
        let sharers = locked(&self.book).sharers(node).join(", ");
        if !sharers.is_empty() {
            let message =
                format!("Pod addresses of this Node are also those of {sharers}: replace one of them");
            self.events.warning(node, "CIDRConflict", &message).await;
        }
    }
}

impl Reconciler<Node> for NodeIpam {
    const NAME: &'static str = "node-ipam-controller";

    async fn apply(&self, node: Arc<Node>) -> Result<Next> {
        if has_range(&node) {
            self.check(&node).await;
            return Ok(Next::Change);
        }
        let answer = locked(&self.book).reserve(&node);
        match answer {
            Answer::Range(range) => self.assign(&node, range).await,
            Answer::NotReady => Err(Error::not_ready(ASK_AGAIN, "not all Nodes have been seen yet")),
            Answer::NoneLeft => {
                let message =
                    "The cluster's range of pod addresses is used up: remove Nodes that are not needed";
                self.events
                    .warning(node.as_ref(), "CIDRNotAvailable", message)
                    .await;
                Err(Error::not_ready(ASK_AGAIN, message))
            }
        }
    }

    async fn cleanup(&self, _: Arc<Node>) -> Result<Next> {
        // The range is free only after the Node is gone: the Node's pods may still run.
        Ok(Next::Change)
    }
}

fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The input of the decision.
fn fingerprint(node: &Node) -> Option<u64> {
    let deleted = node.metadata.deletion_timestamp.is_some();
    runner::fingerprint((nodes::uid(node), deleted, has_range(node)))
}
