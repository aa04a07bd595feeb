//! The Secrets of the garden that the owner of a Shoot reads: pure decisions.
//!
//! The Secret of a binding counts, because policy `binding-credentials` accepts only a binding whose author
//! may read the Secret. The Secret of the Shoot's own DNS provider counts by policy `shoot-dns-credentials`.
//! A bucket counts where a hand-over names the seed of the bucket, or the Shoot records the bucket as the
//! source of a restore. The Secret is in the namespace of the seed of the bucket: the gardenlet of a seed can
//! only give its own credentials away.

use std::{collections::BTreeSet, mem, sync::Arc};

use api::{
    gardencore::{BackupBucket, SecretBinding, SecretBindingFields, Shoot},
    meta::ObjectReference,
    security::{CredentialsBinding, CredentialsBindingFields},
};
use futures::{
    StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::credentials::{data_sources, dns_secret, own_secret, seed_namespace};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    controller::runner,
};

use crate::changes::{Keys, cache, cache_trimmed};

/// The objects that lead from a Shoot to Secrets.
#[derive(Clone)]
pub(super) struct SecretSources {
    pub(super) secret_bindings: Store<SecretBinding>,
    pub(super) credentials_bindings: Store<CredentialsBinding>,
    pub(super) buckets: Store<BackupBucket>,
}

/// Namespace and name of a Secret.
type SecretKey = (String, String);

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
        // As in the gardenlet: a CredentialsBinding replaces a SecretBinding.
        let cloud = if let Some(name) = &spec.credentials_binding_name {
            let binding = self
                .credentials_bindings
                .get(&ObjectRef::new(name).within(&namespace));
            binding.and_then(|binding| of_credentials_binding(&binding))
        } else if let Some(name) = &spec.secret_binding_name {
            let binding = self.secret_bindings.get(&ObjectRef::new(name).within(&namespace));
            binding.and_then(|binding| of_secret_binding(&binding))
        } else {
            None
        };
        let dns = dns_secret(shoot).map(|name| (namespace, name.to_owned()));
        let sources = data_sources(shoot);
        let buckets = sources.iter().flat_map(|seed| self.buckets_of(seed));
        // An administrator may record a bucket of a seed that is in no list.
        let recorded = self.source_bucket(shoot).filter(|_| !sources.is_empty());
        let recorded = recorded.and_then(|(bucket, seed)| of_bucket(&bucket, &seed));
        let all = cloud.into_iter().chain(dns).chain(buckets).chain(recorded);
        all.filter(|(_, name)| !name.is_empty()).collect()
    }

    /// Secrets with the credentials of the buckets of a seed, in the namespace of the seed.
    fn buckets_of(&self, seed: &str) -> Vec<SecretKey> {
        let buckets = self.buckets.state().into_iter();
        let of_seed = buckets.filter(|bucket| bucket.spec.seed_name.as_deref() == Some(seed));
        of_seed.filter_map(|bucket| of_bucket(&bucket, seed)).collect()
    }

    /// The recorded bucket of the Shoot, and the seed of the bucket, if that seed is not the host.
    fn source_bucket(&self, shoot: &Shoot) -> Option<(Arc<BackupBucket>, String)> {
        let bucket = self.buckets.get(&ObjectRef::new(recorded_source(shoot)?))?;
        let seed = bucket.spec.seed_name.clone().filter(|seed| !seed.is_empty())?;
        let status = shoot.status.as_ref();
        let host = status.and_then(|status| status.seed_name.as_ref());
        (host != Some(&seed)).then_some((bucket, seed))
    }

    /// Namespaces whose rights a Shoot changes, without the namespaces of its bindings. The namespace of the
    /// recorded bucket counts after the restore, too, so that the right ends there.
    pub(super) fn namespaces_of_shoot(&self, shoot: &Shoot) -> Keys {
        let recorded = self.source_bucket(shoot).map(|(_, seed)| seed);
        let seeds = data_sources(shoot).into_iter().chain(recorded);
        let sources = seeds.map(|seed| seed_namespace(&seed));
        sources.chain(shoot.namespace()).collect()
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

/// Name of the bucket that the Shoot records as the source of the present epoch. Policy `shoot-ownership`
/// lets only garden-controller-manager and users with the verb `repair` name a bucket here.
pub(super) fn recorded_source(shoot: &Shoot) -> Option<&str> {
    let record = shoot.status.as_ref()?.ownership.as_ref()?;
    record.recorded_source_bucket()
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

fn trim_metadata(metadata: &mut ObjectMeta) {
    let whole = mem::take(metadata);
    *metadata = ObjectMeta {
        name: whole.name,
        namespace: whole.namespace,
        uid: whole.uid,
        resource_version: whole.resource_version,
        ..ObjectMeta::default()
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
        let bucket = |name: &str, seed: &str, namespace: &str| {
            json!({"metadata": {"name": name}, "spec": {"seedName": seed, "provider": {"type": "t", "region": "r"},
                "credentialsRef": secret(json!(namespace), "backup")}})
        };
        SecretSources {
            secret_bindings: store(vec![
                json!({"metadata": meta("near"), "secretRef": {"name": "cloud"}}),
                json!({"metadata": meta("far"), "secretRef": {"name": "cloud", "namespace": "garden-other"}}),
            ]),
            credentials_bindings: store(vec![
                json!({"metadata": meta("near"), "provider": {"type": "t"}, "credentialsRef": secret(json!(null), "account")}),
                json!({"metadata": meta("odd"), "provider": {"type": "t"},
                    "credentialsRef": {"kind": "WorkloadIdentity", "name": "account", "namespace": "garden-dev"}}),
            ]),
            buckets: store(vec![
                bucket("own", "a", "seed-a"),
                bucket("foreign", "b", "garden"),
                bucket("unrelated", "c", "seed-c"),
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
            json!({}),
        ] {
            assert!(of(nothing).is_empty());
        }
        let dns = json!({"dns": {"providers": [{"type": "t", "secretName": "dns"}]}});
        assert_eq!(of(dns), ["garden-dev/dns"]);
    }

    #[test]
    fn the_owner_of_a_shoot_reads_the_bucket_of_a_former_seed_until_the_restore_has_ended() {
        let of = |phase: &str, source: &str| {
            let status = json!({"seedName": "d", "ownership": {"epoch": 2, "phase": phase,
                "source": {"name": source, "epoch": 1}}});
            read_by(&json!({}), &status)
        };
        assert_eq!(of("Claiming", "a"), ["seed-a/backup"]);
        assert!(of("Held", "a").is_empty());
        // The seed of the bucket names a Secret that is not its own.
        assert!(of("Claiming", "b").is_empty());
    }

    /// The status of a restore from seed `x`, with this recorded bucket.
    fn recorded(phase: &str, bucket: &str, epoch: i64) -> Value {
        json!({"seedName": "d", "ownership": {"epoch": 2, "phase": phase, "source": {"name": "x", "epoch": 1},
            "sourceBucket": {"name": bucket, "epoch": epoch}}})
    }

    /// Else a restore would wait without end for the bucket that an administrator has recorded.
    #[test]
    fn the_owner_of_a_shoot_reads_the_recorded_bucket_until_the_restore_has_ended() {
        let of = |phase: &str, bucket: &str, epoch: i64| read_by(&json!({}), &recorded(phase, bucket, epoch));
        for phase in ["Claiming", "Opening"] {
            assert_eq!(of(phase, "unrelated", 1), ["seed-c/backup"], "{phase}");
        }
        for phase in ["Held", "Leaving", "Sealing"] {
            assert!(of(phase, "unrelated", 1).is_empty(), "{phase}");
        }
        // A Secret of a different namespace, a bucket that is missing, and a record of an earlier epoch.
        assert!(of("Claiming", "foreign", 1).is_empty());
        assert!(of("Claiming", "missing", 1).is_empty());
        assert!(of("Claiming", "unrelated", 7).is_empty());
    }

    #[test]
    fn a_change_of_a_shoot_concerns_the_namespace_of_the_recorded_bucket() {
        for (phase, wanted) in [
            ("Claiming", ["garden-dev", "seed-c", "seed-x"].as_slice()),
            ("Held", ["garden-dev", "seed-c"].as_slice()),
        ] {
            let shoot = shoot(&json!({}), &recorded(phase, "unrelated", 1));
            let namespaces = sources().namespaces_of_shoot(&shoot);
            assert!(namespaces.iter().eq(wanted), "{phase}: {namespaces:?}");
        }
    }

    #[test]
    fn a_change_of_a_shoot_concerns_the_namespaces_of_its_secrets() {
        let status = json!({"seedName": "d", "formerSeeds": [{"name": "a", "epoch": 1}]});
        let namespaces = sources().namespaces_of_shoot(&shoot(&json!({}), &status));
        let wanted = ["garden-dev", "seed-a"].map(str::to_owned);
        assert_eq!(namespaces, wanted.into());
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
        let migration = json!({"source": "b", "destination": "c", "generation": 1, "spec": {"region": "r"}});
        let mut shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}, "secretBindingName": "s",
                "credentialsBindingName": "c", "dns": {"providers": [{"type": "t", "secretName": "dns"}]}},
            "status": {"seedName": "c", "technicalID": "x", "formerSeeds": [{"name": "a", "epoch": 1}], "migration": migration,
                "ownership": {"epoch": 2, "phase": "Claiming", "source": {"name": "a", "epoch": 1},
                    "sourceBucket": {"name": "unrelated", "epoch": 1}}},
        }))
        .unwrap();
        let whole = shoot.clone();
        crate::shoots::trim(&mut shoot);
        let host = |shoot: &Shoot| shoot.status.as_ref().and_then(|status| status.seed_name.clone());
        assert_eq!(host(&shoot), host(&whole));
        let namespaces = |shoot: &Shoot| sources().namespaces_of_shoot(shoot);
        assert_eq!(namespaces(&shoot), namespaces(&whole));
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
