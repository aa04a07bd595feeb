//! Rights of seeds to ShootStates, InternalSecrets and Secrets: of each Shoot for the seed in
//! `status.seedName` alone, and of the seed's own credentials in namespace `seed-<name>`. Besides, rights to
//! the credentials of a bucket of a different seed, for the seed of a BackupEntry, and to Events in a project
//! with a shoot or a BackupEntry of the seed. The destination of a valid grant to prepare may read the
//! InternalSecret of the grant, and no further object of the shoot.
//!
//! Admission policies see no reads, so RBAC limits them. For each seed with rights in a namespace the
//! controller keeps one ClusterRole, which names the objects, and one RoleBinding in the namespace. A Role
//! would not do: members of a project may write Roles there, so a member could create the Role first and bind
//! it, and the controller would fill it. Policy `seed-rights` reserves the names of both objects. This
//! process grants rights to Secrets that this process does not have (verbs `escalate` and `bind`), and policy
//! `garden-controller-manager-role` refuses all other grants. All namespaces are watched: a namespace that
//! lost the label of a project still has grants to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{
    constants::{PROJECT_NAME, ROLE},
    gardencore::{BackupEntry, Shoot},
    meta::ErrorCode,
};
use futures::{
    StreamExt,
    channel::mpsc,
    stream::{BoxStream, iter, select, select_all},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{ClusterRole, RoleBinding},
};
use kube::{
    Api, Resource, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::credentials::{dns_secret, seed_of_namespace};
use placement::{is_released, preparation, preparation_state_name};
use runtime::{
    Error, Result,
    client::{Cluster, apply::Object},
    controller::{Next, Reconciler, SharedWatch, runner},
};
use tokio::sync::OnceCell;

use super::{
    bounded::{ChunksOfStates, at_most, report},
    ended_preparations::{ChunkMeta, remove_ended},
    grant_writes::grant,
    grants::{LABEL, NamespaceMeta, PREFIX, Rights, seed_and_namespace},
    named_secrets::{SecretSources, keys_of_entry},
    withdrawal::{self, RoleMeta, end},
};
use crate::{
    Context, backup_entries,
    changes::{self, Keys, cache, concerned},
};

/// Between two applies of an unchanged ClusterRole, whose rules are not watched.
const RESYNC_PERIOD: Duration = Duration::from_secs(300);
/// The most InternalSecrets that a ClusterRole names, so that a seed cannot make the ClusterRole too large
/// for etcd. The InternalSecrets of a ShootState hold 1 MiB each.
const MOST_CHUNKS: usize = 4096;

type BindingMeta = PartialObjectMeta<RoleBinding>;

struct SeedRights {
    context: Context,
    caches: Caches,
    /// The namespaces that the controller watches.
    namespaces: Store<NamespaceMeta>,
    /// Seeds with access, and the namespaces to reconcile when a seed gets access.
    open: Mutex<BTreeSet<String>>,
    opened: mpsc::UnboundedSender<ObjectRef<NamespaceMeta>>,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let namespaces: Api<NamespaceMeta> = context.garden.cluster_wide();
    let (shoots, entries) = (context.shoots.clone(), context.backup_entries.clone());
    let (caches, changed) = Caches::watch(&context);
    let (opened, woken) = mpsc::unbounded();
    let controller = runner::controller(namespaces.clone(), watcher::Config::default(), |_| None)
        .reconcile_on(select(changed, woken));
    let settings = context.runner();
    let reconciler = Arc::new(SeedRights {
        context,
        caches,
        namespaces: controller.store(),
        open: Mutex::default(),
        opened,
    });
    let running = runner::run(controller, move |_| namespaces.clone(), reconciler, settings);
    shoots.run_beside(entries.run_beside(running)).await;
}

/// All objects of the garden from which rights follow, and the rights that were granted.
struct Caches {
    shoots: SharedWatch<Shoot>,
    entries: SharedWatch<BackupEntry>,
    chunks: Store<ChunkMeta>,
    roles: Store<RoleMeta>,
    bindings: Store<BindingMeta>,
    sources: SecretSources,
    listed: OnceCell<()>,
}

impl Caches {
    /// The caches, and the namespaces to which each change belongs.
    fn watch(context: &Context) -> (Self, BoxStream<'static, ObjectRef<NamespaceMeta>>) {
        let garden = &context.garden;
        let granted = || watcher::Config::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let (sources, of_sources) = SecretSources::watch(garden);
        let (shoots, entries) = (context.shoots.clone(), context.backup_entries.clone());
        let of_shoots = concerned(&shoots, of_namespace, content);
        let of_entries = concerned(&entries, keys_of_entry, backup_entries::content);
        let with_buckets = sources.clone();
        let of_entries = of_entries
            .flat_map(move |key| iter(with_buckets.namespaces_of_key(&key)))
            .boxed();
        let with_bindings = sources.clone();
        let of_shoots = of_shoots
            .flat_map(move |namespace| iter(with_bindings.concerned_namespaces(&namespace)))
            .boxed();
        let (chunks, of_chunks) = cache(garden.all(), runner::few_at_a_time(), of_namespace);
        let (roles, of_roles) = cache(garden.cluster_wide(), granted(), |role: &RoleMeta| {
            let namespace = seed_and_namespace(&role.name_any()).map(|(_, namespace)| namespace.to_owned());
            namespace.into_iter().collect()
        });
        let (bindings, of_bindings) = cache(garden.all(), granted(), of_namespace);
        let changed = select_all([
            of_shoots,
            of_entries,
            of_chunks,
            of_roles,
            of_bindings,
            of_sources,
        ]);
        let caches = Self {
            shoots,
            entries,
            chunks,
            roles,
            bindings,
            sources,
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
            self.entries.wait_until_ready().await?;
            self.chunks.wait_until_ready().await.map_err(ended)?;
            self.roles.wait_until_ready().await.map_err(ended)?;
            self.bindings.wait_until_ready().await.map_err(ended)?;
            self.sources.ready().await
        };
        // A store wakes one waiter only, so a single waiter waits for all.
        self.listed.get_or_try_init(|| listed).await?;
        Ok(())
    }

    /// The rights of each seed in a namespace.
    fn wanted(&self, namespace: &NamespaceMeta) -> BTreeMap<String, Rights> {
        let name = namespace.name_any();
        let own = own_seed(namespace).map(str::to_owned);
        let is_of_project = is_of_project(namespace);
        // Policies refuse grants in other namespaces.
        if !is_of_project && own.is_none() {
            return BTreeMap::new();
        }
        let mut wanted = if is_of_project {
            self.states(&name)
        } else {
            BTreeMap::new()
        };
        for shoot in self.shoots.store().state() {
            let Some(seed) = host(&shoot) else { continue };
            let here = self.sources.secrets_in(&namespace.metadata, &shoot);
            if !here.is_empty() {
                wanted.entry(seed.to_owned()).or_default().secrets.extend(here);
            }
        }
        if let Some(seed) = own {
            let readers = self.entries.store().state().into_iter();
            let readers = readers.filter_map(|entry| self.sources.bucket_reader(&entry));
            for (reader, (_, secret)) in readers.filter(|(_, (namespace, _))| *namespace == name) {
                wanted.entry(reader).or_default().secrets.insert(secret);
            }
            wanted.entry(seed).or_default().is_own = true;
        }
        wanted.retain(|_, rights| !rights.is_empty());
        wanted
    }

    /// The rights to ShootStates, to InternalSecrets and to Events in the namespace of a project.
    fn states(&self, namespace: &str) -> BTreeMap<String, Rights> {
        let mut wanted: BTreeMap<String, Rights> = BTreeMap::new();
        let mut chunks: BTreeMap<String, ChunksOfStates> = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for entry in in_namespace(&self.entries.store(), namespace) {
            for seed in seeds_of_entry(&entry) {
                wanted.entry(seed.to_owned()).or_default().reports = true;
            }
        }
        for shoot in in_namespace(&self.shoots.store(), namespace) {
            for seed in seeds_of_shoot(&shoot) {
                wanted.entry(seed.to_owned()).or_default().reports = true;
            }
            if let Some(seed) = host(&shoot) {
                let rights = wanted.entry(seed.to_owned()).or_default();
                rights.shoots.insert(shoot.name_any());
                hosts.insert(shoot.name_any(), seed.to_owned());
            }
            if let Some(granted) = preparation(&shoot) {
                let rights = wanted.entry(granted.destination.clone()).or_default();
                let name = preparation_state_name(&shoot.name_any(), granted);
                rights.prepared.insert(name);
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

    /// The namespaces in which rights of the seed follow from a Shoot or a BackupEntry.
    fn namespaces_of(&self, seed: &str) -> BTreeSet<String> {
        let mut namespaces = BTreeSet::new();
        for shoot in self.shoots.store().state() {
            if seeds_of_shoot(&shoot).any(|of_shoot| of_shoot == seed) {
                namespaces.extend(shoot.namespace());
            }
            if host(&shoot) == Some(seed) {
                let secrets = self.sources.secrets_of(&shoot).into_iter();
                namespaces.extend(secrets.map(|(namespace, _)| namespace));
            }
        }
        for entry in self.entries.store().state() {
            if seeds_of_entry(&entry).any(|of_entry| of_entry == seed) {
                namespaces.extend(entry.namespace());
            }
            let read = self.sources.bucket_reader(&entry);
            let read = read.filter(|(reader, _)| reader == seed);
            namespaces.extend(read.map(|(_, (namespace, _))| namespace));
        }
        namespaces
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
    let spec = &shoot.spec;
    let bindings = (&spec.credentials_binding_name, &spec.secret_binding_name);
    let seeds: Vec<_> = seeds_of_shoot(shoot).collect();
    let secrets = (bindings, dns_secret(shoot));
    let prepared = preparation(shoot).map(|granted| preparation_state_name(&shoot.name_any(), granted));
    changes::hash((shoot.uid(), host(shoot), seeds, secrets, prepared))
}

/// Seeds that report Events about a Shoot: the host, the seed of the next residency, the seed of a valid
/// grant to prepare, and former seeds that still clean up. Of a released Shoot only former seeds report.
fn seeds_of_shoot(shoot: &Shoot) -> impl Iterator<Item = &str> {
    let status = shoot.status.iter();
    let former = status.flat_map(|status| status.former_seeds.iter().map(|former| former.name.as_str()));
    let wanted = shoot.spec.seed_name.as_deref().filter(|_| !is_released(shoot));
    let prepares = preparation(shoot).map(|granted| granted.destination.as_str());
    let present = [host(shoot), wanted, prepares].into_iter();
    present.flatten().chain(former).filter(|seed| !seed.is_empty())
}

/// Seeds that report Events about a BackupEntry, which outlives the Shoot for a time.
fn seeds_of_entry(entry: &BackupEntry) -> impl Iterator<Item = &str> {
    let status = entry.status.as_ref();
    let host = status.and_then(|status| status.seed_name.as_deref());
    let seeds = [entry.spec.seed_name.as_deref(), host].into_iter();
    seeds.flatten().filter(|seed| !seed.is_empty())
}

/// The seed with rights to the Secrets of the Shoot. A finalizer of a user does not prolong these rights.
fn host(shoot: &Shoot) -> Option<&str> {
    let status = shoot.status.as_ref().filter(|_| !is_released(shoot))?;
    status.seed_name.as_deref()
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
        let ended = self.follow_access(&namespace).await;
        let roles: Api<ClusterRole> = self.context.garden.cluster_wide();
        let bindings: Api<RoleBinding> = self.context.garden.namespaced(&name);
        let granted = self.caches.granted(&name);
        let mut wanted = self.caches.wanted(&namespace);
        if wanted.is_empty() && granted.is_empty() {
            let removed = self.remove_ended_preparations(&name).await;
            return ended.and(removed).map(|()| Next::Change);
        }
        wanted.retain(|seed, _| withdrawal::has_access(&self.namespaces, seed));
        let mut failed = ended.err();
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
        // After the end of the right to read the object.
        failed = failed.or(self.remove_ended_preparations(&name).await.err());
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
    /// Ends the rights of a seed without access in all namespaces, and grants the rights of a seed that gets
    /// access. `namespace`: any namespace, also of no seed.
    async fn follow_access(&self, namespace: &NamespaceMeta) -> Result<()> {
        let name = namespace.name_any();
        let Some(seed) = seed_of_namespace(&name).filter(|_| !is_of_project(namespace)) else {
            return Ok(());
        };
        let has_access = withdrawal::gives_access(namespace);
        let is_new = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if has_access {
                open.insert(seed.to_owned())
            } else {
                open.remove(seed);
                false
            }
        };
        if is_new {
            for concerned in self.caches.namespaces_of(seed) {
                // The receiver ends with the process.
                let _ = self.opened.unbounded_send(ObjectRef::new(&concerned));
            }
        }
        if has_access {
            return Ok(());
        }
        withdrawal::end_everywhere(&self.context.garden, &self.caches.roles, seed).await
    }

    /// Deletes the InternalSecrets of preparations that have ended in this namespace.
    async fn remove_ended_preparations(&self, namespace: &str) -> Result<()> {
        let valid: BTreeSet<_> = in_namespace(&self.caches.shoots.store(), namespace)
            .filter_map(|shoot| {
                let granted = preparation(&shoot)?;
                Some(preparation_state_name(&shoot.name_any(), granted))
            })
            .collect();
        let present = in_namespace(&self.caches.chunks, namespace);
        let ended: Vec<_> = present
            .filter(|object| !valid.contains(&object.name_any()))
            .collect();
        remove_ended(&self.context.garden, namespace, &ended).await
    }

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

/// The seed whose credentials the namespace holds. Nothing can be bound in a namespace that ends.
fn own_seed(namespace: &NamespaceMeta) -> Option<&str> {
    let is_of_seed = namespace.labels().get(ROLE).is_some_and(|role| role == "seed")
        && !is_of_project(namespace)
        && namespace.metadata.deletion_timestamp.is_none();
    seed_of_namespace(namespace.metadata.name.as_deref()?).filter(|_| is_of_seed)
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rights_of_preparation_tests.rs"]
mod preparation_tests;
