//! The process as the host of the gardenlet's backup controllers: the binary, with exactly the rights from
//! the chart and the garden.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod chart;
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use api::{
    Target,
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, OPERATION, finalizer::GARDENER, operation::MIGRATE},
    crds_of, extensions,
    gardencore::{BackupBucket, BackupEntry},
    meta::{LastOperation, LastOperationState},
};
use chart::NAMESPACE;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        coordination::v1::Lease,
        core::v1::{Namespace, Secret},
        events::v1::Event,
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use runtime::client::apply::Object;
use serde_json::json;
use testkit::{ControlPlane, ObjectStore, Server, apply_crds, eventually};
use tokio::process::Command;
use world::{SOON, create, gone, named};

const SEED: &str = "seed-a";
const PROJECT: &str = "garden-dev";
const ENTRY: &str = "shoot--dev--one--uid";
/// The message of a policy of the test.
const HELD: &str = "held by the test";
const MIGRATION: &str = r#"
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: shared
controllerLeaders:
- {name: backup-bucket, component: "*"}
- {name: backup-entry, component: "*"}
"#;

/// Namespace of the garden with the credentials of the seed.
const OF_SEED: &str = "seed-seed-a";
/// The right that garden-controller-manager grants to the seed in [`OF_SEED`].
const OWN_CREDENTIALS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: own-credentials, namespace: seed-seed-a}
rules:
- {apiGroups: [''], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: own-credentials, namespace: seed-seed-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: own-credentials}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: 'gardener.cloud:system:seed:seed-a'}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_does_what_it_does_at_home() -> Result<()> {
    let [garden, seed] = ControlPlane::start_all(["garden", "seed"]).await?;
    let store = ObjectStore::start().await?;
    fill_garden(&garden, &store).await?;
    let client = world::seed(&seed).await?;
    for name in [NAMESPACE, "garden", "shoot--dev--one", "shoot--dev--two"] {
        namespace(&client, name).await?;
    }
    let values = [
        "leaderMigration.enabled=true",
        "leaderMigration.config.leaderName=shared",
        "garden.kubeconfigSecret=of-the-garden,garden.seedName=seed-a",
        "garden.backupEntryDeletionGracePeriodHours=0",
    ];
    chart::install(&seed.admin_kubeconfig_file(), &values).await?;
    let folder = tempfile::tempdir()?;
    write(folder.path(), "migration.yaml", MIGRATION)?;
    let user = format!("system:serviceaccount:{NAMESPACE}:provider-local");
    let of_seed = seed.kubeconfig(&user, &[])?;
    write(folder.path(), "seed", &serde_json::to_string(&of_seed)?)?;
    let user = format!("gardener.cloud:system:seed:{SEED}");
    let of_garden = garden.kubeconfig(&user, &["gardener.cloud:system:seeds"])?;
    write(folder.path(), "garden", &serde_json::to_string(&of_garden)?)?;
    let lock = format!("--leader-elect-resource-namespace={NAMESPACE}");
    let name = format!("--seed-name={SEED}");
    let arguments = [
        "--kubeconfig=seed",
        "--garden-kubeconfig=garden",
        "--health-address=127.0.0.1:0",
        "--enable-leader-migration",
        "--leader-migration-config=migration.yaml",
        "--backup-entry-deletion-grace-period-hours=0",
        &name,
        &lock,
    ];
    let mut process = Server::start(
        "provider-local-host",
        env!("CARGO_BIN_EXE_provider-local"),
        folder.path(),
        arguments,
        &[],
    )?;
    let done = backups_come_and_go(&garden.admin(), &client, &store).await;
    process.check_alive()?;
    done.with_context(|| process.log_tail())?;
    let lease: Lease = Api::namespaced(client, NAMESPACE).get("shared").await?;
    let holder = lease
        .spec
        .and_then(|spec| spec.holder_identity)
        .unwrap_or_default();
    ensure!(!holder.is_empty(), "the guests ran without the migration lock");
    Ok(())
}

async fn backups_come_and_go(garden: &Client, seed: &Client, store: &ObjectStore) -> Result<()> {
    let buckets: Api<BackupBucket> = Api::all(garden.clone());
    let entries: Api<BackupEntry> = Api::namespaced(garden.clone(), PROJECT);
    let bucket = named(json!({"metadata": {"name": "bucket-one"}, "spec": {
        "provider": {"type": "local", "region": "local"}, "seedName": SEED,
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": OF_SEED, "name": "backup"},
    }}))?;
    create(&buckets, &bucket).await?;
    let entry =
        named(json!({"metadata": {"name": ENTRY}, "spec": {"bucketName": "bucket-one", "seedName": SEED}}))?;
    create(&entries, &entry).await?;
    succeeds(&buckets, "bucket-one", |bucket| {
        bucket.status.as_ref()?.last_operation.as_ref()
    })
    .await?;
    let ready = succeeds(&entries, ENTRY, |entry| {
        entry.status.as_ref()?.last_operation.as_ref()
    })
    .await?;

    // The object is as the gardenlet would have left the object, so that the gardenlet can continue.
    ensure!(ready.finalizers() == [GARDENER], "{:?}", ready.finalizers());
    ensure!(
        !writers(&ready).contains("provider-local"),
        "{:?}",
        writers(&ready)
    );
    let asked = Api::<extensions::BackupEntry>::all(seed.clone())
        .get(ENTRY)
        .await?;
    ensure!(
        appliers(&asked) == BTreeSet::from(["gardenlet"]),
        "{:?}",
        asked.managed_fields()
    );
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), "garden");
    let copy = secrets.get(&format!("entry-{ENTRY}")).await?;
    ensure!(
        appliers(&copy) == BTreeSet::from(["gardenlet"]),
        "{:?}",
        copy.managed_fields()
    );

    a_seed_without_its_entry_keeps_nothing_of_it(garden, &entries, seed).await?;
    backups_that_no_flow_began_with_are_removed(&entries, seed, store).await?;
    a_bucket_stays_while_an_entry_names_the_bucket(garden, &buckets, seed).await?;
    gone(&entries, ENTRY).await?;
    eventually("the bucket is gone", SOON, || async {
        ensure!(
            buckets.get_opt("bucket-one").await?.is_none(),
            "BackupBucket bucket-one exists"
        );
        Ok(())
    })
    .await?;
    let left = Api::<extensions::BackupBucket>::all(seed.clone())
        .list(&ListParams::default())
        .await?;
    ensure!(left.items.is_empty(), "left in the seed: {:?}", left.items);
    Ok(())
}

/// A shoot that was handed over without the help of this seed; this seed was cut off and is back. The backups
/// stay until the control plane is gone, because etcd may not have saved all writes. A deletion that is
/// refused at first succeeds later.
async fn a_seed_without_its_entry_keeps_nothing_of_it(
    garden: &Client,
    entries: &Api<BackupEntry>,
    seed: &Client,
) -> Result<()> {
    let name = "shoot--dev--two--uid";
    let entry =
        named(json!({"metadata": {"name": name}, "spec": {"bucketName": "bucket-one", "seedName": SEED}}))?;
    create(entries, &entry).await?;
    succeeds(entries, name, |entry| {
        entry.status.as_ref()?.last_operation.as_ref()
    })
    .await?;
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), "garden");
    let kept = format!("entry-{name}");
    deny_deletions(seed, &secrets, &kept).await?;

    let given = Patch::Merge(json!({"spec": {"seedName": "seed-b"}, "status": {"seedName": "seed-b"}}));
    entries
        .patch_status(name, &PatchParams::default(), &given)
        .await?;
    entries.patch(name, &PatchParams::default(), &given).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let objects = Api::<extensions::BackupEntry>::all(seed.clone());
    let of_etcd: Api<Secret> = Api::namespaced(seed.clone(), "shoot--dev--two");
    ensure!(
        objects
            .get(name)
            .await?
            .annotations()
            .get(OPERATION)
            .is_none_or(|asked| asked != MIGRATE),
        "it was given up beside a control plane"
    );
    of_etcd.get("etcd-backup").await?;
    let namespaces: Api<Namespace> = Api::all(seed.clone());
    namespaces
        .delete("shoot--dev--two", &DeleteParams::default())
        .await?;
    let events: Api<Event> = Api::namespaced(garden.clone(), PROJECT);
    eventually("it is told what is in the way", SOON, || async {
        let told = events.list(&ListParams::default()).await?;
        let told = told.iter().any(|event| {
            event.regarding.as_ref().and_then(|of| of.name.as_deref()) == Some(name)
                && event.note.as_deref().is_some_and(|note| note.contains(HELD))
        });
        ensure!(told, "no Event of it");
        Ok(())
    })
    .await?;
    let policies: Api<ValidatingAdmissionPolicyBinding> = Api::all(seed.clone());
    policies.delete("held", &DeleteParams::default()).await?;
    eventually("nothing of it is left", SOON, || async {
        ensure!(
            secrets.get_opt(&kept).await?.is_none(),
            "its credentials are still there"
        );
        ensure!(
            objects.get_opt(name).await?.is_none(),
            "the object is still there"
        );
        Ok(())
    })
    .await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    entries.patch(name, &PatchParams::default(), &release).await?;
    gone(entries, name).await
}

/// The deletion of the Shoot was forced in the middle of a move: garden-controller-manager had assigned the
/// source entry to this seed, and no flow of this seed had begun.
async fn backups_that_no_flow_began_with_are_removed(
    entries: &Api<BackupEntry>,
    seed: &Client,
    store: &ObjectStore,
) -> Result<()> {
    let folder = store
        .folder()
        .join("bucket-one/shoot--dev--gone--uid/etcd-main/v2");
    std::fs::create_dir_all(&folder)?;
    let backup = folder.join("Full-00000000-00000001-1767225600");
    std::fs::write(&backup, "backup")?;
    let name = "source-shoot--dev--gone--uid";
    let metadata = json!({"name": name, "finalizers": [GARDENER],
        "annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "2"}});
    let spec = json!({"bucketName": "bucket-one", "seedName": SEED});
    create(entries, &named(json!({"metadata": metadata, "spec": spec}))?).await?;
    gone(entries, name).await?;
    ensure!(!backup.exists(), "the backup of the former seed stays");
    let left = Api::<extensions::BackupEntry>::all(seed.clone())
        .get_opt(name)
        .await?;
    ensure!(left.is_none(), "the object is still there");
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), "garden");
    let copy = secrets.get_opt(&format!("entry-{name}")).await?;
    ensure!(copy.is_none(), "the credentials are still there");
    Ok(())
}

/// With the bucket go all backups, also the only backups of a shoot that a different seed restores.
async fn a_bucket_stays_while_an_entry_names_the_bucket(
    garden: &Client,
    buckets: &Api<BackupBucket>,
    seed: &Client,
) -> Result<()> {
    buckets.delete("bucket-one", &DeleteParams::default()).await?;
    let events: Api<Event> = Api::namespaced(garden.clone(), "default");
    eventually("the bucket is reported as in use", SOON, || async {
        let all = events.list(&ListParams::default()).await?;
        let is_report = |event: &Event| event.reason.as_deref() == Some("BackupBucketInUse");
        ensure!(all.iter().any(is_report), "no Event BackupBucketInUse");
        Ok(())
    })
    .await?;
    let bucket = Api::<extensions::BackupBucket>::all(seed.clone())
        .get("bucket-one")
        .await?;
    ensure!(
        bucket.metadata.deletion_timestamp.is_none(),
        "the bucket is deleted with the backups of BackupEntry {ENTRY}"
    );
    Ok(())
}

/// Until the binding `held` is deleted.
async fn deny_deletions(seed: &Client, secrets: &Api<Secret>, name: &str) -> Result<()> {
    let policy = named(json!({"metadata": {"name": "held"}, "spec": {
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["DELETE"]}]},
        "validations": [{"expression": format!("request.name != '{name}'"), "message": HELD}],
    }}))?;
    create(&Api::<ValidatingAdmissionPolicy>::all(seed.clone()), &policy).await?;
    let binding = named(
        json!({"metadata": {"name": "held"}, "spec": {"policyName": "held", "validationActions": ["Deny"]}}),
    )?;
    create(
        &Api::<ValidatingAdmissionPolicyBinding>::all(seed.clone()),
        &binding,
    )
    .await?;
    eventually("deletions are refused", SOON, || async {
        let tried = secrets.delete(name, &DeleteParams::default().dry_run()).await;
        let said = tried.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(said.contains(HELD), "not yet: {said}");
        Ok(())
    })
    .await
}

/// All inputs are checked before the first connection, and before the first request for a lock.
#[tokio::test]
async fn a_process_without_what_its_guests_need_does_not_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), "migration.yaml", MIGRATION)?;
    let ended = Command::new(env!("CARGO_BIN_EXE_provider-local"))
        .current_dir(folder.path())
        .env("RUST_LOG", "error")
        .args(["--kubeconfig=nowhere", "--enable-leader-migration"])
        .args(["--leader-migration-config=migration.yaml", "--seed-name=seed-a"])
        .kill_on_drop(true)
        .output();
    let ended = testkit::timeout(SOON, ended).await.context("it goes on")??;
    let said = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.code() == Some(1), "{:?}", ended.status);
    let words = "which needs --garden-kubeconfig, --backup-entry-deletion-grace-period-hours for that";
    ensure!(said.contains(words) && !said.contains("nowhere"), "{said}");
    Ok(())
}

/// The objects of a garden's operator, and the rights of seeds.
async fn fill_garden(garden: &ControlPlane, store: &ObjectStore) -> Result<()> {
    let client = garden.admin();
    apply_crds(&client, &crds_of(Target::Garden)).await?;
    for name in ["garden", PROJECT, OF_SEED, "gardener-system-seed-lease"] {
        namespace(&client, name).await?;
    }
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../charts/garden/templates");
    for rights in ["gardenlets-rbac.yaml", "gardenlets-bindings.yaml"] {
        let text = std::fs::read_to_string(templates.join(rights))?;
        let lines: Vec<_> = text.lines().filter(|line| !line.contains("{{-")).collect();
        chart::apply(&garden.admin_kubeconfig_file(), lines.join("\n").as_bytes()).await?;
    }
    chart::apply(&garden.admin_kubeconfig_file(), OWN_CREDENTIALS.as_bytes()).await?;
    chart::apply(&garden.admin_kubeconfig_file(), events_in_project().as_bytes()).await?;
    let data: BTreeMap<String, ByteString> = world::store_credentials(store)
        .into_iter()
        .map(|(key, value)| (key, ByteString(value)))
        .collect();
    let secret = Secret {
        data: Some(data),
        ..named(json!({"metadata": {"name": "backup"}}))?
    };
    create(&Api::namespaced(client, OF_SEED), &secret).await?;
    Ok(())
}

/// The right that garden-controller-manager grants a seed with a BackupEntry in the project.
fn events_in_project() -> String {
    let rbac = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "events", "namespace": PROJECT});
    let rules =
        json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]);
    let role =
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "events"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "gardener.cloud:system:seeds"}]});
    json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]}).to_string()
}

async fn namespace(client: &Client, name: &str) -> Result<()> {
    create(
        &Api::all(client.clone()),
        &named::<Namespace>(json!({"metadata": {"name": name}}))?,
    )
    .await?;
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    Ok(std::fs::write(folder.join(name), text)?)
}

/// All field managers of an object.
fn writers<K: Object>(object: &K) -> BTreeSet<&str> {
    let managers = object.managed_fields().iter();
    managers.filter_map(|fields| fields.manager.as_deref()).collect()
}

/// The field managers with server-side apply; only these can remove their fields again.
fn appliers<K: Object>(object: &K) -> BTreeSet<&str> {
    let managers = object.managed_fields().iter();
    managers
        .filter(|fields| fields.operation.as_deref() == Some("Apply"))
        .filter_map(|fields| fields.manager.as_deref())
        .collect()
}

async fn succeeds<K: Object>(
    api: &Api<K>,
    name: &str,
    of: impl Fn(&K) -> Option<&LastOperation>,
) -> Result<K> {
    eventually("the operation succeeds", SOON, || async {
        let found = api.get(name).await?;
        let operation = of(&found);
        let state = operation.map(|operation| operation.state);
        ensure!(
            state == Some(LastOperationState::Succeeded),
            "{name}: {operation:?}"
        );
        Ok(found)
    })
    .await
}
