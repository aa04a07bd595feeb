//! YAML in, objects out. `UPDATE_EXPECT=1 cargo test -p etcd-druid` updates the snapshots.
#![allow(clippy::unwrap_used)]

use api::{
    constants::{DRUID_REQUIRE_SNAPSHOT, OWNERSHIP_EPOCH},
    druid::Etcd,
};
use expect_test::{ExpectFile, expect_file};
use runtime::Error;
use serde::Serialize;

use super::{copy_job::copy_job, service_account::service_account, services, stateful_set::stateful_set};
use crate::{
    flags::{Defaults, GateProtocol, PreparationBounds},
    wanted::ValidatedEtcd,
};

/// etcd-main as the gardenlet writes it.
pub(crate) const MAIN: &str = r"
apiVersion: druid.gardener.cloud/v1alpha1
kind: Etcd
metadata: {name: etcd-main, namespace: shoot--dev--web, uid: 0a0b, generation: 1}
spec:
  replicas: 1
  labels: {gardener.cloud/role: controlplane}
  storageCapacity: 10Gi
  etcd:
    quota: 2Gi
    clientUrlTls: &tls
      tlsCASecretRef: {name: ca-etcd, namespace: shoot--dev--web, dataKey: ca.crt}
      serverTLSSecretRef: {name: etcd-server}
      clientTLSSecretRef: {name: etcd-client}
  backup:
    tls: *tls
    fullSnapshotSchedule: 7 3 * * *
    deltaSnapshotPeriod: 5m
    deltaSnapshotMemoryLimit: 100Mi
    garbageCollectionPolicy: Exponential
    compression: {enabled: true, policy: zstd}
    store:
      provider: S3
      container: seed-b-uid
      prefix: shoot--dev--web--77/etcd-main
      secretRef: {name: etcd-backup}
";

pub(crate) fn etcd(yaml: &str) -> Etcd {
    let mut yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(yaml).unwrap();
    yaml.apply_merge().unwrap();
    serde_yaml_ng::from_value(yaml).unwrap()
}

/// etcd-main with a changed field of the specification.
pub(crate) fn main_with(path: &str, value: serde_json::Value) -> Etcd {
    let mut json = serde_json::to_value(etcd(MAIN)).unwrap();
    *json.pointer_mut(path).unwrap() = value;
    serde_json::from_value(json).unwrap()
}

pub(crate) fn wanted(etcd: &Etcd) -> Result<ValidatedEtcd, Error> {
    ValidatedEtcd::new(etcd, &defaults())
}

pub(crate) fn defaults() -> Defaults {
    Defaults {
        etcd_image: "etcd:v3".to_owned(),
        etcd_backup_restore_image: "repot/etcd-backup-restore:dev".to_owned(),
        etcd_backup_restore_env: Vec::new(),
        gate_protocol: GateProtocol::Tcp,
        preparation_bounds: PreparationBounds::default(),
        final_snapshot_wait: "3m".to_owned(),
    }
}

pub(crate) fn check(objects: impl Serialize, expected: &ExpectFile) {
    expected.assert_eq(&serde_yaml_ng::to_string(&objects).unwrap());
}

#[test]
fn an_etcd_with_backups() {
    let wanted = wanted(&etcd(MAIN)).unwrap();
    check(
        stateful_set(&wanted),
        &expect_file!["snapshots/etcd-main.stateful-set.yaml"],
    );
    check(
        (
            service_account(&wanted),
            services::client_service(&wanted),
            services::peer_service(&wanted),
        ),
        &expect_file!["snapshots/etcd-main.others.yaml"],
    );
}

/// The only difference is a flag of the init container: no other object depends on earlier data.
#[test]
fn only_an_etcd_with_a_past_refuses_to_start_empty() {
    let set = |past: Option<&str>| {
        let mut etcd = etcd(MAIN);
        etcd.metadata.annotations =
            past.map(|value| [(DRUID_REQUIRE_SNAPSHOT.to_owned(), value.to_owned())].into());
        stateful_set(&wanted(&etcd).unwrap())
    };
    let (new, mut old) = (set(None), set(Some("true")));
    assert_eq!(new, set(Some("false")));
    let pod = old.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    let initialize = &mut pod.init_containers.as_mut().unwrap()[0];
    let last = initialize.args.as_mut().unwrap().pop();
    assert_eq!(last.as_deref(), Some("--require-snapshot"));
    assert_eq!(old, new);
    // An etcd that has served must not start empty either, unless an annotation allows an empty start.
    let served = |said: Option<&str>| {
        let mut etcd = etcd(MAIN);
        etcd.metadata.annotations =
            said.map(|value| [(DRUID_REQUIRE_SNAPSHOT.to_owned(), value.to_owned())].into());
        let conditions = serde_json::json!([{
            "type": "HasData", "status": "True", "reason": "WasReady", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:10Z", "lastUpdateTime": "2026-01-01T00:00:10Z",
        }]);
        etcd.status = Some(serde_json::from_value(serde_json::json!({"conditions": conditions})).unwrap());
        stateful_set(&wanted(&etcd).unwrap())
    };
    assert_eq!(served(None), set(Some("true")));
    assert_eq!(served(Some("false")), new);
}

/// `prepare` gets neither a store nor an environment, and the epoch as `initialize` does.
#[test]
fn an_etcd_without_backups_is_prepared_and_has_one_container() {
    let mut events = etcd(MAIN);
    events.metadata.name = Some("etcd-events".to_owned());
    events.spec.backup = api::druid::BackupSpec::default();
    events
        .spec
        .etcd
        .client_url_tls
        .as_mut()
        .unwrap()
        .client_tls_secret_ref = None;
    check(
        stateful_set(&wanted(&events).unwrap()),
        &expect_file!["snapshots/etcd-events.stateful-set.yaml"],
    );
    events.metadata.annotations = Some([(OWNERSHIP_EPOCH.to_owned(), "4".to_owned())].into());
    let set = stateful_set(&wanted(&events).unwrap());
    let pod = set.spec.unwrap().template.spec.unwrap();
    let args = pod.init_containers.unwrap()[0].args.clone().unwrap();
    assert_eq!(args[0], "prepare");
    assert!(args.contains(&"--ownership-epoch=4".to_owned()), "{args:?}");
}

/// In a seed without a bucket the etcd with the objects has no backups either.
#[test]
fn only_the_data_of_the_etcd_with_events_are_disposable() {
    let is_disposable = |name: &str| {
        let mut etcd = etcd(MAIN);
        etcd.metadata.name = Some(name.to_owned());
        etcd.spec.backup = api::druid::BackupSpec::default();
        let set = stateful_set(&wanted(&etcd).unwrap());
        let pod = set.spec.unwrap().template.spec.unwrap();
        let args = pod.init_containers.unwrap()[0].args.clone().unwrap();
        assert_eq!(args[0], "prepare");
        args.contains(&"--disposable-data".to_owned())
    };
    assert!(is_disposable("etcd-events"));
    assert!(!is_disposable("etcd-main"));
}

/// R17-24, R17-25: one container, and two stores.
#[test]
fn an_etcd_with_a_source_is_a_job() {
    let mut copy = etcd(MAIN);
    let mut source = copy.spec.backup.store.clone().unwrap();
    source.container = Some("seed-a-uid".to_owned());
    source.secret_ref.as_mut().unwrap().name = Some("source-etcd-backup".to_owned());
    copy.spec.backup.source_store = Some(source);
    let wanted = wanted(&copy).unwrap();
    check(
        copy_job(&wanted, wanted.copy().unwrap()),
        &expect_file!["snapshots/etcd-main.copy-job.yaml"],
    );
}

/// R17-27: the copy gets the end that it must reach, and the loss that a human accepts.
#[test]
fn a_copy_is_told_the_end_of_its_source() {
    let mut copy = etcd(MAIN);
    let mut source = copy.spec.backup.store.clone().unwrap();
    source.container = Some("seed-a-uid".to_owned());
    copy.spec.backup.source_store = Some(source);
    let args = |copy: &Etcd| {
        let wanted = wanted(copy).unwrap();
        let job = copy_job(&wanted, wanted.copy().unwrap());
        let pod = job.spec.unwrap().template.spec.unwrap();
        let args = pod.containers[0].args.clone().unwrap().into_iter();
        args.filter(|arg| arg.contains("required") || arg.contains("accepted"))
            .collect::<Vec<_>>()
    };
    assert!(args(&copy).is_empty());
    let backup = &mut copy.spec.backup;
    backup.required_revision = Some(54);
    backup.required_snapshot = Some(api::druid::RequiredSnapshot {
        name: "Full-00000000-00000054-9.gz.final".to_owned(),
        sha256: "aa".to_owned(),
    });
    let mut expected = vec![
        "--required-revision=54",
        "--required-snapshot=Full-00000000-00000054-9.gz.final",
        "--required-snapshot-sha256=aa",
    ];
    assert_eq!(args(&copy), expected);
    copy.spec.backup.accepted_loss = Some(17);
    expected.push("--accepted-loss=17");
    assert_eq!(args(&copy), expected);
}

#[test]
fn each_container_that_reaches_buckets_gets_the_environment_and_etcd_does_not() {
    let mut defaults = defaults();
    defaults.etcd_backup_restore_env = vec!["HTTPS_PROXY=http://proxy:3128".parse().unwrap()];
    let names = |pod: Option<k8s_openapi::api::core::v1::PodSpec>| {
        let pod = pod.unwrap();
        let containers = pod.init_containers.into_iter().flatten().chain(pod.containers);
        let has_proxy = |container: &k8s_openapi::api::core::v1::Container| {
            container
                .env
                .iter()
                .flatten()
                .any(|env| env.name == "HTTPS_PROXY" && env.value.as_deref() == Some("http://proxy:3128"))
        };
        let reached = containers.map(|container| (has_proxy(&container), container.name));
        reached.collect::<Vec<_>>()
    };
    let wanted = ValidatedEtcd::new(&etcd(MAIN), &defaults).unwrap();
    assert_eq!(
        names(stateful_set(&wanted).spec.unwrap().template.spec),
        [
            (true, "initialize".to_owned()),
            (false, "etcd".to_owned()),
            (true, "backup-restore".to_owned()),
        ]
    );
    let job = copy_job(&wanted, wanted.backup.as_ref().unwrap());
    assert_eq!(
        names(job.spec.unwrap().template.spec),
        [(true, "backup-restore".to_owned())]
    );
}

#[test]
fn a_stopped_etcd_keeps_its_objects_and_has_no_pods() {
    let stopped = wanted(&main_with("/spec/replicas", 0.into())).unwrap();
    assert_eq!(stateful_set(&stopped).spec.unwrap().replicas, Some(0));
}

#[test]
fn what_is_wrong_is_told_with_the_name_of_the_field() {
    use serde_json::{Value, json};
    for (path, value, expected) in [
        (
            "/spec/replicas",
            json!(3),
            "spec.replicas is 3; clusters of one member",
        ),
        (
            "/spec/etcd/quota",
            json!("much"),
            "spec.etcd.quota is \"much\"; write a number of bytes",
        ),
        (
            "/spec/etcd/clientUrlTls",
            Value::Null,
            "spec.etcd.clientUrlTls is missing",
        ),
        (
            "/spec/etcd/clientUrlTls/clientTLSSecretRef",
            Value::Null,
            "spec.etcd.clientUrlTls.clientTLSSecretRef is missing",
        ),
        (
            "/spec/etcd/clientUrlTls/serverTLSSecretRef",
            json!({}),
            "spec.etcd.clientUrlTls.serverTLSSecretRef names no Secret",
        ),
        (
            "/spec/backup/store/secretRef",
            json!({"name": "etcd-backup", "namespace": "garden"}),
            "spec.backup.store.secretRef names Secret garden/etcd-backup; pods can only mount",
        ),
        (
            "/spec/backup/store/provider",
            Value::Null,
            "spec.backup.store.provider is missing",
        ),
        (
            "/spec/backup/store/prefix",
            json!(""),
            "spec.backup.store.prefix is missing",
        ),
        (
            "/spec/backup/store/secretRef",
            Value::Null,
            "spec.backup.store.secretRef is missing",
        ),
        (
            "/spec/backup/deltaSnapshotMemoryLimit",
            json!("-1"),
            "spec.backup.deltaSnapshotMemoryLimit is \"-1\"",
        ),
        (
            "/spec/backup/compression/policy",
            json!("lzw"),
            "spec.backup.compression.policy is lzw",
        ),
    ] {
        let error = wanted(&main_with(path, value)).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{path}: {error}");
        assert_eq!(
            error.codes(),
            [api::meta::ErrorCode::ErrConfigurationProblem],
            "{path}"
        );
    }
}

#[test]
fn copying_a_store_onto_itself_is_refused() {
    let mut copy = etcd(MAIN);
    copy.spec.backup.source_store = copy.spec.backup.store.clone();
    let error = wanted(&copy).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("spec.backup.sourceStore is the same place as store"),
        "{error}"
    );
}

#[test]
fn the_users_labels_do_not_shadow_those_that_selectors_go_by() {
    let labels = serde_json::json!({"app.kubernetes.io/part-of": "another", "app": "etcd"});
    let set = stateful_set(&wanted(&main_with("/spec/labels", labels)).unwrap())
        .spec
        .unwrap();
    let pod = set.template.metadata.unwrap().labels.unwrap();
    let selector = set.selector.match_labels.unwrap();
    assert!(
        selector.iter().all(|(key, value)| pod.get(key) == Some(value)),
        "{pod:?}"
    );
    assert_eq!(pod.get("app").map(String::as_str), Some("etcd"));
}
