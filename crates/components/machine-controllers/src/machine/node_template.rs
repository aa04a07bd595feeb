//! Applies the template of a Machine to the Node: labels, annotations, taints. An annotation of the Node
//! records the applied template. So entries that the template no longer has are removed, and entries of
//! different writers stay. The Node also gets the Machine's `spec.providerID`: where instances and Nodes have
//! different names, a cloud-controller-manager finds the instance of a Node by this ID alone.

use std::collections::BTreeMap;

use api::machine::{Machine, NodeTemplateSpec};
use k8s_openapi::api::core::v1::{Node, NodeSpec, Taint};
use kube::{Api, Resource, ResourceExt};
use runtime::{Error, Result, client::Cluster as _};
use serde_json::{Value, json};

use super::{Machines, provider_id};
use crate::{constants::APPLIED, reach::bounded_write};

type Texts = BTreeMap<String, String>;

impl Machines {
    /// Adds the missing entries to the Node and removes the entries that the template no longer has.
    pub(super) async fn apply_node_template(&self, machine: &Machine, node: &Node) -> Result<()> {
        let template = machine.spec.node_template.clone().unwrap_or_default();
        let mut body = node_patch(node, &template)?;
        if let Some(id) = missing_provider_id(machine, node) {
            body.get_or_insert_with(|| json!({}))["spec"]["providerID"] = json!(id);
        }
        let Some(body) = body else {
            return Ok(());
        };
        let nodes: Api<Node> = self.shoot.cluster_wide();
        match bounded_write(self.manager.try_merge_of(&nodes, node, &body)).await? {
            Some(_) => Ok(()),
            None => Err(Error::not_ready(
                self.timing.poll_interval,
                format!(
                    "Node {} was written by another at the same moment",
                    node.name_any()
                ),
            )),
        }
    }
}

/// The Machine's provider ID where the Node has none. An ID that is set cannot be changed.
fn missing_provider_id<'m>(machine: &'m Machine, node: &Node) -> Option<&'m str> {
    let is_set = |node: &NodeSpec| node.provider_id.as_ref().is_some_and(|id| !id.is_empty());
    provider_id(machine).filter(|_| !node.spec.as_ref().is_some_and(is_set))
}

/// The change that a Node needs.
fn node_patch(node: &Node, template: &NodeTemplateSpec) -> Result<Option<Value>> {
    let before = read_applied(node);
    let (labels_before, annotations_before, taints_before) = template_entries(&before);
    let (labels, annotations, taints) = template_entries(template);
    let meta = node.meta();
    let mut body = json!({});
    for (field, now, before, wanted) in [
        ("labels", &meta.labels, &labels_before, &labels),
        (
            "annotations",
            &meta.annotations,
            &annotations_before,
            &annotations,
        ),
    ] {
        let difference = diff_entries(now.as_ref().unwrap_or(&BTreeMap::new()), before, wanted);
        if !difference.is_empty() {
            body["metadata"][field] = json!(difference);
        }
    }
    let now = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    if let Some(list) = merge_taints(&now, &taints_before, &taints) {
        body["spec"]["taints"] = json!(list);
    }
    let record = NodeTemplateSpec {
        metadata: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            labels: Some(labels),
            annotations: Some(annotations),
            ..Default::default()
        }),
        spec: (!taints.is_empty()).then(|| NodeSpec {
            taints: Some(taints),
            ..NodeSpec::default()
        }),
    };
    if is_record_outdated(&before, &record) {
        let text = serde_json::to_string(&record)
            .map_err(|error| Error::bug("a node template does not serialise").caused_by(error))?;
        body["metadata"]["annotations"][APPLIED] = json!(text);
    }
    Ok((!body.as_object().is_none_or(serde_json::Map::is_empty)).then_some(body))
}

/// The template that was applied before. An unreadable record counts as empty, so that no entry is removed.
fn read_applied(node: &Node) -> NodeTemplateSpec {
    let text = node.annotations().get(APPLIED);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn template_entries(template: &NodeTemplateSpec) -> (Texts, Texts, Vec<Taint>) {
    let meta = template.metadata.clone().unwrap_or_default();
    let taints = template.spec.as_ref().and_then(|spec| spec.taints.clone());
    (
        meta.labels.unwrap_or_default(),
        meta.annotations.unwrap_or_default(),
        taints.unwrap_or_default(),
    )
}

fn is_record_outdated(before: &NodeTemplateSpec, now: &NodeTemplateSpec) -> bool {
    template_entries(before) != template_entries(now)
}

/// A merge patch from the present entries to the wanted entries.
fn diff_entries(now: &Texts, before: &Texts, wanted: &Texts) -> BTreeMap<String, Option<String>> {
    let gone = before
        .keys()
        .filter(|key| !wanted.contains_key(*key) && now.contains_key(*key))
        .map(|key| (key.clone(), None));
    let missing = wanted
        .iter()
        .filter(|(key, value)| now.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), Some(value.clone())));
    gone.chain(missing).collect()
}

/// The whole list of taints, if the list has to change. A taint is identified by key and effect.
fn merge_taints(now: &[Taint], before: &[Taint], wanted: &[Taint]) -> Option<Vec<Taint>> {
    let same = |a: &Taint, b: &Taint| a.key == b.key && a.effect == b.effect;
    let has = |list: &[Taint], taint: &Taint| list.iter().any(|other| same(other, taint));
    let kept = now
        .iter()
        .filter(|taint| !has(wanted, taint) && !has(before, taint));
    let put = wanted.iter().map(|taint| {
        let there = now
            .iter()
            .find(|other| same(other, taint) && other.value == taint.value);
        there.unwrap_or(taint)
    });
    let list: Vec<_> = kept.chain(put).cloned().collect();
    let equal = list.len() == now.len() && list.iter().all(|taint| now.contains(taint));
    (!equal).then_some(list)
}

#[cfg(test)]
#[path = "node_template_tests.rs"]
mod tests;
