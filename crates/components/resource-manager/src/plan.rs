//! Decisions without a client: the objects to delete, and the body to send for an object that exists or not.
//!
//! | function | decides |
//! |---|---|
//! | [`unwanted`] | which objects of an earlier application are deleted |
//! | [`step`] | the change of an object, by the manifest and by the object in the cluster |
//! | [`leaving`] | the deletion of an object, by the object in the cluster |
//! | [`overwrite`] | the removal of foreign labels and annotations |

use std::{collections::BTreeSet, time::Duration};

use api::resources::Equivalence;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    names::{MANAGED_BY_LABEL, RESOURCES_ORIGIN},
    object::{Handling, Key},
};

/// The objects of an earlier application to delete. Wanted objects stay, also with a different version or
/// under an equivalent group and kind. Objects with `mode=Ignore` in the manifest stay, too.
#[must_use]
pub fn unwanted(
    before: &[Key],
    wanted: &[Key],
    released: &[Key],
    equivalences: &[Vec<Equivalence>],
) -> Vec<Key> {
    let kept: BTreeSet<_> = wanted.iter().chain(released).map(Key::identity).collect();
    let stays = |key: &Key| {
        let names = equivalences
            .iter()
            .filter(|class| class.iter().any(|kind| key.is(&kind.group, &kind.kind)))
            .flatten()
            .map(|kind| {
                (
                    kind.group.as_str(),
                    kind.kind.as_str(),
                    key.namespace.as_deref(),
                    key.name.as_str(),
                )
            });
        kept.contains(&key.identity()) || names.into_iter().any(|name| kept.contains(&name))
    };
    before.iter().filter(|key| !stays(key)).cloned().collect()
}

/// The action for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The body is applied.
    Send(Value),
    /// The object stays unchanged (`ignore`).
    Leave,
    /// The object is being deleted, so the application waits for the end of the deletion.
    Await,
}

/// The action for an object with the wanted body `body`. `live`: the object in the cluster, if the object
/// exists.
#[must_use]
pub fn step(handling: &Handling, mut body: Value, live: Option<&Value>) -> Step {
    let Some(live) = live else { return Step::Send(body) };
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Step::Await;
    }
    if handling.once {
        return Step::Leave;
    }
    if handling.own_replicas
        && let Some(replicas) = live.pointer("/spec/replicas")
    {
        child(&mut body, "spec").insert("replicas".to_owned(), replicas.clone());
    }
    if handling.own_resources {
        for pod in [
            "/spec/template/spec",
            "/spec/jobTemplate/spec/template/spec",
            "/spec",
        ] {
            preserve_resources(body.pointer_mut(pod), live.pointer(pod));
        }
    }
    if handling.own_replicas || handling.own_resources {
        // The preserved values must be the present values, so the write tests the version: a scaling at this
        // moment is not undone.
        let version = live["metadata"]["resourceVersion"].clone();
        child(&mut body, "metadata").insert("resourceVersion".to_owned(), version);
    }
    Step::Send(body)
}

/// Copies the resources of containers with the same name.
fn preserve_resources(wanted: Option<&mut Value>, live: Option<&Value>) {
    let (Some(wanted), Some(live)) = (wanted, live) else {
        return;
    };
    for list in ["containers", "initContainers"] {
        let Some(containers) = wanted.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            let name = container["name"].clone();
            let same = live[list]
                .as_array()
                .into_iter()
                .flatten()
                .find(|live| live["name"] == name);
            if let (Some(same), Some(container)) = (same, container.as_object_mut()) {
                match same.get("resources") {
                    Some(resources) => container.insert("resources".to_owned(), resources.clone()),
                    None => container.remove("resources"),
                };
            }
        }
    }
}

fn child<'a>(body: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !body[field].is_object() {
        body[field] = json!({});
    }
    match &mut body[field] {
        Value::Object(map) => map,
        _ => unreachable!("it was made a map just now"),
    }
}

/// The action for an object that is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The object stays for good (`keep-object`).
    Keep,
    /// The object is deleted.
    Delete,
    /// The deletion has taken long enough (`finalize-deletion-after`): the finalizers are removed.
    Finalize,
    /// The object is being deleted: the reason of the wait, and the time of the next action.
    Wait(String, Option<Duration>),
}

/// The action at this time for an existing object that is no longer wanted.
#[must_use]
pub fn leaving(handling: &Handling, live: &Value, now: Timestamp) -> Leaving {
    let metadata = &live["metadata"];
    let Some(since) = metadata["deletionTimestamp"].as_str() else {
        return if handling.kept || handling.released {
            Leaving::Keep
        } else {
            Leaving::Delete
        };
    };
    let finalizers: Vec<&str> = metadata["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if finalizers.is_empty() {
        return Leaving::Wait("it is being deleted".to_owned(), None);
    }
    let why = format!("it is being deleted and waits for {}", finalizers.join(", "));
    let (Some(bound), Ok(since)) = (handling.finalized_after, since.parse::<Timestamp>()) else {
        return Leaving::Wait(why, None);
    };
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    match bound.checked_sub(passed).filter(|left| !left.is_zero()) {
        // Slightly later, because the clocks of two machines are compared.
        Some(left) => Leaving::Wait(why, Some(left + Duration::from_millis(100))),
        None => Leaving::Finalize,
    }
}

/// Whether the StatefulSet has created a claim of this name from a template.
#[must_use]
pub fn is_claim_of(set: &Value, claim: &str) -> bool {
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let templates = set["spec"]["volumeClaimTemplates"]
        .as_array()
        .into_iter()
        .flatten();
    templates
        .filter_map(|template| template["metadata"]["name"].as_str())
        .any(|template| {
            let ordinal = claim.strip_prefix(&format!("{template}-{name}-"));
            ordinal.is_some_and(|ordinal| {
                !ordinal.is_empty() && ordinal.bytes().all(|digit| digit.is_ascii_digit())
            })
        })
}

/// The lists of metadata that must equal the manifest without additions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overwrite {
    /// `spec.forceOverwriteLabels`.
    pub labels: bool,
    /// `spec.forceOverwriteAnnotations`.
    pub annotations: bool,
}

/// A merge patch that removes additions of other writers from `written`, in the lists that must equal the
/// manifest. Annotations of Kubernetes itself stay, because Kubernetes would add these again at once.
#[must_use]
pub fn overwrite(overwrite: Overwrite, sent: &Value, written: &Value) -> Option<Value> {
    let mut lists = Map::new();
    for (on, list) in [
        (overwrite.labels, "labels"),
        (overwrite.annotations, "annotations"),
    ] {
        let Some(there) = written["metadata"][list].as_object().filter(|_| on) else {
            continue;
        };
        let foreign = there
            .keys()
            .filter(|key| sent["metadata"][list].get(key.as_str()).is_none() && !is_of_kubernetes(key))
            .filter(|key| ![MANAGED_BY_LABEL, RESOURCES_ORIGIN].contains(&key.as_str()))
            .map(|key| (key.clone(), Value::Null));
        let foreign: Map<String, Value> = foreign.collect();
        if !foreign.is_empty() {
            lists.insert(list.to_owned(), Value::Object(foreign));
        }
    }
    (!lists.is_empty()).then(|| json!({"metadata": lists}))
}

fn is_of_kubernetes(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io"]
        .iter()
        .any(|of| domain == *of || domain.ends_with(&format!(".{of}")))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
