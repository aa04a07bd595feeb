//! Decisions without a client: what is not wanted any more, and what is sent for an object that is there or
//! not.

use std::{collections::BTreeSet, time::Duration};

use api::resources::Equivalence;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    names::{MANAGED_BY_LABEL, RESOURCES_ORIGIN},
    object::{Handling, Key},
};

/// Of what was applied before: what is to be deleted. Not what is still wanted, also where it is wanted in
/// another version or under an equivalent group and kind, and not what was given free by its manifest
/// (`mode=Ignore`).
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

/// What is done with one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is sent.
    Send(Value),
    /// It is left as it is (`ignore`).
    Leave,
    /// It goes first: it is being deleted, and would not be there for long.
    Await,
}

/// What is done with an object that is to be `body`. `live`: as it is in the cluster, if it is there.
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
        // What is taken over must be what is there: somebody who scales at this moment is not undone.
        let version = live["metadata"]["resourceVersion"].clone();
        child(&mut body, "metadata").insert("resourceVersion".to_owned(), version);
    }
    Step::Send(body)
}

/// Containers of the same name have the same resources.
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

/// What is done with an object that is not wanted any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It stays for good (`keep-object`).
    Keep,
    /// It is deleted.
    Delete,
    /// It has been deleted for long enough (`finalize-deletion-after`): its finalizers are taken away.
    Finalize,
    /// It is being deleted: what it waits for, and when there is more to do.
    Wait(String, Option<Duration>),
}

/// What is done at this time with an object that is there and not wanted any more.
#[must_use]
pub fn leaving(handling: &Handling, live: &Value, now: Timestamp) -> Leaving {
    let metadata = &live["metadata"];
    let Some(since) = metadata["deletionTimestamp"].as_str() else {
        return if handling.kept {
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
        // A little later: the times of two machines are compared.
        Some(left) => Leaving::Wait(why, Some(left + Duration::from_millis(100))),
        None => Leaving::Finalize,
    }
}

/// Whether a claim of this name was made from a template of the StatefulSet.
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

/// Which lists of metadata are as the manifest has them, and nothing besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overwrite {
    /// `spec.forceOverwriteLabels`.
    pub labels: bool,
    /// `spec.forceOverwriteAnnotations`.
    pub annotations: bool,
}

/// A merge patch that takes away what others have added to `written` where that is not borne. What Kubernetes
/// itself notes in annotations stays: it would put it back at once.
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
