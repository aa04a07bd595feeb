//! `kubectl repot diagnose`: the objects of the garden about a shoot, and the Events, for a report. No
//! Secret is read, and the content of the ShootState is left out, because the ShootState carries keys.

use std::{collections::BTreeSet, io::Write, path::Path};

use api::gardencore::{BackupEntry, Shoot, ShootState};
use kube::{Api, ResourceExt};
use runtime::{client::Cluster, clock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    events::raw_events,
    failure::Failure,
    session::{SeedReading, Session},
    version::PLUGIN,
};

/// The namespace of Events of objects without a namespace.
const EVENTS_OF_SEEDS: &str = "default";

/// Annotations that repeat the object as the user wrote the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A bundle in the making.
#[derive(Default)]
struct Bundle {
    items: Vec<Value>,
    not_read: Vec<String>,
}

impl Bundle {
    fn add(&mut self, read: Result<Value, Failure>) {
        match read {
            Ok(object) => self.items.push(without_bookkeeping(object)),
            Err(failure) => self.not_read.push(failure.to_string()),
        }
    }

    async fn add_events(&mut self, session: &Session, namespace: &str, uid: Option<String>) {
        for read in Box::pin(raw_events(session, namespace, &uid.unwrap_or_default())).await {
            match read {
                Ok(events) => {
                    let items = events.items.into_iter().map(as_event);
                    self.items.extend(items.map(without_bookkeeping));
                    if events.is_cut {
                        let sentence = format!("namespace {namespace} has further Events about the object");
                        self.not_read.push(sentence);
                    }
                }
                Err(failure) => self.not_read.push(failure.to_string()),
            }
        }
    }
}

/// Collects the bundle, and writes the bundle into a new file if `file` names a file.
pub async fn diagnose(session: &Session, name: &str, file: Option<&Path>) -> Result<Answer, Failure> {
    let namespace = session.namespace();
    let shoot = Box::pin(session.shoot(namespace, name)).await?;
    let mut bundle = Bundle::default();
    bundle.add(Ok(to_json(&shoot)));
    bundle.add_events(session, namespace, shoot.uid()).await;
    bundle.add(Box::pin(shoot_state(session, &shoot)).await);
    if let Some(entry) = Box::pin(backup_entry(session, &shoot)).await {
        bundle.add(entry);
    }
    for seed in seeds_of(&shoot) {
        match Box::pin(session.seed(&seed)).await {
            Ok(SeedReading::Read(read)) => {
                bundle.add(Ok(to_json(&*read)));
                bundle.add_events(session, EVENTS_OF_SEEDS, read.uid()).await;
            }
            Ok(SeedReading::Missing) => bundle.not_read.push(format!("Seed {seed} does not exist")),
            Ok(SeedReading::Unreadable(why)) => bundle.not_read.push(why),
            Err(failure) => bundle.not_read.push(failure.to_string()),
        }
    }
    let count = bundle.items.len();
    let content = json!({
        "apiVersion": "v1", "kind": "List", "items": bundle.items, "notRead": bundle.not_read,
        "pluginVersion": PLUGIN, "time": clock::now().to_string(),
    });
    let text = format!("{content:#}\n");
    let Some(path) = file else {
        return Ok(Answer::new(text, &content));
    };
    write_new(path, &text)?;
    let mut sentence = format!("{count} objects are in {}\n", path.display());
    for why in &bundle.not_read {
        sentence.push_str(why);
        sentence.push('\n');
    }
    Ok(Answer::new(
        sentence,
        &json!({"file": path.display().to_string(), "objects": count, "notRead": bundle.not_read}),
    ))
}

/// Never writes over a file of the user.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}

/// The seeds that have, had or are to have the shoot.
fn seeds_of(shoot: &Shoot) -> BTreeSet<String> {
    let status = shoot.status.clone().unwrap_or_default();
    let former = status.former_seeds.into_iter().map(|former| former.name);
    let named = shoot.spec.seed_name.clone().into_iter().chain(status.seed_name);
    named.chain(former).filter(|seed| !seed.is_empty()).collect()
}

async fn shoot_state(session: &Session, shoot: &Shoot) -> Result<Value, Failure> {
    let states: Api<ShootState> = session
        .garden()
        .namespaced(&shoot.namespace().unwrap_or_default());
    let name = shoot.name_any();
    // The answer has the metadata alone, so that no key leaves the garden.
    let doing = format!("the metadata of ShootState {name} cannot be read");
    let read = Box::pin(session.request(&doing, states.get_metadata(&name))).await?;
    Ok(to_json(&read))
}

/// `None` before a seed has begun the shoot.
async fn backup_entry(session: &Session, shoot: &Shoot) -> Option<Result<Value, Failure>> {
    let technical_id = placement::names::recorded_technical_id(shoot)?;
    let name = placement::names::backup_entry(technical_id, &placement::names::uid(shoot));
    let entries: Api<BackupEntry> = session.garden().namespaced(&shoot.namespace()?);
    let doing = format!("BackupEntry {name} cannot be read");
    let read = Box::pin(session.request(&doing, entries.get(&name))).await;
    Some(read.map(|entry| to_json(&entry)))
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// The item of a list, with the kind that a list leaves out.
fn as_event(mut item: Value) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!("Event"));
    }
    item
}

/// The object without fields that are of no help, or that may repeat content of a Secret.
fn without_bookkeeping(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn managed_fields_and_the_last_applied_object_are_left_out() {
        let object = json!({"metadata": {"name": "demo", "managedFields": [{}], "annotations": {LAST_APPLIED: "x", "a": "b"}}});
        assert_eq!(
            without_bookkeeping(object),
            json!({"metadata": {"name": "demo", "annotations": {"a": "b"}}})
        );
    }

    #[test]
    fn each_seed_of_the_shoot_is_read_once() {
        let shoot = serde_yaml_ng::from_str(
            "metadata: {name: demo}\nspec: {region: r, provider: {type: t}, seedName: b}\n\
             status: {seedName: a, formerSeeds: [{name: c, epoch: 1}, {name: a, epoch: 2}]}\n",
        )
        .unwrap();
        let seeds: Vec<String> = seeds_of(&shoot).into_iter().collect();
        assert_eq!(seeds, ["a", "b", "c"]);
    }

    #[test]
    fn a_file_of_the_user_is_not_written_over() {
        let path = std::env::temp_dir().join(format!("kubectl-repot-bundle-{}", std::process::id()));
        write_new(&path, "first").unwrap();
        let why = write_new(&path, "second").unwrap_err();
        let kept = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(why.to_string().contains("cannot be written"), "{why}");
        assert_eq!(kept, "first");
    }
}
