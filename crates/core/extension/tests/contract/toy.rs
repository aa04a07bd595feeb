//! A small provider that keeps the contract, and can break the contract in one respect at a time. The cloud
//! is a list of things.
//!
//! The state changes in `migrate`: the state is sealed there, and a restore refuses an unsealed state. The
//! provider also creates a key that has to be carried; without the key, a restore refuses as well (RX-11,
//! RX-33).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use api::{
    extensions::Infrastructure,
    meta::{CrossVersionObjectReference, ErrorCode, NamedResourceReference, RawExtension},
};
use async_trait::async_trait;
use extension::{Actuator, Context, ExtensionReconciler, Outcome, Released, cleanup, reconciler::namespaced};
use extension_contract::{Contract, Proof, shoot_objects::ShootObjects};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, ResourceExt};
use runtime::{
    Error,
    client::{Cluster, apply},
    controller::finalizer,
    workload::manifests::{self, Manifests},
};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::{
    world::{Seeds, object, proven, reconciler},
    wrong::Wrong,
};

/// A cloud in which each thing has an owner.
#[derive(Default)]
pub struct Cloud {
    things: Mutex<BTreeMap<String, String>>,
    made: AtomicUsize,
    removed: AtomicUsize,
    /// The number of states created, across processes.
    states: AtomicUsize,
    refuses: AtomicBool,
}

impl Cloud {
    async fn call(&self) -> runtime::Result<()> {
        yield_now().await;
        if self.refuses.load(Ordering::SeqCst) {
            let code = ErrorCode::ErrInfraUnauthenticated;
            return Err(Error::config(
                code,
                "the cloud refuses the credentials: renew them",
            ));
        }
        Ok(())
    }

    async fn make(&self, owner: &str) -> runtime::Result<String> {
        self.call().await?;
        let id = format!("thing-{}", self.made.fetch_add(1, Ordering::SeqCst));
        self.things.lock().unwrap().insert(id.clone(), owner.to_owned());
        yield_now().await;
        Ok(id)
    }

    async fn find_by_owner(&self, owner: &str) -> runtime::Result<Option<String>> {
        self.call().await?;
        let things = self.things.lock().unwrap();
        Ok(things
            .iter()
            .find(|(_, other)| *other == owner)
            .map(|(id, _)| id.clone()))
    }

    async fn remove(&self, id: &str) -> runtime::Result<bool> {
        self.call().await?;
        self.removed.fetch_add(1, Ordering::SeqCst);
        Ok(self.things.lock().unwrap().remove(id).is_some())
    }
}

/// Reconciles Infrastructures; `wrong` selects the violation.
pub struct Toy {
    cloud: Arc<Cloud>,
    wrong: Wrong,
    /// Memory that a correct actuator does not have.
    memory: Mutex<Option<String>>,
}

/// ConfigMap that the provider writes into the seed.
const NOTE: &str = "toy";
/// ManagedResource whose objects are in the shoot.
const OBJECTS: &str = "toy-objects";
/// Longer than the fake resource-manager takes.
const SOON: Duration = Duration::from_secs(30);
/// Secret that the provider creates, and that has to be carried.
const KEY: &str = "toy-key";

impl Toy {
    /// Creates an actuator like a process at start.
    pub fn new(cloud: &Arc<Cloud>, wrong: Wrong) -> Self {
        Self {
            cloud: Arc::clone(cloud),
            wrong,
            memory: Mutex::default(),
        }
    }

    async fn thing(&self, context: &Context<Infrastructure>) -> runtime::Result<String> {
        let owner = context.namespace()?;
        if self.wrong == Wrong::RemembersInMemory {
            let known = self.memory.lock().unwrap().clone();
            let id = match known {
                Some(id) => id,
                None => self.cloud.make(&owner).await?,
            };
            *self.memory.lock().unwrap() = Some(id.clone());
            return Ok(id);
        }
        if self.wrong == Wrong::MakesASecond {
            return self.cloud.make(&owner).await;
        }
        match self.cloud.find_by_owner(&owner).await? {
            Some(id) => Ok(id),
            None => self.cloud.make(&owner).await,
        }
    }

    /// A task that a drop does not stop: creates things one by one, for longer than any check, on a machine
    /// of any speed.
    async fn make_detached(&self, owner: String) -> runtime::Result<()> {
        let cloud = Arc::clone(&self.cloud);
        let (answer, made) = tokio::sync::oneshot::channel();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let mut made = Ok(String::new());
            for _ in 0..600 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                made = cloud.make(&owner).await;
            }
            // The requester may be gone: this is the violation.
            let _ = answer.send(made);
        });
        task.detach_all();
        let made = made.await.map_err(|error| Error::bug(error.to_string()))?;
        made.map(drop)
    }

    async fn key(&self, context: &Context<Infrastructure>) -> runtime::Result<()> {
        let secrets: Api<Secret> = context.seed.namespaced(&context.namespace()?);
        if secrets.get_opt(KEY).await.map_err(Error::from)?.is_some() {
            return Ok(());
        }
        let labels = json!({"persist": "true", "of": "toy"});
        let key = json!({"metadata": {"name": KEY, "labels": labels}, "stringData": {"key": "once"}});
        let key: Secret = serde_json::from_value(key).map_err(|e| Error::bug(e.to_string()))?;
        context.manager.apply(&secrets, &key).await.map(drop)
    }

    async fn note(&self, context: &Context<Infrastructure>) -> runtime::Result<()> {
        let note = json!({"metadata": {"name": NOTE, "labels": {"of": "toy"}}});
        let note: ConfigMap = serde_json::from_value(note).map_err(|e| Error::bug(e.to_string()))?;
        let notes: Api<ConfigMap> = context.seed.namespaced(&context.namespace()?);
        context.manager.apply(&notes, &note).await.map(drop)
    }

    /// Deploys the objects in the shoot.
    async fn objects(&self, context: &Context<Infrastructure>) -> runtime::Result<()> {
        let manifests = Manifests::new(
            OBJECTS,
            &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "toy"}})],
        );
        let (seed, namespace) = (&context.seed, context.namespace()?);
        manifests.deploy(context.manager, seed, &namespace).await?;
        manifests.applied(seed, &namespace, SOON).await
    }

    /// Only these toys deploy objects, because the deployment slows the test down.
    fn keeps_objects(&self) -> bool {
        matches!(self.wrong, Wrong::KeepsObjects | Wrong::TakesObjectsAlong)
    }

    fn state(&self, id: &str, sealed: bool) -> RawExtension {
        let calls = self.cloud.states.fetch_add(1, Ordering::SeqCst);
        RawExtension(match self.wrong {
            Wrong::RestlessState => json!({"id": id, "sealed": sealed, "call": calls}),
            Wrong::GarbageState => json!("garbage"),
            _ => json!({"id": id, "sealed": sealed}),
        })
    }
}

#[async_trait]
impl Actuator<Infrastructure> for Toy {
    const NAME: &'static str = "toy";

    async fn reconcile(&self, context: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        if self.wrong == Wrong::NeverAnswers {
            std::future::pending::<()>().await;
        }
        if self.wrong == Wrong::ReadsStrictly {
            context.state::<BTreeMap<String, String>>()?;
        }
        let state: Value = context.state()?.unwrap_or_default();
        if self.wrong == Wrong::Detaches && self.cloud.removed.load(Ordering::SeqCst) > 0 {
            self.make_detached(context.namespace()?).await?;
        }
        let id = self.thing(context).await?;
        let done = async {
            self.key(context).await?;
            if self.keeps_objects() {
                self.objects(context).await?;
            }
            self.note(context).await
        };
        if let Err(error) = done.await {
            if self.wrong == Wrong::UndoesOnError {
                self.cloud.remove(&id).await?;
            }
            return Err(error);
        }
        if self.wrong == Wrong::StateTooLarge && !state.is_null() {
            let state = Some(RawExtension(json!({"id": "x".repeat(2_000_000)})));
            return Ok(Outcome {
                state,
                ..Outcome::none()
            });
        }
        let name = if self.wrong == Wrong::NamesWhatIsNot {
            "none"
        } else {
            KEY
        };
        let mut known_as = "key".to_owned();
        if self.wrong == Wrong::RestlessResources {
            let calls = self.cloud.states.load(Ordering::SeqCst);
            known_as = format!("key-{calls}");
        }
        let key = NamedResourceReference {
            name: known_as,
            resource_ref: CrossVersionObjectReference {
                api_version: Some("v1".into()),
                kind: "Secret".into(),
                name: name.into(),
            },
        };
        Ok(Outcome {
            state: Some(self.state(&id, state["sealed"] == true)),
            resources: Some(vec![key]),
            ..Outcome::none()
        })
    }

    async fn restore(&self, context: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        let namespace = context.namespace()?;
        if self.wrong == Wrong::IgnoresState {
            self.cloud.make(&namespace).await?;
            return self.reconcile(context).await;
        }
        if self.wrong == Wrong::BeginsEmpty {
            return self.reconcile(context).await;
        }
        let state: Value = context.state()?.unwrap_or_default();
        let secrets: Api<Secret> = context.seed.namespaced(&namespace);
        let key = secrets.get_opt(KEY).await.map_err(Error::from)?;
        if state["sealed"] != true || key.is_none() {
            let message = format!("not all was carried: {state}, key {}", key.is_some());
            return Err(Error::config(ErrorCode::ErrConfigurationProblem, message));
        }
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        let namespace = context.namespace()?;
        let state: Value = context.state()?.unwrap_or_default();
        let id = state["id"].as_str().unwrap_or_default().to_owned();
        let mut outcome = Outcome {
            state: Some(self.state(&id, true)),
            ..Outcome::none()
        };
        match self.wrong {
            Wrong::DeletesOnMigrate => drop(self.cloud.remove(&id).await?),
            Wrong::LeavesThings => return Ok(outcome),
            Wrong::LosesState => outcome.state = Some(RawExtension(Value::Null)),
            Wrong::RemovesTheKey => {
                apply::delete(&context.seed.namespaced::<Secret>(&namespace), KEY).await?;
            }
            Wrong::DeletesItself => {
                let own: Api<Infrastructure> = context.seed.namespaced(&namespace);
                finalizer::remove_all(&own, &context.object).await?;
                apply::delete(&own, &context.name()).await?;
            }
            _ => {}
        }
        self.remove_objects(context, self.wrong != Wrong::TakesObjectsAlong)
            .await?;
        cleanup::secrets(&context.seed, &namespace, "of=toy").await?;
        apply::delete(&context.seed.namespaced::<ConfigMap>(&namespace), NOTE).await?;
        Ok(outcome)
    }

    async fn delete(&self, context: &Context<Infrastructure>) -> runtime::Result<()> {
        let namespace = context.namespace()?;
        let found = self.cloud.find_by_owner(&namespace).await?;
        if self.wrong != Wrong::LeavesOutside {
            match found {
                Some(id) => drop(self.cloud.remove(&id).await?),
                None if self.wrong == Wrong::WantsToFindIt => {
                    let message = "there is nothing to delete";
                    return Err(Error::config(ErrorCode::ErrInfraDependencies, message));
                }
                None => {}
            }
        }
        if self.wrong == Wrong::LeavesInside {
            return Ok(());
        }
        self.clear(context).await
    }

    async fn force_delete(&self, context: &Context<Infrastructure>) -> runtime::Result<Released> {
        if self.wrong == Wrong::CannotBeForced {
            return self.delete(context).await.map(|()| Released::default());
        }
        let removed = self.delete(context).await;
        if self.wrong != Wrong::LeavesInsideByForce {
            self.clear(context).await?;
        }
        let left = removed
            .err()
            .map(|error| format!("a thing may be left behind: {error}"));
        let told = left.filter(|_| self.wrong != Wrong::LeavesSilently);
        Ok(Released {
            left_behind: told.into_iter().collect(),
        })
    }
}

impl Toy {
    async fn remove_objects(&self, context: &Context<Infrastructure>, keep: bool) -> runtime::Result<()> {
        if !self.keeps_objects() {
            return Ok(());
        }
        let (by, seed, namespace) = (context.manager, &context.seed, context.namespace()?);
        manifests::remove(by, seed, &namespace, OBJECTS, keep, SOON).await
    }

    async fn clear(&self, context: &Context<Infrastructure>) -> runtime::Result<()> {
        let namespace = context.namespace()?;
        self.remove_objects(context, false).await?;
        apply::delete(&context.seed.namespaced::<Secret>(&namespace), KEY).await?;
        apply::delete(&context.seed.namespaced::<ConfigMap>(&namespace), NOTE).await
    }
}

/// An Infrastructure as a gardenlet writes the object.
pub fn infrastructure(namespace: &str) -> Result<Infrastructure> {
    object(json!({
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": namespace}},
    }))
}

async fn note_in(notes: Api<ConfigMap>) -> Result<Value, String> {
    let note = notes.get_opt(NOTE).await.map_err(|e| e.to_string())?;
    Ok(json!(note.map(|note| note.name_any())))
}

/// Drives a toy in a separate shoot through the contract.
pub async fn prove(seeds: &Seeds, namespace: &str, wrong: Wrong) -> Result<Proof, String> {
    let shoot = seeds.shoot(namespace, ("cloudprovider", &[])).await;
    shoot.map_err(crate::world::text)?;
    let cloud = Arc::new(Cloud::default());
    let make = |seed: &Client| -> ExtensionReconciler<Infrastructure, Toy> {
        let by = reconciler(seed, namespaced, Toy::new(&cloud, wrong));
        if wrong == Wrong::NeverAnswers {
            return by.within(Duration::from_millis(100));
        }
        by
    };
    let wanted = infrastructure(namespace).map_err(crate::world::text)?;
    let in_shoot = ShootObjects::default();
    let _managers = [&seeds.a, &seeds.b].map(|seed| in_shoot.kept_by(seed, namespace));
    let notes = |seed: &Client| -> Api<ConfigMap> { Api::namespaced(seed.clone(), namespace) };
    let (notes_a, notes_b) = (notes(&seeds.a), notes(&seeds.b));
    let source: Api<Infrastructure> = Api::namespaced(seeds.a.clone(), namespace);
    let contract = Contract::new(|| make(&seeds.a), || make(&seeds.b), [wanted.clone(), wanted])
        .outside(Box::new(|| {
            let things = json!([*cloud.things.lock().unwrap(), in_shoot.list_objects()]);
            async move { Ok(things) }.boxed()
        }))
        .inside_source(Box::new(|| note_in(notes_a.clone()).boxed()))
        .inside_destination(Box::new(|| note_in(notes_b.clone()).boxed()))
        .refuse(Box::new(|| {
            cloud.refuses.store(true, Ordering::SeqCst);
            async { Ok(()) }.boxed()
        }));
    if wrong != Wrong::BeginsEmpty {
        return contract.prove().await;
    }
    // Only a state that is carried apart may be missing in the object.
    let apart = Box::new(|| {
        let source = source.clone();
        async move {
            let object = source.get("one").await.map_err(|e| e.to_string())?;
            let state = object.status.and_then(|status| status.default.state);
            Ok(state.map_or(Value::Null, |state| state.0))
        }
        .boxed()
    });
    contract.carried_apart(apart).prove().await
}

pub async fn keeps_it(seeds: &Seeds) -> Result<()> {
    proven(prove(seeds, "shoot--toy--right", Wrong::KeepsObjects).await)
}
