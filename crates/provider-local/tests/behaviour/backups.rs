//! BackupEntry and BackupBucket: Secrets and objects.

use anyhow::{Context, Result, ensure};
use api::{
    extensions::{BackupBucket, BackupEntry},
    meta::LastOperationState,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{
    World, codes, delete, run, run_created,
    world::{self, create, object},
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

/// More objects than one page holds; those of a longer name with the same beginning stay.
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
