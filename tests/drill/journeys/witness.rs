//! Observes every version of every Shoot, checks both seeds when a success is reported, and records
//! violations.
//!
//! The two seeds are checked in sequence. So a check only proves facts that cannot be reverted in between: an
//! object that a source has released before the successor is reported. Or an object in both seeds, if the
//! object in the first seed still exists after the object in the second seed was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::druid::Etcd;
use api::gardencore::Shoot;
use api::meta::LastOperationType as Type;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::{WatchStreamExt, watcher, watcher::Event};
use kube::{Api, Resource, ResourceExt};
use runtime::Result;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::rules::{broken, epoch, host, last, succeeded};
use super::traces::{claims, etcd_goes_on, runs, writers, writes};
use crate::garden::PROJECT;
use crate::seed::RunningSeed;
use crate::subject::{Subject, namespace_of};
use crate::world::World;

/// Longer than the witness is behind on a busy machine.
pub const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// Observes until dropped.
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
    _watches: JoinSet<()>,
}

/// The observations, by Shoot name.
#[derive(Default)]
struct Seen {
    shoots: BTreeMap<String, Shoot>,
    stories: BTreeMap<String, Vec<String>>,
    /// Images of kube-apiserver in order, by Shoot and seed name.
    images: BTreeMap<(String, &'static str), Vec<String>>,
    broken: Vec<String>,
    hand_overs: u32,
}

impl Seen {
    fn tell(&mut self, name: &str, line: String) {
        let story = self.stories.entry(name.to_owned()).or_default();
        if story.last() != Some(&line) {
            story.push(line);
        }
    }

    fn accuse(&mut self, name: &str, what: &str) {
        let line = format!("BROKEN: {what}");
        self.broken.push(format!("Shoot {name}: {what}"));
        self.tell(name, line);
    }
}

impl Witness {
    pub fn watch(world: &Arc<World>) -> Self {
        let (seen, mut watches) = (Arc::default(), JoinSet::new());
        watches.spawn(shoots(Arc::clone(world), Arc::clone(&seen)));
        for seed in 0..2 {
            watches.spawn(deployments(Arc::clone(world), seed, Arc::clone(&seen)));
            watches.spawn(etcds(Arc::clone(world), seed, Arc::clone(&seen)));
        }
        Self {
            seen,
            _watches: watches,
        }
    }

    /// The course of a Shoot, a line per event.
    pub fn story(&self, name: &str) -> String {
        let seen = lock(&self.seen);
        seen.stories
            .get(name)
            .map(|story| story.join("\n"))
            .unwrap_or_default()
    }

    /// The kube-apiserver images that ran for a Shoot on a seed.
    pub fn images(&self, name: &str, seed: &'static str) -> Vec<String> {
        let images = lock(&self.seen).images.get(&(name.to_owned(), seed)).cloned();
        images.unwrap_or_default()
    }

    /// The violations, a sentence each.
    pub fn broken(&self) -> Vec<String> {
        lock(&self.seen).broken.clone()
    }

    pub fn hand_overs(&self) -> u32 {
        lock(&self.seen).hand_overs
    }
}

fn lock(notes: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn shoots(world: Arc<World>, notes: Arc<Mutex<Seen>>) {
    let api: Api<Shoot> = Api::namespaced(world.garden(), PROJECT);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    futures::pin_mut!(events);
    while let Some(event) = events.next().await {
        let (shoot, is_gone) = match event {
            Ok(Event::Apply(shoot) | Event::InitApply(shoot)) => (shoot, false),
            Ok(Event::Delete(shoot)) => (shoot, true),
            // Versions may be missing in between.
            Ok(Event::Init) => {
                lock(&notes).shoots.clear();
                continue;
            }
            Ok(Event::InitDone) | Err(_) => continue,
        };
        let name = shoot.name_any();
        let old = {
            let mut seen = lock(&notes);
            let old = seen.shoots.insert(name.clone(), shoot.clone());
            seen.tell(&name, line(&shoot, is_gone));
            for what in old.iter().flat_map(|old| broken(old, &shoot)) {
                seen.accuse(&name, what);
            }
            seen.hand_overs += u32::from(old.as_ref().is_some_and(|old| epoch(old) < epoch(&shoot)));
            old
        };
        let told = if is_gone {
            Some(Type::Delete)
        } else {
            succeeded(old.as_ref(), &shoot)
        };
        let Some(told) = told else { continue };
        match find_faults(&world, &shoot, told, is_gone).await {
            Ok(wrong) => {
                let mut seen = lock(&notes);
                for what in wrong {
                    seen.accuse(&name, &format!("{told} is told, and {what}"));
                }
            }
            Err(error) => lock(&notes).tell(&name, format!("could not be looked at: {error}")),
        }
    }
}

fn line(shoot: &Shoot, is_gone: bool) -> String {
    let operation = last(shoot).map(|(type_, state, percent)| format!("{type_} {state} {percent} %"));
    let deleting = shoot.metadata.deletion_timestamp.is_some();
    format!(
        "{}epoch {} on {:?} wanted on {:?}: {}{}",
        if is_gone { "gone: " } else { "" },
        epoch(shoot),
        host(shoot),
        shoot.spec.seed_name.as_deref().unwrap_or_default(),
        operation.unwrap_or_default(),
        if deleting { ", deleting" } else { "" },
    )
}

/// The faults of a success.
async fn find_faults(world: &Arc<World>, shoot: &Shoot, told: Type, is_gone: bool) -> Result<Vec<String>> {
    let subject = Subject {
        world,
        name: shoot.name_any(),
    };
    let namespace = subject.namespace();
    let mut wrong = Vec::new();
    for seed in &world.seeds {
        let is_host = seed.name == host(shoot);
        if is_host && told != Type::Delete {
            let served = epoch(shoot);
            if seed.sidecars.has_finished(&namespace, served) {
                wrong.push(format!(
                    "the backups of epoch {served} on {} have ended",
                    seed.name
                ));
            }
            continue;
        }
        let (acts, claims) = (writers(seed, &namespace).await?, claims(seed, &namespace).await?);
        let what: Vec<_> = acts.into_iter().chain(claims).collect();
        if !what.is_empty() {
            wrong.push(format!("{} still has {what:?}", seed.name));
        }
        if told == Type::Delete && is_host && subject.is_in(seed).await? {
            wrong.push(format!("its namespace is still in {}", seed.name));
        }
        if told == Type::Migrate && !seed.sidecars.has_finished(&namespace, epoch(shoot) - 1) {
            wrong.push(format!("{} took no final snapshot", seed.name));
        }
    }
    if told == Type::Delete {
        if !subject.network().await?.is_empty() {
            wrong.push("its network is still in the cloud".to_owned());
        }
        for name in subject.names() {
            if !subject.addresses(&name).await?.is_empty() {
                wrong.push(format!("its name {name} is still there"));
            }
        }
    }
    // The Shoot may have changed since, together with the checked objects: then no fault is reported. A final
    // removal stays a fact.
    let now = subject.shoots().get_opt(&subject.name).await?;
    let is_same = now.is_none_or(|now| {
        let same_operation = last(&now).map(|(type_, ..)| type_) == Some(told);
        epoch(&now) == epoch(shoot) && !is_gone && (same_operation || told == Type::Migrate)
    });
    Ok(if is_same { wrong } else { Vec::new() })
}

fn other(world: &World, seed: usize) -> &RunningSeed {
    &world.seeds[1 - seed]
}

/// All objects of a kind in a seed, at each change of an object.
fn changes<K>(seed: &RunningSeed) -> BoxStream<'static, watcher::Result<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let all: Api<K> = Api::all(seed.client());
    watcher(all, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed()
}

/// Never two control planes that write (I1).
async fn deployments(world: Arc<World>, seed: usize, notes: Arc<Mutex<Seen>>) {
    let own = &world.seeds[seed];
    let mut events = changes::<Deployment>(own);
    let mut known = BTreeSet::new();
    while let Some(event) = events.next().await {
        let Ok(found) = event else { continue };
        let namespace = found.namespace().unwrap_or_default();
        let Some(name) = name_of(&namespace).filter(|_| writes(&found.name_any()) && runs(&found)) else {
            continue;
        };
        // The status changes often and does not matter here.
        if !known.insert((found.uid(), found.metadata.generation)) {
            continue;
        }
        if let Some(image) = image(&found) {
            let mut notes = lock(&notes);
            let images = notes.images.entry((name.to_owned(), own.name)).or_default();
            if images.last() != Some(&image) {
                images.push(image);
            }
        }
        let Ok(there) = writers(other(&world, seed), &namespace).await else {
            continue;
        };
        let here: Api<Deployment> = Api::namespaced(own.client(), &namespace);
        let again = here.get_opt(&found.name_any()).await.ok().flatten();
        let still = again.is_some_and(|again| again.uid() == found.uid() && runs(&again));
        if still && !there.is_empty() {
            let what = format!(
                "{} has {} and {} has {there:?}",
                own.name,
                found.name_any(),
                other(&world, seed).name
            );
            lock(&notes).accuse(name, &what);
        }
    }
}

/// An etcd is opened only after the end of the former etcd (I2).
async fn etcds(world: Arc<World>, seed: usize, notes: Arc<Mutex<Seen>>) {
    let own = &world.seeds[seed];
    let mut events = changes::<Etcd>(own);
    let mut known = BTreeSet::new();
    while let Some(event) = events.next().await {
        let Ok(found) = event else { continue };
        let namespace = found.namespace().unwrap_or_default();
        let Some(name) = name_of(&namespace) else { continue };
        if !known.insert((found.uid(), found.metadata.generation)) {
            continue;
        }
        let both = async {
            let first = etcd_goes_on(own, &namespace).await?;
            let second = etcd_goes_on(other(&world, seed), &namespace).await?;
            Ok::<_, runtime::Error>(first && second && etcd_goes_on(own, &namespace).await?)
        };
        if both.await.unwrap_or_default() {
            let what = format!("both seeds have an etcd that goes on (seen in {})", own.name);
            lock(&notes).accuse(name, &what);
        }
    }
}

fn name_of(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(&namespace_of(""))
}

fn image(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let first = pod.containers.first()?;
    first
        .image
        .clone()
        .filter(|_| deployment.name_any() == "kube-apiserver")
}
