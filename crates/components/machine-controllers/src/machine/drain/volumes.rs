//! Volumes that are attached to a Node. When an instance ends before the volumes are detached, the next Node
//! gets each volume minutes later, as Kubernetes cannot know that the former Node has stopped writing.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use runtime::{
    Result,
    bounds::some_of,
    client::{Cluster as _, Shoot},
    error::Explain as _,
};
use serde::Deserialize;
use tokio::time::Instant;

use crate::reach::bounded_list;

/// Volumes named in a sentence. More would not fit into an Event.
const NAMED: usize = 5;

/// Volumes by the name of the Node.
type ByNode = BTreeMap<String, Vec<String>>;

/// The volumes of a shoot's Nodes, and the time since when each Machine waits for the volumes of the Node.
pub struct Volumes {
    shoot: Shoot,
    /// A listing serves all Machines for so long: volumes have no selector by Node.
    max_age: Duration,
    listed: tokio::sync::Mutex<Option<(Instant, ByNode)>>,
    /// By the uid of the Machine. A restart of the process begins the bound anew.
    waiting: Mutex<BTreeMap<String, Instant>>,
}

/// The state of the volumes of a Node.
#[derive(Debug, PartialEq, Eq)]
pub enum Detachment {
    /// No volume is attached.
    Done,
    /// Volumes are attached, and the bound has not passed.
    Waits(String),
    /// Volumes are attached, and the bound has passed.
    TimedOut(String),
}

impl Volumes {
    /// The volumes of this shoot, listed at most so often.
    pub fn new(shoot: &Shoot, max_age: Duration) -> Self {
        Self {
            shoot: shoot.clone(),
            max_age,
            listed: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// The state of the volumes of this Node. The bound counts from the first call for the Machine. A listing
    /// that fails is no reason to keep an instance for longer than the bound.
    pub async fn check_detachment(&self, machine: &str, node: &str, bound: Duration) -> Result<Detachment> {
        let since = *self
            .waiting()
            .entry(machine.to_owned())
            .or_insert_with(Instant::now);
        let attached = match self.list_attached(node, since).await {
            Ok(volumes) if volumes.is_empty() => return Ok(Detachment::Done),
            Ok(volumes) => some_of(&volumes, NAMED),
            Err(error) if error.is_failure() => format!("the volumes are unknown, {error}"),
            Err(error) => return Err(error),
        };
        Ok(if since.elapsed() < bound {
            Detachment::Waits(attached)
        } else {
            Detachment::TimedOut(attached)
        })
    }

    /// Forgets a Machine that is gone.
    pub fn forget(&self, machine: &str) {
        self.waiting().remove(machine);
    }

    /// The volumes of a Node, by a listing that began after `since`: an older listing may lack a volume that
    /// was attached before the last pod left.
    async fn list_attached(&self, node: &str, since: Instant) -> Result<Vec<String>> {
        let mut listed = self.listed.lock().await;
        let known = listed
            .as_ref()
            .filter(|(began, _)| *began >= since && began.elapsed() < self.max_age);
        if let Some((_, by_node)) = known {
            return Ok(by_node.get(node).cloned().unwrap_or_default());
        }
        let (began, by_node) = (Instant::now(), bounded_list(self.list()).await?);
        let volumes = by_node.get(node).cloned().unwrap_or_default();
        *listed = Some((began, by_node));
        Ok(volumes)
    }

    async fn list(&self) -> Result<ByNode> {
        let mut by_node = ByNode::new();
        let (api, all) = (
            self.shoot.cluster_wide::<VolumeAttachment>(),
            ListParams::default(),
        );
        let survey = runtime::bounds::survey(&api, &all, |attachment: Attachment| {
            let Attachment { metadata, spec } = attachment;
            let volume = spec.source.persistent_volume_name.unwrap_or(metadata.name);
            by_node.entry(spec.node_name).or_default().push(volume);
            ControlFlow::Continue(())
        });
        survey.await.context("could not list VolumeAttachments")?;
        Ok(by_node)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a `VolumeAttachment` that counts here.
#[derive(Deserialize)]
struct Attachment {
    metadata: Name,
    spec: Spec,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
    source: Source,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    persistent_volume_name: Option<String>,
}
