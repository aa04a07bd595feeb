//! The Secrets of Shoots with each kind of binding, and of BackupEntries.

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
    let dated = json!({"name": "dated", "namespace": "garden-dev",
        "creationTimestamp": "2026-01-01T00:00:01Z"});
    let bucket = |name: &str, seed: &str, namespace: Value| {
        json!({"metadata": {"name": name}, "spec": {"seedName": seed, "provider": {"type": "t", "region": "r"},
            "credentialsRef": secret(namespace, "backup")}})
    };
    SecretSources {
        secret_bindings: store(vec![
            json!({"metadata": meta("near"), "secretRef": {"name": "cloud"}}),
            json!({"metadata": meta("far"), "secretRef": {"name": "cloud", "namespace": "garden-other"}}),
            json!({"metadata": deleted, "secretRef": {"name": "cloud"}}),
            json!({"metadata": dated, "secretRef": {"name": "cloud", "namespace": "garden-other"}}),
        ]),
        credentials_bindings: store(vec![
            json!({"metadata": meta("near"), "provider": {"type": "t"}, "credentialsRef": secret(json!(null), "account")}),
            json!({"metadata": deleted, "provider": {"type": "t"}, "credentialsRef": secret(json!(null), "account")}),
            json!({"metadata": dated, "provider": {"type": "t"}, "credentialsRef": secret(json!("garden-other"), "account")}),
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

/// Members of a deleted project have no rights in a later namespace of the same name.
#[test]
fn a_binding_from_before_the_namespace_of_its_secret_gives_no_right() {
    for (binding, secret) in [
        ("secretBindingName", "cloud"),
        ("credentialsBindingName", "account"),
    ] {
        let dns = json!({"providers": [{"type": "t", "secretName": "dns"}]});
        let spec = json!({(binding): "dated", "dns": dns});
        let shoot = shoot(&spec, &json!({"seedName": "d"}));
        let names = |namespace: &str, created: &str| {
            let metadata = json!({"name": namespace, "creationTimestamp": created});
            let metadata = serde_json::from_value(metadata).unwrap();
            let secrets = sources().secrets_in(&metadata, &shoot);
            secrets.into_iter().collect::<Vec<_>>()
        };
        for before in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"] {
            assert_eq!(names("garden-other", before), [secret]);
        }
        let after = "2026-01-01T00:00:02Z";
        assert!(names("garden-other", after).is_empty());
        // The rule concerns the binding alone.
        assert_eq!(names("garden-dev", after), ["dns"]);
    }
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
    let created = "2026-01-01T00:00:00Z";
    let metadata = json!({"name": "b", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7",
        "creationTimestamp": created, "annotations": {"a": large}, "labels": {"l": large}, "finalizers": [large]});
    let quotas = json!([{"name": large}]);
    let mut secret: SecretBinding = serde_json::from_value(json!({"metadata": metadata, "quotas": quotas,
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
        let metadata = json!({"name": "b", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": created});
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
