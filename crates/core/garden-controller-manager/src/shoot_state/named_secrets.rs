//! The Secrets of the garden that the owner of a Shoot reads: pure decisions.
//!
//! The Secret of a binding counts, because policy `binding-credentials` accepts only a binding whose author
//! may read the Secret. The Secret of the Shoot's own DNS provider counts by policy `shoot-dns-credentials`.
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
use kube::{
    ResourceExt,
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

    /// The Secrets that the owner of the Shoot reads, besides the kubeconfig of the Shoot.
    pub(super) fn secrets_of(&self, shoot: &Shoot) -> BTreeSet<SecretKey> {
        let namespace = shoot.namespace().unwrap_or_default();
        let spec = &shoot.spec;
        // As in the gardenlet: a CredentialsBinding replaces a SecretBinding, and a binding in deletion counts
        // as missing. Else a finalizer keeps the right after an operator has deleted the binding.
        let cloud = if let Some(name) = &spec.credentials_binding_name {
            let binding = self
                .credentials_bindings
                .get(&ObjectRef::new(name).within(&namespace));
            binding
                .filter(|binding| binding.metadata.deletion_timestamp.is_none())
                .and_then(|binding| of_credentials_binding(&binding))
        } else if let Some(name) = &spec.secret_binding_name {
            let binding = self.secret_bindings.get(&ObjectRef::new(name).within(&namespace));
            binding
                .filter(|binding| binding.metadata.deletion_timestamp.is_none())
                .and_then(|binding| of_secret_binding(&binding))
        } else {
            None
        };
        let dns = dns_secret(shoot).map(|name| (namespace, name.to_owned()));
        let all = cloud.into_iter().chain(dns);
        all.filter(|(_, name)| !name.is_empty()).collect()
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

/// The namespace of an entry, whose Events the seeds of the entry report, and the bucket of the entry.
pub(super) fn keys_of_entry(entry: &BackupEntry) -> Keys {
    let bucket = format!("{BUCKET_KEY}{}", entry.spec.bucket_name);
    entry.namespace().into_iter().chain([bucket]).collect()
}

/// Keeps the reference of a SecretBinding to its Secret.
fn trim_secret_binding(binding: &mut SecretBinding) {
    trim_metadata(&mut binding.metadata);
    binding.spec = SecretBindingFields {
        secret_ref: mem::take(&mut binding.spec.secret_ref),
        ..SecretBindingFields::default()
    };
}

/// Keeps the reference of a CredentialsBinding to its Secret.
fn trim_credentials_binding(binding: &mut CredentialsBinding) {
    trim_metadata(&mut binding.metadata);
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use kube::runtime::{reflector, watcher::Event};
    use runtime::client::apply::Object;
    use serde_json::{Value, json};

    use super::*;

    fn store<K>(objects: Vec<Value>) -> Store<K>
    where
        K: Object + reflector::Lookup<DynamicType = ()>,
    {
        let (store, mut writer) = reflector::store();
        for object in objects {
            writer.apply_watcher_event(&Event::Apply(serde_json::from_value(object).unwrap()));
        }
        store
    }

    fn sources() -> SecretSources {
        let secret =
            |namespace: Value, name: &str| json!({"kind": "Secret", "namespace": namespace, "name": name});
        let meta = |name: &str| json!({"name": name, "namespace": "garden-dev"});
        let deleted = json!({"name": "deleted", "namespace": "garden-dev",
            "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let bucket = |name: &str, seed: &str, namespace: Value| {
            json!({"metadata": {"name": name}, "spec": {"seedName": seed, "provider": {"type": "t", "region": "r"},
                "credentialsRef": secret(namespace, "backup")}})
        };
        SecretSources {
            secret_bindings: store(vec![
                json!({"metadata": meta("near"), "secretRef": {"name": "cloud"}}),
                json!({"metadata": meta("far"), "secretRef": {"name": "cloud", "namespace": "garden-other"}}),
                json!({"metadata": deleted, "secretRef": {"name": "cloud"}}),
            ]),
            credentials_bindings: store(vec![
                json!({"metadata": meta("near"), "provider": {"type": "t"}, "credentialsRef": secret(json!(null), "account")}),
                json!({"metadata": deleted, "provider": {"type": "t"}, "credentialsRef": secret(json!(null), "account")}),
                json!({"metadata": meta("odd"), "provider": {"type": "t"},
                    "credentialsRef": {"kind": "WorkloadIdentity", "name": "account", "namespace": "garden-dev"}}),
            ]),
            buckets: store(vec![
                bucket("own", "a", json!("seed-a")),
                bucket("foreign", "b", json!("garden")),
                bucket("unrelated", "c", json!("seed-c")),
                bucket("unqualified", "a", json!(null)),
                bucket("empty", "a", json!("")),
            ]),
        }
    }

    fn shoot(spec: &Value, status: &Value) -> Shoot {
        let mut body = json!({"metadata": {"name": "web", "namespace": "garden-dev"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}}, "status": status});
        for (field, value) in spec.as_object().unwrap() {
            body["spec"][field] = value.clone();
        }
        serde_json::from_value(body).unwrap()
    }

    fn read_by(spec: &Value, status: &Value) -> Vec<String> {
        let secrets = sources().secrets_of(&shoot(spec, status));
        let paths = secrets
            .iter()
            .map(|(namespace, name)| format!("{namespace}/{name}"));
        paths.collect()
    }

    #[test]
    fn the_owner_of_a_shoot_reads_the_secrets_of_binding_and_dns() {
        let of = |spec: Value| read_by(&spec, &json!({"seedName": "d"}));
        assert_eq!(of(json!({"secretBindingName": "near"})), ["garden-dev/cloud"]);
        assert_eq!(of(json!({"secretBindingName": "far"})), ["garden-other/cloud"]);
        let both = json!({"secretBindingName": "far", "credentialsBindingName": "near"});
        assert_eq!(of(both), ["garden-dev/account"]);
        for nothing in [
            json!({"credentialsBindingName": "odd"}),
            json!({"secretBindingName": "missing"}),
            json!({"secretBindingName": "deleted"}),
            json!({"credentialsBindingName": "deleted"}),
            json!({}),
        ] {
            assert!(of(nothing).is_empty());
        }
        let dns = json!({"dns": {"providers": [{"type": "t", "secretName": "dns"}]}});
        assert_eq!(of(dns), ["garden-dev/dns"]);
    }

    fn reader_of(seed: &str, status: Option<&str>, bucket: &str) -> Option<String> {
        let entry = json!({"metadata": {"name": "e", "namespace": "garden-dev"},
            "spec": {"bucketName": bucket, "seedName": seed}, "status": {"seedName": status}});
        let entry: BackupEntry = serde_json::from_value(entry).unwrap();
        let (reader, (namespace, name)) = sources().bucket_reader(&entry)?;
        Some(format!("{reader} reads {namespace}/{name}"))
    }

    /// The entries of each phase are in the tests of `backup_entry_placement`.
    #[test]
    fn the_seed_of_an_entry_reads_the_credentials_of_its_bucket() {
        for (case, seed, status, bucket, wanted) in [
            ("own bucket", "a", Some("a"), "own", None),
            ("source entry", "b", None, "own", Some("b reads seed-a/backup")),
            (
                "source entry in use",
                "b",
                Some("b"),
                "own",
                Some("b reads seed-a/backup"),
            ),
            (
                "source entry that a former claimant has not released",
                "d",
                Some("b"),
                "own",
                Some("d reads seed-a/backup"),
            ),
            // Else seed b would read the credentials of the new seed.
            (
                "own entry that seed b has not released",
                "a",
                Some("b"),
                "own",
                None,
            ),
            ("a Secret of a different namespace", "a", None, "foreign", None),
            // A reference without a namespace means the namespace of the seed.
            (
                "no namespace",
                "b",
                None,
                "unqualified",
                Some("b reads seed-a/backup"),
            ),
            (
                "an empty namespace",
                "b",
                None,
                "empty",
                Some("b reads seed-a/backup"),
            ),
            ("a bucket that is missing", "a", None, "missing", None),
        ] {
            assert_eq!(reader_of(seed, status, bucket).as_deref(), wanted, "{case}");
        }
    }

    #[test]
    fn an_entry_concerns_its_namespace_and_the_seed_of_its_bucket() {
        let spec = json!({"bucketName": "own", "seedName": "b"});
        let entry = json!({"metadata": {"name": "e", "namespace": "garden-dev"}, "spec": spec});
        let keys = keys_of_entry(&serde_json::from_value(entry).unwrap());
        let namespaces = keys.iter().flat_map(|key| sources().namespaces_of_key(key));
        let namespaces: Vec<_> = namespaces.collect();
        assert_eq!(namespaces, ["seed-a", "garden-dev"]);
        assert!(sources().namespaces_of_key("bucket/missing").is_empty());
    }

    #[test]
    fn bindings_of_a_namespace_concern_the_namespaces_of_their_secrets() {
        let concerned = sources().concerned_namespaces("garden-dev");
        let wanted = ["garden-dev", "garden-other"].map(str::to_owned);
        assert_eq!(concerned, wanted.into());
        let elsewhere = sources().concerned_namespaces("garden-other");
        assert_eq!(elsewhere, ["garden-other".to_owned()].into());
    }

    /// A member of a project controls the size of a binding. The process holds the bindings of all projects.
    #[test]
    fn a_trimmed_binding_has_its_reference_and_no_large_field() {
        let large = "x".repeat(100_000);
        let metadata = json!({"name": "b", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7",
            "annotations": {"a": large}, "labels": {"l": large}, "finalizers": [large]});
        let quotas = json!([{"name": large}]);
        let mut secret: SecretBinding =
            serde_json::from_value(json!({"metadata": metadata, "quotas": quotas,
            "provider": {"type": large}, "secretRef": {"name": "cloud", "namespace": "garden-other"}}))
            .unwrap();
        let mut credentials: CredentialsBinding = serde_json::from_value(json!({"metadata": metadata,
            "quotas": quotas, "provider": {"type": large}, "credentialsRef": {"apiVersion": large, "kind": "Secret",
                "name": "cloud", "namespace": "garden-other", "uid": large, "fieldPath": large}}))
        .unwrap();
        let wanted = Some(("garden-other".to_owned(), "cloud".to_owned()));
        trim_secret_binding(&mut secret);
        trim_credentials_binding(&mut credentials);
        assert_eq!(of_secret_binding(&secret), wanted);
        assert_eq!(of_credentials_binding(&credentials), wanted);
        for kept in [
            serde_json::to_value(&secret).unwrap(),
            serde_json::to_value(&credentials).unwrap(),
        ] {
            assert!(kept.to_string().len() < 400, "{kept}");
            let metadata =
                json!({"name": "b", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7"});
            assert_eq!(kept["metadata"], metadata);
        }
    }

    /// A cache without these fields would end rights that a restore needs.
    #[test]
    fn a_trimmed_shoot_leads_to_the_same_secrets() {
        let mut shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}, "secretBindingName": "s",
                "credentialsBindingName": "c", "dns": {"providers": [{"type": "t", "secretName": "dns"}]}},
            "status": {"seedName": "c", "technicalID": "x"},
        }))
        .unwrap();
        let whole = shoot.clone();
        crate::shoots::trim(&mut shoot);
        let host = |shoot: &Shoot| shoot.status.as_ref().and_then(|status| status.seed_name.clone());
        assert_eq!(host(&shoot), host(&whole));
        let secrets = |shoot: &Shoot| {
            let spec = &shoot.spec;
            let dns = dns_secret(shoot).map(str::to_owned);
            (
                spec.credentials_binding_name.clone(),
                spec.secret_binding_name.clone(),
                dns,
            )
        };
        assert_eq!(secrets(&shoot), secrets(&whole));
        assert!(shoot.spec.region.is_empty());
    }
}
