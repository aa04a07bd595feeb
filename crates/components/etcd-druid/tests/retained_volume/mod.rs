//! Volumes that outlive an Etcd.

use anyhow::{Context, Result, ensure};
use api::{
    constants::{DRUID_CONTINUES_EPOCH, DRUID_KEEP_VOLUME, OWNERSHIP_EPOCH},
    druid::{Etcd, EtcdLastError},
};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::world::{World, change, create, gone, manifest, ready, refused};

/// A kept volume stays without an owner, and no etcd of a different epoch starts on the volume.
pub async fn retained(world: &World) -> Result<()> {
    let (etcds, claims) = (
        world.api::<Etcd>("kept"),
        world.api::<PersistentVolumeClaim>("kept"),
    );
    let of_epoch = |epoch: &str| {
        let mut manifest = manifest("etcd-main");
        manifest["metadata"]["annotations"] = json!({(OWNERSHIP_EPOCH): epoch});
        manifest
    };
    create(&etcds, &of_epoch("2")).await?;
    ready(&etcds).await?;
    let own = claims.get("etcd-main-etcd-main-0").await?;
    let keep = json!({"metadata": {"annotations": {(DRUID_KEEP_VOLUME): "true"}}});
    change(&etcds, keep.clone()).await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    has_no_stateful_set(world).await?;
    ensure!(world.pods("kept").await? == 0);
    let left = claims.get("etcd-main-etcd-main-0").await?;
    ensure!(
        left.uid() == own.uid()
            && left.metadata.deletion_timestamp.is_none()
            && left.owner_references().is_empty()
            && left.labels().get(OWNERSHIP_EPOCH).map(String::as_str) == Some("2"),
        "{left:?}"
    );

    // A later residency of the shoot has a higher epoch.
    create(&etcds, &of_epoch("4")).await?;
    let error = &refusal(&etcds, "etcd-main-etcd-main-0 holds data of ownership epoch 2").await?;
    ensure!(error.code == "ERR_RETRYABLE_CONFIGURATION_PROBLEM", "{error:?}");
    has_no_stateful_set(world).await?;
    // A deletion leaves the claim alone too, because the claim does not belong to that Etcd.
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    ensure!(claims.get("etcd-main-etcd-main-0").await?.uid() == own.uid());

    // A claim of the same epoch holds the same history, and is deleted with the Etcd again.
    create(&etcds, &of_epoch("2")).await?;
    ready(&etcds).await?;
    let adopted = claims.get("etcd-main-etcd-main-0").await?;
    ensure!(
        adopted.uid() == own.uid() && !adopted.labels().contains_key(OWNERSHIP_EPOCH),
        "{adopted:?}"
    );
    change(&etcds, keep).await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    Box::pin(continued(world, own.uid().as_deref())).await
}

/// The shoot has come back in epoch 4 with the data of epoch 2. Only that epoch may be continued.
async fn continued(world: &World, volume: Option<&str>) -> Result<()> {
    let (etcds, claims) = (
        world.api::<Etcd>("kept"),
        world.api::<PersistentVolumeClaim>("kept"),
    );
    let continues = |epoch: &str| {
        let mut manifest = manifest("etcd-main");
        let annotations = json!({(OWNERSHIP_EPOCH): "4", (DRUID_CONTINUES_EPOCH): epoch});
        manifest["metadata"]["annotations"] = annotations;
        manifest
    };
    for (epoch, words) in [
        ("3", "holds data of ownership epoch 2"),
        ("4", DRUID_CONTINUES_EPOCH),
    ] {
        create(&etcds, &continues(epoch)).await?;
        refusal(&etcds, words).await?;
        etcds.delete("etcd-main", &DeleteParams::default()).await?;
        gone(&etcds).await?;
        let left = claims.get("etcd-main-etcd-main-0").await?;
        ensure!(left.uid().as_deref() == volume, "{left:?}");
    }
    create(&etcds, &continues("2")).await?;
    ready(&etcds).await?;
    let adopted = claims.get("etcd-main-etcd-main-0").await?;
    ensure!(
        adopted.uid().as_deref() == volume && !adopted.labels().contains_key(OWNERSHIP_EPOCH),
        "{adopted:?}"
    );
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    world.nothing_left("kept").await
}

async fn has_no_stateful_set(world: &World) -> Result<()> {
    let found = world.api::<StatefulSet>("kept").get_opt("etcd-main").await?;
    ensure!(found.is_none(), "{found:?}");
    Ok(())
}

/// Waits until the Etcd is refused with these words, and returns the first error.
async fn refusal(etcds: &Api<Etcd>, words: &str) -> Result<EtcdLastError> {
    let refused = refused(etcds, |first| first.contains(words)).await?;
    let errors = refused.status.map(|status| status.last_errors);
    errors.into_iter().flatten().next().context("an error")
}
