//! Rights of seeds to ShootStates and InternalSecrets, for the seed in `status.seedName` alone.
//!
//! Admission policies see no reads, so RBAC limits them. For each seed with shoots in a project the
//! controller keeps one ClusterRole, which names the objects, and one RoleBinding in the namespace of the
//! project. A Role would not do: members of a project may write Roles there, so a member could create the
//! Role first and bind it, and the controller would fill it. Policy `seed-rights` reserves the names of both
//! objects. Kubernetes refuses rights that this process does not have, so a compromised process can grant no
//! others. All namespaces are watched: a namespace that lost the label of a project still has grants to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::{
    constants::PROJECT_NAME,
    gardencore::{InternalSecret, Shoot},
    meta::ErrorCode,
};
use futures::{
    StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::Namespace,
        rbac::v1::{ClusterRole, RoleBinding},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Preconditions},
    core::PartialObjectMeta,
    runtime::{
        Controller,
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        apply::{self, Object},
    },
    controller::{Next, Reconciler, SharedWatch, runner},
    error::Explain as _,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::bounded::{ChunksOfStates, NamedChunks, at_most, report};
use crate::{
    Context, MANAGER,
    changes::{self, Keys, cache, concerned},
};

/// Between two applies of an unchanged ClusterRole, whose rules are not watched.
const RESYNC_PERIOD: Duration = Duration::from_secs(300);
/// The most InternalSecrets that a ClusterRole names, so that a seed cannot make the ClusterRole too large
/// for etcd. The InternalSecrets of a ShootState hold 1 MiB each.
const MOST_CHUNKS: usize = 4096;
/// Label of ClusterRoles and RoleBindings.
const LABEL: (&str, &str) = ("gardener.cloud/role", "seed-rights");
/// Begin of the names of ClusterRoles (then `<seed>:<namespace>`) and RoleBindings (then `<seed>`).
const PREFIX: &str = "gardener.cloud:seed:";
const RBAC: &str = "rbac.authorization.k8s.io";
const CORE: &str = "core.gardener.cloud";

type NamespaceMeta = PartialObjectMeta<Namespace>;
type ChunkMeta = PartialObjectMeta<InternalSecret>;
type RoleMeta = PartialObjectMeta<ClusterRole>;
type BindingMeta = PartialObjectMeta<RoleBinding>;

struct SeedRights {
    context: Context,
    caches: Caches,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let namespaces: Api<NamespaceMeta> = context.garden.cluster_wide();
    let shoots = context.shoots.clone();
    let (caches, changed) = Caches::watch(&context);
    let controller = Controller::new(namespaces.clone(), watcher::Config::default()).reconcile_on(changed);
    let settings = context.runner();
    let reconciler = Arc::new(SeedRights { context, caches });
    let running = runner::run(controller, move |_| namespaces.clone(), reconciler, settings);
    shoots.run_beside(running).await;
}

/// All objects of the garden from which rights follow, and the rights that were granted.
struct Caches {
    shoots: SharedWatch<Shoot>,
    chunks: Store<ChunkMeta>,
    roles: Store<RoleMeta>,
    bindings: Store<BindingMeta>,
    listed: OnceCell<()>,
}

impl Caches {
    /// The caches, and the namespaces to which each change belongs.
    fn watch(context: &Context) -> (Self, BoxStream<'static, ObjectRef<NamespaceMeta>>) {
        let garden = &context.garden;
        let granted = || watcher::Config::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let shoots = context.shoots.clone();
        let of_shoots = concerned(&shoots, of_namespace, content);
        let (chunks, of_chunks) = cache(garden.all(), watcher::Config::default(), of_namespace);
        let (roles, of_roles) = cache(garden.cluster_wide(), granted(), |role: &RoleMeta| {
            let namespace = seed_and_namespace(&role.name_any()).map(|(_, namespace)| namespace.to_owned());
            namespace.into_iter().collect()
        });
        let (bindings, of_bindings) = cache(garden.all(), granted(), of_namespace);
        let changed = select_all([of_shoots, of_chunks, of_roles, of_bindings]);
        let caches = Self {
            shoots,
            chunks,
            roles,
            bindings,
            listed: OnceCell::new(),
        };
        (
            caches,
            changed.map(|namespace| ObjectRef::new(&namespace)).boxed(),
        )
    }

    /// Waits until each cache was filled once. Before that a right could be missing or stale.
    async fn ready(&self) -> Result<()> {
        let ended = |_| Error::transient("the watch of the garden has ended");
        let listed = async {
            self.shoots.wait_until_ready().await?;
            self.chunks.wait_until_ready().await.map_err(ended)?;
            self.roles.wait_until_ready().await.map_err(ended)?;
            self.bindings.wait_until_ready().await.map_err(ended)
        };
        // A store wakes one waiter only, so a single waiter waits for all.
        self.listed.get_or_try_init(|| listed).await?;
        Ok(())
    }

    /// The rights of each seed in a namespace.
    fn wanted(&self, namespace: &str) -> BTreeMap<String, Rights> {
        let mut wanted: BTreeMap<String, Rights> = BTreeMap::new();
        let mut chunks: BTreeMap<String, ChunksOfStates> = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for shoot in in_namespace(&self.shoots.store(), namespace) {
            if let Some(seed) = host(&shoot) {
                let rights = wanted.entry(seed.to_owned()).or_default();
                rights.shoots.insert(shoot.name_any());
                hosts.insert(shoot.name_any(), seed.to_owned());
            }
        }
        for chunk in in_namespace(&self.chunks, namespace) {
            let Some(state) = state_of(&chunk) else { continue };
            if let Some(seed) = hosts.get(state) {
                let of_seed = chunks.entry(seed.clone()).or_default();
                let of_state = of_seed.entry(state.to_owned()).or_default();
                of_state.insert(chunk.name_any());
            }
        }
        for (seed, chunks) in chunks {
            if let Some(rights) = wanted.get_mut(&seed) {
                rights.chunks = at_most(MOST_CHUNKS, chunks);
            }
        }
        wanted
    }

    /// Seeds with a ClusterRole for this namespace or a RoleBinding in it.
    fn granted(&self, namespace: &str) -> BTreeSet<String> {
        let roles = self.roles.state().into_iter().filter_map(|role| {
            let name = role.name_any();
            let (seed, of) = seed_and_namespace(&name)?;
            (of == namespace).then(|| seed.to_owned())
        });
        let bindings = in_namespace(&self.bindings, namespace)
            .filter_map(|binding| Some(binding.name_any().strip_prefix(PREFIX)?.to_owned()));
        roles.chain(bindings).collect()
    }
}

fn in_namespace<K>(store: &Store<K>, namespace: &str) -> impl Iterator<Item = Arc<K>>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let objects = store.state().into_iter();
    objects.filter(move |object| object.meta().namespace.as_deref() == Some(namespace))
}

fn of_namespace<K: ResourceExt>(object: &K) -> Keys {
    object.namespace().into_iter().collect()
}

/// The fields of a Shoot from which rights follow.
fn content(shoot: &Shoot) -> u64 {
    changes::hash((shoot.uid(), host(shoot)))
}

fn host(shoot: &Shoot) -> Option<&str> {
    shoot.status.as_ref()?.seed_name.as_deref()
}

/// Seed and namespace in the name of a ClusterRole.
fn seed_and_namespace(role: &str) -> Option<(&str, &str)> {
    role.strip_prefix(PREFIX)?.split_once(':')
}

/// The ShootState to which an InternalSecret belongs. A policy lets only the host of the shoot state that.
fn state_of(chunk: &ChunkMeta) -> Option<&str> {
    let owner = chunk.metadata.owner_references.as_ref()?.first()?;
    (owner.kind == "ShootState").then_some(owner.name.as_str())
}

impl Reconciler<NamespaceMeta> for SeedRights {
    const NAME: &'static str = "seed-rights";

    async fn apply(&self, namespace: Arc<NamespaceMeta>) -> Result<Next> {
        self.caches.ready().await?;
        let name = namespace.name_any();
        let roles: Api<ClusterRole> = self.context.garden.cluster_wide();
        let bindings: Api<RoleBinding> = self.context.garden.namespaced(&name);
        let granted = self.caches.granted(&name);
        let wanted = if is_of_project(&namespace) {
            self.caches.wanted(&name)
        } else {
            BTreeMap::new()
        };
        if wanted.is_empty() && granted.is_empty() {
            return Ok(Next::Change);
        }
        let mut failed = None;
        for seed in granted.iter().filter(|seed| !wanted.contains_key(*seed)) {
            let ended = end(&bindings, &roles, seed, &name).await;
            failed = failed.or(ended.err());
        }
        // The error of one seed keeps no other seed from its rights, nor a former host from losing rights.
        for (seed, rights) in &wanted {
            let granted = grant(&bindings, &roles, seed, &namespace, rights).await;
            failed = failed.or(granted.err());
            failed = failed.or(self.report_left_out(&namespace, seed, rights).await);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(Next::After(RESYNC_PERIOD))
    }

    /// ClusterRoles end with the namespace by their owner reference.
    async fn cleanup(&self, namespace: Arc<NamespaceMeta>) -> Result<Next> {
        // Shoots in it may still be restored and deleted.
        self.apply(namespace).await
    }
}

impl SeedRights {
    /// Reports InternalSecrets that the ClusterRole of a seed does not name. The Event has a reason of its
    /// own, because the API server keeps the first note of Events with the same reason.
    async fn report_left_out(&self, namespace: &NamespaceMeta, seed: &str, rights: &Rights) -> Option<Error> {
        if rights.chunks.left_out.is_empty() {
            return None;
        }
        let why = report(seed, &namespace.name_any(), MOST_CHUNKS, &rights.chunks.left_out);
        let events = &self.context.events;
        events
            .answer_with_warning(namespace, "InternalSecretsLeftOut", &why)
            .await;
        Some(Error::config(ErrorCode::ErrConfigurationProblem, why))
    }
}

/// Policies let garden-controller-manager grant rights only in a namespace with this label.
fn is_of_project(namespace: &NamespaceMeta) -> bool {
    namespace.labels().contains_key(PROJECT_NAME)
}

/// Takes the rights of a seed without shoots in the namespace away.
async fn end(
    bindings: &Api<RoleBinding>,
    roles: &Api<ClusterRole>,
    seed: &str,
    namespace: &str,
) -> Result<()> {
    apply::delete(bindings, &binding_name(seed)).await?;
    apply::delete(roles, &role_name(seed, namespace)).await
}

/// Grants exactly these rights.
async fn grant(
    bindings: &Api<RoleBinding>,
    roles: &Api<ClusterRole>,
    seed: &str,
    namespace: &NamespaceMeta,
    rights: &Rights,
) -> Result<()> {
    let role = decode(role(seed, namespace, rights))?;
    MANAGER.apply::<ClusterRole>(roles, &role).await?;
    let binding: RoleBinding = decode(binding(seed, &namespace.name_any()))?;
    let Err(error) = MANAGER.apply(bindings, &binding).await else {
        return Ok(());
    };
    if !delete_unlike(bindings, &binding).await? {
        return Err(error);
    }
    MANAGER.apply(bindings, &binding).await.map(drop)
}

/// Deletes a RoleBinding of this name that no write can make equal to `wanted`: Kubernetes lets nobody change
/// a roleRef, and policy `garden-controller-manager-role` refuses the labels of another writer. Returns
/// whether such a RoleBinding was there.
async fn delete_unlike(bindings: &Api<RoleBinding>, wanted: &RoleBinding) -> Result<bool> {
    let name = wanted.name_any();
    let found = bindings.get_opt(&name).await;
    let found = found.context(format_args!("could not read RoleBinding {name}"))?;
    let Some(found) = found.filter(|found| is_unlike(found, wanted)) else {
        return Ok(false);
    };
    let (namespace, role) = (found.namespace().unwrap_or_default(), &found.role_ref.name);
    tracing::warn!(
        namespace,
        name,
        role,
        "a RoleBinding of a reserved name is replaced"
    );
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: found.uid(),
            resource_version: found.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let deleted = bindings.delete(&name, &params).await;
    deleted.context(format_args!("could not delete RoleBinding {name}"))?;
    Ok(true)
}

fn is_unlike(found: &RoleBinding, wanted: &RoleBinding) -> bool {
    found.role_ref != wanted.role_ref || found.labels() != wanted.labels()
}

/// Objects of one namespace that one seed may read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rights {
    /// Names of Shoots, which are the names of their ShootStates.
    shoots: BTreeSet<String>,
    /// InternalSecrets of these ShootStates.
    chunks: NamedChunks,
}

fn role(seed: &str, namespace: &NamespaceMeta, rights: &Rights) -> Value {
    // RBAC cannot limit `create` by name. Policies refuse InternalSecrets of other shoots.
    let make = json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "verbs": ["create", "delete"]});
    let states = json!({"apiGroups": [CORE], "resources": ["shootstates"], "resourceNames": rights.shoots,
        "verbs": ["get", "patch"]});
    let mut rules = vec![states, make];
    // A rule without names would be a right to all InternalSecrets.
    let chunks = &rights.chunks.names;
    if !chunks.is_empty() {
        rules.push(
            json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "resourceNames": chunks, "verbs": ["get"]}),
        );
    }
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": namespace.name_any(),
        "uid": namespace.uid().unwrap_or_default()});
    json!({
        "metadata": {"name": role_name(seed, &namespace.name_any()), "labels": {(LABEL.0): LABEL.1}, "ownerReferences": [owner]},
        "rules": rules,
    })
}

fn binding(seed: &str, namespace: &str) -> Value {
    json!({
        "metadata": {"name": binding_name(seed), "labels": {(LABEL.0): LABEL.1}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_name(seed, namespace)},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": format!("gardener.cloud:system:seed:{seed}")}],
    })
}

fn role_name(seed: &str, namespace: &str) -> String {
    format!("{PREFIX}{seed}:{namespace}")
}

fn binding_name(seed: &str) -> String {
    format!("{PREFIX}{seed}")
}

fn decode<K: serde::de::DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object).map_err(|error| Error::bug("generated object is invalid").caused_by(error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn no_rule_reads_without_names() {
        let namespace: NamespaceMeta =
            serde_json::from_value(json!({"metadata": {"name": "garden-dev", "uid": "u"}})).unwrap();
        for chunks in [names(&[]), names(&["web.state-1-0"])] {
            let rights = Rights {
                shoots: names(&["web"]),
                chunks: NamedChunks {
                    names: chunks,
                    left_out: BTreeMap::new(),
                },
            };
            let role: ClusterRole = decode(role("a", &namespace, &rights)).unwrap();
            for rule in role.rules.unwrap() {
                let reads = rule
                    .verbs
                    .iter()
                    .any(|verb| ["get", "list", "watch", "*"].contains(&verb.as_str()));
                assert_eq!(reads, rule.resource_names.is_some_and(|names| !names.is_empty()));
            }
        }
    }

    #[test]
    fn the_name_of_a_role_gives_seed_and_namespace() {
        assert_eq!(
            seed_and_namespace(&role_name("seed-a", "garden-dev")),
            Some(("seed-a", "garden-dev"))
        );
        assert_eq!(seed_and_namespace("gardener.cloud:system:seeds"), None);
    }

    #[test]
    fn a_binding_that_no_write_can_fix_is_replaced() {
        let wanted: RoleBinding = decode(binding("a", "garden-dev")).unwrap();
        assert!(!is_unlike(&wanted, &wanted));
        for (path, value) in [
            ("/roleRef/name", json!("view")),
            ("/roleRef/kind", json!("Role")),
            ("/metadata/labels", json!({(LABEL.0): LABEL.1, "x": "y"})),
        ] {
            let mut other = binding("a", "garden-dev");
            *other.pointer_mut(path).unwrap() = value;
            assert!(is_unlike(&decode(other).unwrap(), &wanted), "{path}");
        }
        // A write replaces the subjects.
        let mut bound_to_another = binding("a", "garden-dev");
        bound_to_another["subjects"] = json!([]);
        assert!(!is_unlike(&decode(bound_to_another).unwrap(), &wanted));
    }

    #[test]
    fn a_namespace_is_of_a_project_by_the_label() {
        let namespace = |labels: Value| -> NamespaceMeta {
            serde_json::from_value(json!({"metadata": {"name": "garden-dev", "labels": labels}})).unwrap()
        };
        assert!(is_of_project(&namespace(json!({(PROJECT_NAME): "dev"}))));
        assert!(!is_of_project(&namespace(
            json!({"gardener.cloud/role": "project"})
        )));
    }
}
