//! BackupEntry and BackupBucket: Secrets and objects.

use anyhow::{Context, Result, ensure};
use api::{
    constants::{BACKUP_ENTRY_BACKUPS_COPIED, CONFIRMATION_FORCE_DELETION, OPERATION, OWNERSHIP_EPOCH},
    extensions::{BackupBucket, BackupEntry},
    meta::LastOperationState,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    World, codes, delete, run, run_created,
    world::{self, MANAGER_OF_TEST, create, object},
};

pub async fn a_backup_entry_waits_for_its_namespace(world: &World) -> Result<()> {
    world::namespace(
        &world.seed,
        "entry-credentials",
        &world::store_credentials(&world.store),
    )
    .await?;
    let reconciler = world::backup_entry(&world.seed);
    let entry: BackupEntry = object(
        "source-shoot--dev--wait--uid-1",
        "entry-credentials",
        json!({"bucketName": "b"}),
    )?;
    let api: Api<BackupEntry> = Api::all(world.seed.clone());
    create(&api, &entry).await?;
    let waits = run(&reconciler, &entry).await.unwrap_err();
    ensure!(matches!(waits, runtime::Error::NotReady { .. }), "{waits}");
    let status = api.get(&entry.name_any()).await?.status.context("no status")?;
    let operation = status.last_operation.context("no operation")?;
    ensure!(
        operation.state == LastOperationState::Processing && status.last_error.is_none(),
        "{operation:?}"
    );
    ensure!(
        operation.description.contains("shoot--dev--wait"),
        "{}",
        operation.description
    );
    create(
        &Api::all(world.seed.clone()),
        &world::named::<Namespace>(json!({"metadata": {"name": "shoot--dev--wait"}}))?,
    )
    .await?;
    run(&reconciler, &entry).await?;
    let secret = Api::<Secret>::namespaced(world.seed.clone(), "shoot--dev--wait")
        .get("source-etcd-backup")
        .await?;
    let data = secret.data.unwrap_or_default();
    ensure!(
        data["bucketName"].0 == b"b" && data.contains_key("secretAccessKey"),
        "the Secret lacks entries"
    );
    Ok(())
}

/// R17-23, on a real store: the folder belongs to the shoot before etcd can start, and a later epoch takes
/// the folder.
pub async fn an_entry_takes_its_place(world: &World) -> Result<()> {
    let namespace = "shoot--dev--owned";
    world::namespace(&world.seed, namespace, &world::store_credentials(&world.store)).await?;
    world.store.create_bucket("owned")?;
    let name = format!("{namespace}--uid-1");
    let place = world.store.folder().join("owned").join(&name).join("etcd-main");
    let reconciler = world::backup_entry(&world.seed);
    let source: BackupEntry = object(
        &format!("source-{name}"),
        namespace,
        json!({"bucketName": "owned"}),
    )?;
    run_created(&reconciler, &source).await?;
    ensure!(!place.exists(), "a source entry took the place");
    let mut entry: BackupEntry = object(&name, namespace, json!({"bucketName": "owned"}))?;
    for (epoch, annotation) in [(1, None), (3, Some("3"))] {
        if let Some(epoch) = annotation {
            let foreign = Patch::Merge(json!({"stringData": {"foreign": "v"}}));
            let secrets = Api::<Secret>::namespaced(world.seed.clone(), namespace);
            secrets
                .patch("etcd-backup", &PatchParams::default(), &foreign)
                .await?;
            MANAGER_OF_TEST
                .annotate(
                    &Api::<BackupEntry>::all(world.seed.clone()),
                    &name,
                    OWNERSHIP_EPOCH,
                    Some(epoch),
                )
                .await?;
            MANAGER_OF_TEST
                .annotate(
                    &Api::<BackupEntry>::all(world.seed.clone()),
                    &name,
                    OPERATION,
                    Some("reconcile"),
                )
                .await?;
            entry = Api::<BackupEntry>::all(world.seed.clone()).get(&name).await?;
            run(&reconciler, &entry).await?;
        } else {
            run_created(&reconciler, &entry).await?;
        }
        let found: serde_json::Value = serde_json::from_slice(&std::fs::read(place.join("ownership.json"))?)?;
        ensure!(
            found["epoch"] == epoch && found["uid"] == "uid-1" && found["state"] == "Owned",
            "{found}"
        );
    }
    let left = std::fs::read_dir(&place)?.count();
    ensure!(left == 1, "the probe left {left} objects");
    let secrets = Api::<Secret>::namespaced(world.seed.clone(), namespace);
    let data = secrets.get("etcd-backup").await?.data.unwrap_or_default();
    ensure!(data["bucketName"].0 == b"owned", "another bucket");
    ensure!(!data.contains_key("foreign"), "a key of another writer stays");
    Ok(())
}

/// R7-60, R17-22: the source's folder is claimed before the Secret reports the claim, and only if the source
/// did not hand the shoot over.
pub async fn a_source_that_cannot_help_is_claimed(world: &World) -> Result<()> {
    let namespace = "shoot--dev--claimed";
    world::namespace(&world.seed, namespace, &world::store_credentials(&world.store)).await?;
    world.store.create_bucket("claimed")?;
    let name = format!("{namespace}--uid-1");
    let place = world.store.folder().join("claimed").join(&name).join("etcd-main");
    let reconciler = world::backup_entry(&world.seed);
    let secrets = Api::<Secret>::namespaced(world.seed.clone(), namespace);
    let mut own: BackupEntry = object(&name, namespace, json!({"bucketName": "claimed"}))?;
    own.annotations_mut().insert(OWNERSHIP_EPOCH.into(), "3".into());
    run_created(&reconciler, &own).await?;
    world::create_handed_over(
        &world.seed,
        namespace,
        json!({"epoch": 4, "phase": "Claiming", "drained": true}),
    )
    .await?;
    let mut source: BackupEntry = object(
        &format!("source-{name}"),
        namespace,
        json!({"bucketName": "claimed"}),
    )?;
    source
        .annotations_mut()
        .insert(OWNERSHIP_EPOCH.into(), "4".into());
    run_created(&reconciler, &source).await?;
    let stands = || -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(&std::fs::read(
            place.join("ownership.json"),
        )?)?)
    };
    ensure!(stands()?["epoch"] == 3, "a planned move claimed its source");
    let secret = secrets.get("source-etcd-backup").await?;
    ensure!(
        !secret.annotations().contains_key(OWNERSHIP_EPOCH),
        "{:?}",
        secret.annotations()
    );
    world::create_handed_over(&world.seed, namespace, json!({"epoch": 4, "phase": "Claiming"})).await?;
    let entries = Api::<BackupEntry>::all(world.seed.clone());
    let name = source.name_any();
    MANAGER_OF_TEST
        .annotate(&entries, &name, OPERATION, Some("restore"))
        .await?;
    run(&reconciler, &entries.get(&name).await?).await?;
    let found = stands()?;
    ensure!(
        found["epoch"] == 4 && found["state"] == "Claimed" && found["origin"] == 3,
        "{found}"
    );
    let secret = secrets.get("source-etcd-backup").await?;
    ensure!(
        secret.annotations()[OWNERSHIP_EPOCH] == "4",
        "{:?}",
        secret.annotations()
    );
    Ok(())
}

/// More objects than a page has; objects of a longer name with the same prefix stay.
pub async fn only_the_own_entry_removes_objects(world: &World) -> Result<()> {
    let namespace = "shoot--dev--objects";
    world::namespace(&world.seed, namespace, &world::store_credentials(&world.store)).await?;
    let own = format!("{namespace}--uid-1");
    world.store.create_bucket("backups")?;
    let bucket = world.store.folder().join("backups");
    for (name, count) in [(own.as_str(), 1005), ("shoot--dev--objects--uid-11", 1)] {
        let place = bucket.join(name).join("etcd-main/v2");
        std::fs::create_dir_all(&place)?;
        for index in 0..count {
            std::fs::write(place.join(format!("Incr-{index:08}")), b"x")?;
        }
    }
    let left = |name: &str| walk(&bucket.join(name));
    let reconciler = world::backup_entry(&world.seed);
    let entry = |name: &str| object::<BackupEntry>(name, namespace, json!({"bucketName": "backups"}));
    let source = entry(&format!("source-{own}"))?;
    run_created(&reconciler, &source).await?;
    delete(&reconciler, &source).await?;
    ensure!(left(&own) == 1005, "a source entry removed objects (I9)");
    let own_entry = entry(&own)?;
    run_created(&reconciler, &own_entry).await?;
    delete(&reconciler, &own_entry).await?;
    ensure!(left(&own) == 0, "{} objects were left", left(&own));
    ensure!(
        left("shoot--dev--objects--uid-11") == 1,
        "another shoot's object was removed"
    );
    let secrets: Api<Secret> = Api::namespaced(world.seed.clone(), namespace);
    ensure!(
        secrets.get_opt("etcd-backup").await?.is_none()
            && secrets.get_opt("source-etcd-backup").await?.is_none()
    );
    Ok(())
}

/// A seed that returns, or whose deletion is late, finds the folder owned by a later epoch. Neither the
/// seed's own entry nor a source entry removes any object until the content of the folder changes. A forced
/// deletion leaves the objects for ever.
pub async fn a_place_of_a_later_epoch_keeps_its_backups(world: &World) -> Result<()> {
    let namespace = "shoot--dev--later";
    world::namespace(&world.seed, namespace, &world::store_credentials(&world.store)).await?;
    world.store.create_bucket("later")?;
    let own = format!("{namespace}--uid-1");
    let bucket = world.store.folder().join("later");
    let place = bucket.join(&own).join("etcd-main");
    let reconciler = world::backup_entry(&world.seed);
    let api: Api<BackupEntry> = Api::all(world.seed.clone());
    let says = |uid: &str, epoch: i64| {
        std::fs::create_dir_all(place.join("v2"))?;
        std::fs::write(place.join("v2/Full-00000000-00000009-1"), b"x")?;
        let content = json!({"uid": uid, "epoch": epoch, "seed": "b", "state": "Claimed", "written": ""});
        anyhow::Ok(std::fs::write(place.join("ownership.json"), content.to_string())?)
    };
    let is_refused = || async {
        let refused = run(&reconciler, &api.get(&own).await?).await;
        ensure!(refused.is_err(), "it was deleted");
        ensure!(walk(&place) == 2, "{} objects are left", walk(&place));
        codes(&api, &own, "ERR_CONFIGURATION_PROBLEM").await
    };
    let entry: BackupEntry = object(&own, namespace, json!({"bucketName": "later"}))?;
    run_created(&reconciler, &entry).await?;
    says("uid-1", 2)?;
    api.delete(&own, &DeleteParams::default()).await?;
    let why = is_refused().await?;
    ensure!(why.contains("is of ownership epoch 2"), "{why}");
    says("another", 1)?;
    let why = is_refused().await?;
    ensure!(why.contains("belongs to the shoot another"), "{why}");
    std::fs::write(place.join("ownership.json"), b"{")?;
    let why = is_refused().await?;
    ensure!(why.contains("cannot be understood"), "{why}");
    // The folder has no owner any more.
    std::fs::remove_file(place.join("ownership.json"))?;
    run(&reconciler, &api.get(&own).await?).await?;
    ensure!(walk(&place) == 0 && api.get_opt(&own).await?.is_none());

    // While the shoot's own entry owns the folder, the source entry removes no object.
    let mut source: BackupEntry = object(
        &format!("source-{own}"),
        namespace,
        json!({"bucketName": "later"}),
    )?;
    let annotations = source.annotations_mut();
    annotations.insert(BACKUP_ENTRY_BACKUPS_COPIED.into(), "true".into());
    annotations.insert(OWNERSHIP_EPOCH.into(), "2".into());
    run_created(&reconciler, &source).await?;
    says("uid-1", 3)?;
    let source = source.name_any();
    api.delete(&source, &DeleteParams::default()).await?;
    ensure!(run(&reconciler, &api.get(&source).await?).await.is_err());
    MANAGER_OF_TEST
        .annotate(&api, &source, CONFIRMATION_FORCE_DELETION, Some("true"))
        .await?;
    run(&reconciler, &api.get(&source).await?).await?;
    ensure!(walk(&place) == 2 && api.get_opt(&source).await?.is_none());
    Ok(())
}

/// The object store refuses: the backups stay and are reported, and no object is left in the seed.
pub async fn a_forced_entry_leaves_its_backups(world: &World) -> Result<()> {
    let namespace = "shoot--dev--forced";
    let credentials = world::store_credentials(&world.store);
    world::namespace(&world.seed, namespace, &credentials).await?;
    let name = format!("{namespace}--uid-1");
    world.store.create_bucket("forced")?;
    let place = world
        .store
        .folder()
        .join("forced")
        .join(&name)
        .join("etcd-main/v2");
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("Full-00000000-00000009-1"), b"x")?;
    let reconciler = world::backup_entry(&world.seed);
    let entry: BackupEntry = object(&name, namespace, json!({"bucketName": "forced"}))?;
    run_created(&reconciler, &entry).await?;
    let wrong = world::with(&credentials, "secretAccessKey", "wrong-secret");
    world::set_credentials(&world.seed, namespace, &wrong).await?;
    let api: Api<BackupEntry> = Api::all(world.seed.clone());
    let uid = api.get(&name).await?.uid();
    MANAGER_OF_TEST
        .annotate(&api, &name, CONFIRMATION_FORCE_DELETION, Some("true"))
        .await?;
    delete(&reconciler, &entry).await?;
    ensure!(walk(&place) == 1, "backups were removed with a wrong key");
    let secrets: Api<Secret> = Api::namespaced(world.seed.clone(), namespace);
    ensure!(
        secrets.get_opt("etcd-backup").await?.is_none(),
        "the Secret is left"
    );
    let events: Api<Event> = Api::namespaced(world.seed.clone(), "default");
    let told = events.list(&ListParams::default()).await?;
    let told = told.iter().find(|event| {
        event.reason.as_deref() == Some("LeftBehind")
            && event.regarding.as_ref().and_then(|of| of.uid.clone()) == uid
    });
    let note = told.and_then(|event| event.note.clone()).context("no Event")?;
    ensure!(
        note.starts_with(&format!(
            "backups below {name}/ in bucket forced may be left behind: "
        )) && note.contains("the object store answered 403 SignatureDoesNotMatch")
            && !note.contains("wrong-secret"),
        "{note}"
    );
    Ok(())
}

pub async fn refused_store_credentials(world: &World) -> Result<()> {
    let mut wrong = world::store_credentials(&world.store);
    wrong.insert("secretAccessKey".into(), "wrong-secret".into());
    world::namespace(&world.seed, "wrong-store", &wrong).await?;
    let bucket: BackupBucket = object("refused-bucket", "wrong-store", json!({}))?;
    let api = Api::all(world.seed.clone());
    create(&api, &bucket).await?;
    ensure!(
        run(&world::backup_bucket(&world.seed), &bucket).await.is_err(),
        "a wrong key was let in"
    );
    let error = codes(&api, "refused-bucket", "ERR_INFRA_UNAUTHENTICATED").await?;
    ensure!(
        !error.contains("wrong-secret") && !error.contains("X-Amz"),
        "a secret in an error: {error}"
    );
    Ok(())
}

fn walk(folder: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| {
            if entry.path().is_dir() {
                walk(&entry.path())
            } else {
                1
            }
        })
        .sum()
}
