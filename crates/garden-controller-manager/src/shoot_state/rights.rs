//! Who may get at a ShootState and its InternalSecrets: the seed in `status.seedName` (threats.md 6).
//!
//! Admission sees no reads, so that these are cut by a Role and a RoleBinding of each Shoot, which name the
//! objects. The hand-over changes whom the binding names. Kubernetes lets nobody give rights that he does not
//! have himself: this process can give no others than those to these two kinds, whoever has taken it over.

use std::{sync::Arc, time::Duration};

use api::gardencore::{InternalSecret, Shoot};
use futures::future::{BoxFuture, FutureExt, Shared};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{
    Api, Resource, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use placement::its_place_alone;
use runtime::{Error, Next, Reconciler, Result, clusters::Cluster, runner};
use serde_json::{Value, json};

use crate::{Context, MANAGER, shoots};

/// When a Role is put right that somebody has changed: its content is not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// Role and RoleBinding have this label.
const LABEL: (&str, &str) = ("gardener.cloud/role", "shoot-state");
/// In front of the names of Roles and RoleBindings, which policy `garden-controller-manager-role` holds them
/// to.
const PREFIX: &str = "gardener.cloud:seed:shoot-state:";
const RBAC: &str = "rbac.authorization.k8s.io";
const CORE: &str = "core.gardener.cloud";

type ChunkMeta = PartialObjectMeta<InternalSecret>;

struct Rights {
    context: Context,
    chunks: Store<ChunkMeta>,
    /// Whether all InternalSecrets were seen. The store itself wakes only the one who asked it last.
    seen: Shared<BoxFuture<'static, bool>>,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let (chunks, writer) = reflector::store();
    let changes = watcher(context.garden.all::<ChunkMeta>(), watcher::Config::default())
        .default_backoff()
        .modify(|chunk| chunk.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    // A Shoot that is deleted in the foreground loses what belongs to it at once, and may have to be restored
    // first.
    let roles: Api<PartialObjectMeta<Role>> = context.garden.all();
    let bindings: Api<PartialObjectMeta<RoleBinding>> = context.garden.all();
    let made = || watcher::Config::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
    let controller = shoots::controller(&context, its_place_alone, wakes)
        .watches_stream(changes, |chunk: ChunkMeta| {
            let namespace = chunk.namespace()?;
            Some(ObjectRef::new(state_of(&chunk)?).within(&namespace))
        })
        .watches(roles, made(), |role| shoot_of(&role))
        .watches(bindings, made(), |binding| shoot_of(&binding));
    context
        .run(controller, |context| {
            let store = chunks.clone();
            let seen = async move { store.wait_until_ready().await.is_ok() };
            Rights {
                context,
                chunks,
                seen: seen.boxed().shared(),
            }
        })
        .await;
}

fn wakes(shoot: &Shoot) -> Option<u64> {
    runner::fingerprint((shoot.uid(), host(shoot)))
}

fn host(shoot: &Shoot) -> Option<&str> {
    shoot.status.as_ref()?.seed_name.as_deref()
}

/// The Shoot whose Role or RoleBinding it is.
fn shoot_of(made: &impl ResourceExt) -> Option<ObjectRef<Shoot>> {
    let shoot = made.name_any().strip_prefix(PREFIX)?.to_owned();
    Some(ObjectRef::new(&shoot).within(&made.namespace()?))
}

/// The ShootState that an InternalSecret belongs to. Policies let only the seed that has the shoot say so.
fn state_of(chunk: &ChunkMeta) -> Option<&str> {
    let owner = chunk.metadata.owner_references.as_ref()?.first()?;
    (owner.kind == "ShootState").then_some(owner.name.as_str())
}

impl Reconciler<Shoot> for Rights {
    const NAME: &'static str = "shoot-state-rights";

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let Some(seed) = host(&shoot) else {
            return Ok(Next::Change);
        };
        if !self.seen.clone().await {
            return Err(Error::transient("InternalSecrets are not watched any more"));
        }
        let namespace = shoot.namespace().unwrap_or_default();
        let name = shoot.name_any();
        let is_mine = |chunk: &Arc<ChunkMeta>| {
            chunk.namespace().as_deref() == Some(&namespace) && state_of(chunk) == Some(&name)
        };
        let chunks = self.chunks.state().into_iter().filter(is_mine);
        let mut chunks: Vec<_> = chunks.map(|chunk| chunk.name_any()).collect();
        chunks.sort();
        let roles: Api<Role> = self.context.garden.namespaced(&namespace);
        let bindings: Api<RoleBinding> = self.context.garden.namespaced(&namespace);
        MANAGER.apply(&roles, &decode(role(&shoot, &chunks))?).await?;
        MANAGER.apply(&bindings, &decode(binding(&shoot, seed))?).await?;
        Ok(Next::After(LOOK_AGAIN))
    }

    /// They are needed to the end: a Shoot that is deleted after its hand-over is restored before it is taken
    /// down. They follow the Shoot by their owner reference.
    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.apply(shoot).await
    }
}

fn role(shoot: &Shoot, chunks: &[String]) -> Value {
    // That these are of this shoot, and no others, is the policies' to see: a name that does not exist yet
    // cannot be given.
    let make = json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "verbs": ["create", "delete"]});
    let state = json!({"apiGroups": [CORE], "resources": ["shootstates"], "resourceNames": [shoot.name_any()],
        "verbs": ["get", "patch"]});
    let mut rules = vec![state, make];
    // Without names it would be a right to all of them.
    if !chunks.is_empty() {
        rules.push(json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "resourceNames": chunks, "verbs": ["get"]}));
    }
    json!({"metadata": metadata(shoot), "rules": rules})
}

fn binding(shoot: &Shoot, seed: &str) -> Value {
    json!({
        "metadata": metadata(shoot),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name(shoot)},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": format!("gardener.cloud:system:seed:{seed}")}],
    })
}

fn name(shoot: &Shoot) -> String {
    format!("{PREFIX}{}", shoot.name_any())
}

/// Nothing that is here holds up the Shoot's deletion, also not one in the foreground.
fn metadata(shoot: &Shoot) -> Value {
    json!({"name": name(shoot), "labels": {(LABEL.0): LABEL.1}, "ownerReferences": [shoot.owner_ref(&())]})
}

fn decode<K: serde::de::DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object)
        .map_err(|error| Error::bug(format!("an object that was built here is none: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nothing_can_be_read_without_a_name() {
        let mut shoot = Shoot::new("web", api::gardencore::ShootSpec::default());
        shoot.metadata.uid = Some("u".into());
        for chunks in [vec![], vec!["web.state-1-0".to_owned()]] {
            let role: Role = decode(role(&shoot, &chunks)).unwrap();
            for rule in role.rules.unwrap() {
                let reads = rule
                    .verbs
                    .iter()
                    .any(|verb| ["get", "list", "watch", "*"].contains(&verb.as_str()));
                assert_eq!(reads, rule.resource_names.is_some_and(|names| !names.is_empty()));
            }
        }
    }
}
