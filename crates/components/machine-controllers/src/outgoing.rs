//! Marks the Nodes of Machines that are about to be deleted. All these Nodes get a soft taint before the
//! first Node is drained, so that an evicted pod starts on a Node that stays. The taint is the same as
//! upstream, and stays on the Node when the shoot moves to another seed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::machine::Machine;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{Api, ResourceExt, runtime::reflector::ObjectRef};
use runtime::{
    Error, Result,
    client::{Cluster as _, apply::FieldManager},
};
use serde_json::{Value, json};
use tracing::{debug, warn};

use crate::{
    constants::OUTGOING,
    context::Context,
    feed::Cache,
    machine::{is_forced, node_name},
    reach::Reach,
};

/// Writes to Nodes that are under way at once.
const AT_ONCE: usize = 10;
/// How long a write of a Node may take. A webhook of the users may delay each write, and the taint is only a
/// preference.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Before the next attempt to remove the taint, where a webhook of the users refuses the write.
const RELEASE_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The scheduler prefers Nodes without the taint.
const EFFECT: &str = "PreferNoSchedule";

/// Marks Nodes. A process has a single value, see `written`.
pub struct Outgoing {
    nodes: Api<Node>,
    known: Cache<Node>,
    manager: FieldManager,
    reach: Arc<Reach>,
    /// Versions of Nodes that this process has written, by name, until the cache shows the version. Until
    /// then the present Node is read, because no later event repeats a decision from the older Node.
    written: Mutex<HashMap<String, Option<String>>>,
}

impl Outgoing {
    /// For the Nodes of the shoot.
    pub fn new(context: &Context, reach: Arc<Reach>, known: Cache<Node>) -> Self {
        Self {
            nodes: context.shoot.cluster_wide(),
            known,
            manager: context.manager,
            reach,
            written: Mutex::default(),
        }
    }

    /// Taints the Nodes of these Machines. A refusal by the shoot's API is logged, as the deletion goes on
    /// without the taint; an API that does not answer is an error.
    pub async fn mark<'m>(&self, machines: impl IntoIterator<Item = &'m Machine>) -> Result<()> {
        self.write(machines, true).await
    }

    /// The same for a deletion that does not wait for the shoot's API.
    pub async fn mark_if_possible<'m>(&self, machines: impl IntoIterator<Item = &'m Machine>) {
        if let Err(error) = self.mark(machines).await {
            debug!(
                error = format_args!("{error:#}"),
                "outgoing Nodes were not marked"
            );
        }
    }

    /// Removes the taint from the Nodes of Machines that stay after all. A Node whose taint could not be
    /// removed is an error: the caller comes back.
    pub async fn release<'m>(&self, machines: impl IntoIterator<Item = &'m Machine>) -> Result<()> {
        self.write(machines, false).await
    }

    async fn write<'m>(
        &self,
        machines: impl IntoIterator<Item = &'m Machine>,
        is_outgoing: bool,
    ) -> Result<()> {
        let mut nodes = Vec::new();
        // Pods of a forced deletion are not evicted.
        for machine in machines.into_iter().filter(|machine| !is_forced(machine)) {
            let Some(name) = node_name(machine) else {
                continue;
            };
            let node = self.known.get(&ObjectRef::new(name))?;
            let is_due = |node: &Arc<Node>| {
                self.is_older_than_written(node) || taint_patch(node, is_outgoing).is_some()
            };
            nodes.extend(node.filter(is_due));
        }
        if nodes.is_empty() {
            return Ok(());
        }
        self.reach.check_reachable().await?;
        let writes: Vec<_> = nodes
            .iter()
            .map(|node| self.write_one(node, is_outgoing))
            .collect();
        stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await
    }

    async fn write_one(&self, node: &Node, is_outgoing: bool) -> Result<()> {
        let written = tokio::time::timeout(WRITE_TIMEOUT, self.try_write(node, is_outgoing)).await;
        let written =
            written.unwrap_or_else(|_| Err(Error::transient(format!("no answer within {WRITE_TIMEOUT:?}"))));
        match written {
            Err(error) if error.is_failure() => {
                let name = node.name_any();
                warn!(
                    node = name,
                    error = format_args!("{error:#}"),
                    is_outgoing,
                    "the taint of outgoing Nodes could not be written"
                );
                if is_outgoing {
                    return Ok(());
                }
                let report =
                    format!("the taint of outgoing Nodes could not be removed from Node {name}: {error}");
                Err(Error::not_ready(RELEASE_RETRY_INTERVAL, report))
            }
            other => other,
        }
    }

    /// Kubelets write Nodes often: after a conflict the write is repeated on the present Node.
    async fn try_write(&self, seen: &Node, is_outgoing: bool) -> Result<()> {
        let mut node = seen.clone();
        let mut is_old = self.is_older_than_written(seen);
        loop {
            if is_old {
                match self.reach.read_node(&seen.name_any()).await? {
                    Some(now) if now.uid() == seen.uid() => node = now,
                    _ => return Ok(()),
                }
            }
            let Some(body) = taint_patch(&node, is_outgoing) else {
                return Ok(());
            };
            if let Some(written) = self.manager.try_merge_of(&self.nodes, &node, &body).await? {
                self.remember(&written);
                return Ok(());
            }
            is_old = true;
        }
    }

    fn remember(&self, node: &Node) {
        let mut written = self.written();
        // Deleted Nodes are in no cache.
        written.retain(|name, _| matches!(self.known.get(&ObjectRef::new(name)), Ok(Some(_))));
        written.insert(node.name_any(), node.resource_version());
    }

    /// Whether the cache shows a Node as before a write of this process.
    fn is_older_than_written(&self, cached: &Node) -> bool {
        let (name, mut written) = (cached.name_any(), self.written());
        let Some(version) = written.get(&name) else {
            return false;
        };
        let is_old = is_older(cached.resource_version().as_deref(), version.as_deref());
        if !is_old {
            written.remove(&name);
        }
        is_old
    }

    fn written(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares versions of an object. Versions are decimal numbers (Kubernetes 1.35). A version without a number
/// is only compared for equality.
fn is_older(version: Option<&str>, than: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u64>().ok());
    match (number(version), number(than)) {
        (Some(version), Some(than)) => version < than,
        _ => version != than,
    }
}

/// The change that a Node needs. A list of taints is written as a whole.
fn taint_patch(node: &Node, is_outgoing: bool) -> Option<Value> {
    let mut taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let is_mark = |taint: &Taint| taint.key == OUTGOING && taint.effect == EFFECT;
    if taints.iter().any(is_mark) == is_outgoing {
        return None;
    }
    taints.retain(|taint| !is_mark(taint));
    if is_outgoing {
        taints.push(Taint {
            key: OUTGOING.to_owned(),
            value: Some("True".to_owned()),
            effect: EFFECT.to_owned(),
            ..Taint::default()
        });
    }
    Some(json!({"spec": {"taints": taints}}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_cache_counts_from_the_written_version_on() {
        assert!(is_older(Some("9"), Some("10")), "compared as text");
        assert!(!is_older(Some("10"), Some("10")));
        assert!(!is_older(Some("11"), Some("10")));
        assert!(is_older(Some("a"), Some("b")), "the present Node is read");
        assert!(!is_older(Some("b"), Some("b")));
    }

    #[test]
    fn the_mark_comes_and_goes_and_other_taints_stay() {
        let node = |taints: Value| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"taints": taints}})).unwrap()
        };
        let own = json!({"key": "own", "effect": "NoSchedule"});
        let mark = json!({"key": OUTGOING, "value": "True", "effect": "PreferNoSchedule"});
        let (staying, outgoing) = (node(json!([own])), node(json!([own, mark])));
        assert_eq!(
            taint_patch(&staying, true).unwrap()["spec"]["taints"],
            json!([own, mark])
        );
        assert_eq!(
            taint_patch(&outgoing, false).unwrap()["spec"]["taints"],
            json!([own])
        );
        assert_eq!(
            (taint_patch(&staying, false), taint_patch(&outgoing, true)),
            (None, None)
        );
    }
}
