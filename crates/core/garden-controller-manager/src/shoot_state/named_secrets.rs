//! The Secrets of the garden that the owner of a Shoot reads: pure decisions.
//!
//! The Secret of a binding counts, because policy `binding-credentials` accepts only a binding whose author
//! may read the Secret. The policy has checked the author in the namespace of that time. So a binding from
//! before the namespace of the Secret gives no right: the namespace belonged to a deleted project. The Secret
//! of the Shoot's own DNS provider counts by policy `shoot-dns-credentials`.
//!
//! The credentials of the bucket of a different seed follow the BackupEntries. The seed in `spec.seedName` of
//! an entry reads the Secret of the bucket in `spec.bucketName`, from the assignment until the entry is gone.
//! The deletion of backups needs the credentials, too. Only garden-controller-manager creates entries and
//! writes their `spec` (policies `backupentry-spec`, `gardenlet-backupentry`). `status.seedName` gives no
//! right: a former seed that does not release its entry would read the credentials of the new seed. The
//! Secret is in the namespace of the seed of the bucket: the gardenlet of a seed can only give its own
//! credentials away.

use std::{collections::BTreeSet, mem};

use api::{
    gardencore::{BackupBucket, BackupEntry, SecretBinding, SecretBindingFields, Shoot},
    meta::ObjectReference,
    security::{CredentialsBinding, CredentialsBindingFields},
};
use futures::{
    StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    ResourceExt,
    api::ObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::credentials::{dns_secret, own_secret, seed_namespace};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    controller::runner,
};

use crate::changes::{Keys, cache, cache_trimmed, trim_metadata};

/// The objects that lead from a Shoot to Secrets.
#[derive(Clone)]
pub(super) struct SecretSources {
    pub(super) secret_bindings: Store<SecretBinding>,
    pub(super) credentials_bindings: Store<CredentialsBinding>,
    pub(super) buckets: Store<BackupBucket>,
}

/// Namespace and name of a Secret.
type SecretKey = (String, String);

/// Begin of a key with the name of a bucket. The name of a namespace has no slash.
const BUCKET_KEY: &str = "bucket/";

impl SecretSources {
    /// The caches, and the namespaces that each change concerns.
    pub(super) fn watch(garden: &Garden) -> (Self, BoxStream<'static, String>) {
        // A user may write a large binding, within the bounds of policy `binding-size`.
        let (secret_bindings, of_secret) = cache_trimmed(
            garden.all(),
            runner::few_at_a_time(),
            trim_secret_binding,
            namespaces_of_secret_binding,
        );
        let (credentials_bindings, of_credentials) = cache_trimmed(
            garden.all(),
            runner::few_at_a_time(),
            trim_credentials_binding,
            namespaces_of_credentials_binding,
        );
        let config = watcher::Config::default();
        let (buckets, of_buckets) = cache(garden.cluster_wide(), config, namespaces_of_bucket);
        let sources = Self {
            secret_bindings,
            credentials_bindings,
            buckets,
        };
        (
            sources,
            select_all([of_secret, of_credentials, of_buckets]).boxed(),
        )
    }

    /// Waits until each cache was filled once.
    pub(super) async fn ready(&self) -> Result<()> {
        let ended = |_| Error::transient("the watch of the garden has ended");
        self.secret_bindings.wait_until_ready().await.map_err(ended)?;
        self.credentials_bindings
            .wait_until_ready()
            .await
            .map_err(ended)?;
        self.buckets.wait_until_ready().await.map_err(ended)
    }

    /// The Secrets that the owner of the Shoot reads, besides the kubeconfig of the Shoot. The namespace of a
    /// Secret may end the right, see [`Self::secrets_in`].
    pub(super) fn secrets_of(&self, shoot: &Shoot) -> BTreeSet<SecretKey> {
        let bound = self.bound_secret(shoot).map(|bound| bound.secret);
        named(bound, shoot).collect()
    }

    /// The names of the Secrets in this namespace that the owner of the Shoot reads.
    pub(super) fn secrets_in(&self, namespace: &ObjectMeta, shoot: &Shoot) -> BTreeSet<String> {
        let bound = self.bound_secret(shoot);
        let bound = bound.filter(|bound| !bound.is_older_than(namespace));
        let secrets = named(bound.map(|bound| bound.secret), shoot);
        let here = secrets.filter(|(of, _)| Some(of) == namespace.name.as_ref());
        here.map(|(_, name)| name).collect()
    }

    /// The Secret of the binding that the Shoot names. As in the gardenlet: a CredentialsBinding replaces a
    /// SecretBinding.
    fn bound_secret(&self, shoot: &Shoot) -> Option<BoundSecret> {
        let (namespace, spec) = (shoot.namespace().unwrap_or_default(), &shoot.spec);
        if let Some(name) = &spec.credentials_binding_name {
            let reference = ObjectRef::<CredentialsBinding>::new(name).within(&namespace);
            let binding = self.credentials_bindings.get(&reference)?;
            return BoundSecret::from_binding(&binding.metadata, of_credentials_binding(&binding)?);
        }
        let name = spec.secret_binding_name.as_ref()?;
        let reference = ObjectRef::<SecretBinding>::new(name).within(&namespace);
        let binding = self.secret_bindings.get(&reference)?;
        BoundSecret::from_binding(&binding.metadata, of_secret_binding(&binding)?)
    }

    /// The seed that reads the credentials of the bucket of a different seed by this entry, and the Secret
    /// with the credentials.
    pub(super) fn bucket_reader(&self, entry: &BackupEntry) -> Option<(String, SecretKey)> {
        let reader = entry.spec.seed_name.as_ref().filter(|seed| !seed.is_empty())?;
        let bucket = self.buckets.get(&ObjectRef::new(&entry.spec.bucket_name))?;
        let seed = bucket.spec.seed_name.as_ref().filter(|seed| !seed.is_empty())?;
        // In its own namespace, a seed reads each Secret.
        let secret = of_bucket(&bucket, seed).filter(|_| seed != reader)?;
        Some((reader.clone(), secret))
    }

    /// The namespaces of a key of [`keys_of_entry`]. The bucket may be unknown when the cache reads the
    /// entry, so the namespace is derived later.
    pub(super) fn namespaces_of_key(&self, key: &str) -> Keys {
        let Some(bucket) = key.strip_prefix(BUCKET_KEY) else {
            return Keys::from([key.to_owned()]);
        };
        let bucket = self.buckets.get(&ObjectRef::new(bucket));
        bucket
            .map(|bucket| namespaces_of_bucket(&bucket))
            .unwrap_or_default()
    }

    /// This namespace, and the namespaces with Secrets to which bindings of this namespace refer.
    pub(super) fn concerned_namespaces(&self, namespace: &str) -> Keys {
        let is_here = |found: Option<&str>| found == Some(namespace);
        let secret = self.secret_bindings.state().into_iter();
        let secret = secret
            .filter(|binding| is_here(binding.metadata.namespace.as_deref()))
            .filter_map(|binding| of_secret_binding(&binding));
        let credentials = self.credentials_bindings.state().into_iter();
        let credentials = credentials
            .filter(|binding| is_here(binding.metadata.namespace.as_deref()))
            .filter_map(|binding| of_credentials_binding(&binding));
        let named = secret.chain(credentials).map(|(namespace, _)| namespace);
        named.chain([namespace.to_owned()]).collect()
    }
}

/// The Secret of a binding.
struct BoundSecret {
    secret: SecretKey,
    /// When the binding was created.
    created: Option<Time>,
}

impl BoundSecret {
    /// A binding in deletion counts as missing. Else a finalizer keeps the right after an operator has deleted
    /// the binding.
    fn from_binding(binding: &ObjectMeta, secret: SecretKey) -> Option<Self> {
        let created = binding.creation_timestamp.clone();
        binding
            .deletion_timestamp
            .is_none()
            .then_some(Self { secret, created })
    }

    /// Whether the binding is from before the namespace. Both times have whole seconds.
    fn is_older_than(&self, namespace: &ObjectMeta) -> bool {
        let created = self.created.as_ref().zip(namespace.creation_timestamp.as_ref());
        created.is_some_and(|(binding, namespace)| binding < namespace)
    }
}

/// The Secret of the binding and the Secret of the DNS provider, without references that lack a name.
fn named(bound: Option<SecretKey>, shoot: &Shoot) -> impl Iterator<Item = SecretKey> {
    let dns = dns_secret(shoot).map(|name| (shoot.namespace().unwrap_or_default(), name.to_owned()));
    let all = bound.into_iter().chain(dns);
    all.filter(|(_, name)| !name.is_empty())
}

/// The namespace of an entry, whose Events the seeds of the entry report, and the bucket of the entry.
pub(super) fn keys_of_entry(entry: &BackupEntry) -> Keys {
    let bucket = format!("{BUCKET_KEY}{}", entry.spec.bucket_name);
    entry.namespace().into_iter().chain([bucket]).collect()
}

/// Keeps the identity of a binding, and the times of the creation and the deletion.
fn trim_binding_metadata(metadata: &mut ObjectMeta) {
    let created = metadata.creation_timestamp.take();
    trim_metadata(metadata);
    metadata.creation_timestamp = created;
}

/// Keeps the reference of a SecretBinding to its Secret.
fn trim_secret_binding(binding: &mut SecretBinding) {
    trim_binding_metadata(&mut binding.metadata);
    binding.spec = SecretBindingFields {
        secret_ref: mem::take(&mut binding.spec.secret_ref),
        ..SecretBindingFields::default()
    };
}

/// Keeps the reference of a CredentialsBinding to its Secret.
fn trim_credentials_binding(binding: &mut CredentialsBinding) {
    trim_binding_metadata(&mut binding.metadata);
    let reference = mem::take(&mut binding.spec.credentials_ref);
    binding.spec = CredentialsBindingFields {
        credentials_ref: ObjectReference {
            kind: reference.kind,
            namespace: reference.namespace,
            name: reference.name,
            ..ObjectReference::default()
        },
        ..CredentialsBindingFields::default()
    };
}

/// Namespaces whose rights a SecretBinding changes.
fn namespaces_of_secret_binding(binding: &SecretBinding) -> Keys {
    of_secret_binding(binding)
        .map(|(namespace, _)| namespace)
        .into_iter()
        .collect()
}

/// Namespaces whose rights a CredentialsBinding changes.
fn namespaces_of_credentials_binding(binding: &CredentialsBinding) -> Keys {
    of_credentials_binding(binding)
        .map(|(namespace, _)| namespace)
        .into_iter()
        .collect()
}

/// Namespaces whose rights a BackupBucket changes.
fn namespaces_of_bucket(bucket: &BackupBucket) -> Keys {
    bucket
        .spec
        .seed_name
        .iter()
        .map(|seed| seed_namespace(seed))
        .collect()
}

fn of_secret_binding(binding: &SecretBinding) -> Option<SecretKey> {
    let reference = &binding.spec.secret_ref;
    let namespace = reference.namespace.clone().or_else(|| binding.namespace())?;
    Some((namespace, reference.name.clone()?))
}

fn of_credentials_binding(binding: &CredentialsBinding) -> Option<SecretKey> {
    let reference = &binding.spec.credentials_ref;
    if reference.kind.as_deref() != Some("Secret") {
        return None;
    }
    let namespace = reference.namespace.clone().or_else(|| binding.namespace())?;
    Some((namespace, reference.name.clone()?))
}

fn of_bucket(bucket: &BackupBucket, seed: &str) -> Option<SecretKey> {
    let reference = bucket.spec.credentials_ref.as_ref()?;
    let name = own_secret(seed, reference).ok()?;
    Some((seed_namespace(seed), name.to_owned()))
}

#[cfg(test)]
#[path = "named_secrets_tests.rs"]
mod tests;
