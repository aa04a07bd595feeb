//! The sets of a deployment: finds the new set, creates the new set, and selects the old sets to delete.

use std::collections::BTreeMap;

use api::{
    constants::WRITTEN_IN_EPOCH,
    machine::{MachineDeployment, MachineSet, MachineSetSpec, MachineTemplateSpec},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use runtime::Result;
use serde_json::{Value, json};

use super::template::{has_same_template, hash_template};
use crate::{
    constants::{FINALIZER, REVISION, TEMPLATE_HASH},
    merge_patch::merge_patch,
    owners::owner_reference,
};

/// Number of old sets that are kept where a deployment sets no limit.
const DEFAULT_REVISION_HISTORY_LIMIT: usize = 10;

/// Sets of a deployment, oldest first, with the new set apart.
pub struct Sets {
    /// The sets of former templates.
    pub old: Vec<MachineSet>,
    /// The set of the present template.
    pub new: Option<MachineSet>,
}

impl Sets {
    /// Sorts the sets. Of two sets of the present template, the older set is the new set, because the older
    /// set has the machines.
    pub fn sort(mut all: Vec<MachineSet>, template: &MachineTemplateSpec) -> Self {
        all.sort_by_cached_key(|set| (set.creation_timestamp().map(|time| time.0), set.name_any()));
        let usable =
            |set: &MachineSet| set.meta().deletion_timestamp.is_none() && has_same_template(set, template);
        // Of sets that were restored at the same moment, the set in use is the new set.
        let position = all
            .iter()
            .position(|set| usable(set) && set.spec.replicas > Some(0))
            .or_else(|| all.iter().position(usable));
        let new = position.map(|position| all.remove(position));
        Self { old: all, new }
    }

    /// The revision of the next new set.
    fn next_revision(&self) -> i64 {
        self.old.iter().map(revision).max().unwrap_or_default() + 1
    }

    /// The revision that the new set should have, if the present revision is lower: the template is in use
    /// again.
    pub fn outdated_revision(&self) -> Option<i64> {
        let (new, next) = (revision(self.new.as_ref()?), self.next_revision());
        (new < next).then_some(next)
    }

    /// Old sets to delete: empty sets beyond the limit, the oldest first.
    pub fn removable_sets(
        &self,
        limit: Option<i32>,
        is_empty: impl Fn(&MachineSet) -> bool,
    ) -> Vec<&MachineSet> {
        let kept = limit.map_or(DEFAULT_REVISION_HISTORY_LIMIT, |limit| {
            usize::try_from(limit).unwrap_or_default()
        });
        let mut done: Vec<_> = self
            .old
            .iter()
            .filter(|set| {
                set.meta().deletion_timestamp.is_none()
                    && set.spec.replicas.unwrap_or_default() == 0
                    && is_empty(set)
            })
            .collect();
        done.sort_by_key(|set| revision(set));
        done.truncate(done.len().saturating_sub(kept));
        done
    }

    /// All sets, oldest first, the new set last.
    pub fn all(&self) -> impl Iterator<Item = &MachineSet> {
        self.old.iter().chain(&self.new)
    }

    /// Builds the set of the present template.
    pub fn build(&self, deployment: &MachineDeployment, collisions: i32) -> Result<MachineSet> {
        let spec = &deployment.spec;
        let hash = hash_template(&spec.template, collisions)?;
        let mut template = spec.template.clone();
        let meta = template.metadata.get_or_insert_default();
        let labels = meta.labels.get_or_insert_default();
        labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector.clone().unwrap_or_default();
        selector
            .match_labels
            .get_or_insert_default()
            .insert(TEMPLATE_HASH.to_owned(), hash.clone());
        let mut set = MachineSet::new(
            &format!("{}-{hash}", deployment.name_any()),
            MachineSetSpec {
                replicas: Some(0),
                selector: Some(selector),
                machine_class: template.spec.as_ref().and_then(|spec| spec.class.clone()),
                template: Some(template),
                min_ready_seconds: spec.min_ready_seconds,
                auto_preserve_failed_machine_max: None,
            },
        );
        let mut annotations: BTreeMap<_, _> =
            [(REVISION.to_owned(), self.next_revision().to_string())].into();
        let epoch = written_epoch(deployment);
        annotations.extend(epoch.map(|epoch| (WRITTEN_IN_EPOCH.to_owned(), epoch.clone())));
        set.metadata = ObjectMeta {
            name: set.metadata.name.clone(),
            namespace: deployment.namespace(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner_reference(deployment)]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        };
        Ok(set)
    }
}

/// The epoch in which an object was written. An object that is created for this object gets the same epoch.
fn written_epoch<K: ResourceExt>(object: &K) -> Option<&String> {
    object.annotations().get(WRITTEN_IN_EPOCH)
}

/// The epoch of the deployment, if the set records a different epoch. Machines that are created for the set
/// record the epoch, too.
pub fn find_changed_epoch<'a>(set: &MachineSet, deployment: &'a MachineDeployment) -> Option<&'a String> {
    written_epoch(deployment).filter(|wanted| written_epoch(set) != Some(*wanted))
}

fn revision(set: &MachineSet) -> i64 {
    let text = set.annotations().get(REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The merge patch that copies the mutable fields of the deployment to the set: bounds, the node template,
/// and, for the new set, the time for which machines have to be ready.
pub fn in_place_patch(set: &MachineSet, deployment: &MachineDeployment, is_new: bool) -> Option<Value> {
    let wanted = deployment.spec.template.spec.clone().unwrap_or_default();
    let mut template = set.spec.template.clone().unwrap_or_default();
    let now = template.spec.get_or_insert_default();
    let mut next = wanted;
    next.class.clone_from(&now.class);
    next.provider_id = None;
    let mut body = json!({});
    if let Some(change) = merge_patch(&json!(now), &json!(next)) {
        body["template"]["spec"] = change;
    }
    if is_new && set.spec.min_ready_seconds != deployment.spec.min_ready_seconds {
        body["minReadySeconds"] = json!(deployment.spec.min_ready_seconds);
    }
    (!body.as_object().is_none_or(serde_json::Map::is_empty)).then_some(body)
}

#[cfg(test)]
#[path = "sets_tests.rs"]
mod tests;
