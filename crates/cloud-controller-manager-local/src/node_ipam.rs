//! node-ipam-controller: gives each Node its range of pod addresses, once, out of the cluster's.
//!
//! It may take over from the node IPAM of a kube-controller-manager and hand back to it: what counts is only
//! what stands in the Nodes. The ranges of all Nodes are taken down ([`book`]) before the first one is given
//! out. A Node that has a range keeps it. A range is free again when its Node is gone. When none is left the
//! Node is told by the Event CIDRNotAvailable, as by Kubernetes, and gets one as soon as one is given back.

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
    runtime::{Controller, PredicateConfig, WatchStreamExt, reflector, watcher},
};
use runtime::{
    Cluster, Error, Events, Next, Reconciler, Result, Shoot,
    error::Explain as _,
    runner::{self, Settings},
};
use serde_json::json;
use tracing::info;

use crate::nodes;
use book::{Answer, Book, has_range};

/// When a Node that got no range asks again. Longer than a request takes, shorter than a person waits.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The controller.
pub struct NodeIpam {
    shoot: Shoot,
    book: Arc<Mutex<Book>>,
    events: Events,
}

impl NodeIpam {
    /// For the Nodes of this shoot. The book must be new: it has to be filled under the lock that this
    /// controller runs under.
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
        let (reader, writer) = reflector::store();
        // The first list is read with quorum (the default), so it has every write of the holder before us.
        let changes = watcher(nodes.clone(), watcher::Config::default())
            .default_backoff()
            .modify(|node| node.managed_fields_mut().clear())
            // Before the cache, so that nobody asks the book about a Node that it has not seen.
            .inspect_ok(move |event| locked(&book).take(event))
            .reflect(writer)
            .touched_objects()
            .predicate_filter(fingerprint, PredicateConfig::default());
        let controller = Controller::for_stream(changes, reader);
        runner::run(controller, move |_| nodes.clone(), Arc::new(self), settings)
    }

    async fn assign(&self, node: &Node, range: Ipv4Net) -> Result<Next> {
        let name = node.name_any();
        // Without the version: the API server itself refuses to change ranges that are there, and a Node's
        // status is written often while its kubelet starts.
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
            // Gone, another Node of this name, or somebody else gave it a range: the watch tells which.
            Err(kube::Error::Api(status))
                if status.is_not_found() || status.is_conflict() || status.is_invalid() =>
            {
                locked(&self.book).give_back(node);
                let why = format!("Node {name} does not take the range {range}: {}", status.message);
                Err(Error::not_ready(ASK_AGAIN, why))
            }
            // It may have been written all the same: the range stays reserved for this Node and is tried
            // again.
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
        // The range is free when the Node is gone, not before: its pods may still run.
        Ok(Next::Change)
    }
}

fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the decision depends on.
fn fingerprint(node: &Node) -> Option<u64> {
    let deleted = node.metadata.deletion_timestamp.is_some();
    runner::fingerprint((nodes::uid(node), deleted, has_range(node)))
}
