//! Reads the inputs of the preflight, and writes on exactly the read version. The judged objects never come
//! from a cache.

use std::sync::Arc;

use api::gardencore::{
    BackupBucket, BackupEntry, CloudProfile, ControllerInstallation, ControllerRegistration, Seed, Shoot,
    shoot::OwnershipPhase,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use runtime::{Error, Result, client::Cluster, error::Explain as _};
use serde_json::Value;

use super::{
    extensions::Extensions,
    preflight::{Move, Verdict, judge, wanted_move},
};
use crate::{Context, MANAGER};

/// A requested move, its inputs and its verdict.
#[derive(Debug, Default)]
pub struct Judged {
    /// The present seed of the shoot, if its Seed exists.
    pub source: Option<Seed>,
    /// The destination seed, if its Seed exists.
    pub destination: Option<Seed>,
    /// Whether the destination could take the shoot. Of the source only the spec is considered.
    pub verdict: Option<Verdict>,
    /// The CloudProfile that the Shoot names.
    pub profile: Option<CloudProfile>,
    /// The source BackupEntry that an earlier move may have left.
    pub source_entry: Option<BackupEntry>,
    /// The BackupBucket from which the destination would restore the shoot.
    pub source_bucket: Option<BackupBucket>,
}

/// Judges the move that the Shoot requests, if any.
pub(crate) async fn read(context: &Context, shoot: &Shoot) -> Result<Judged> {
    let Some((source, destination)) = wanted_move(shoot) else {
        return Ok(Judged::default());
    };
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let read = |name: String| {
        let seeds = seeds.clone();
        async move {
            seeds
                .get_opt(&name)
                .await
                .context(format_args!("could not read seed {name}"))
        }
    };
    let (source, destination) = futures::try_join!(read(source.to_owned()), read(destination.to_owned()))?;
    let (backup_entry, source_entry) = futures::try_join!(
        backup_entry(context, shoot, ""),
        backup_entry(context, shoot, SOURCE)
    )?;
    let (bucket, source_bucket) = futures::try_join!(
        backup_bucket(context, destination.as_ref().and_then(ResourceExt::uid)),
        backup_bucket(context, bucket_with_data(shoot, backup_entry.as_ref()))
    )?;
    let extensions = extensions(context, shoot).await?;
    let profile = cloud_profile(context, shoot).await?;
    let verdict = judge(&Move {
        shoot,
        destination: destination.as_ref(),
        source: source.as_ref(),
        backup_entry: backup_entry.as_ref(),
        bucket: bucket.as_ref(),
        extensions: &extensions,
    });
    Ok(Judged {
        source,
        destination,
        verdict,
        profile,
        source_entry,
        source_bucket,
    })
}

async fn backup_bucket(context: &Context, name: Option<String>) -> Result<Option<BackupBucket>> {
    let Some(name) = name else { return Ok(None) };
    let buckets: Api<BackupBucket> = context.garden.cluster_wide();
    let bucket = buckets.get_opt(&name).await;
    bucket.context(format_args!("could not read BackupBucket {name}"))
}

/// Name of the BackupBucket with the newest data of the shoot. A seed that has opened no data has no data in
/// the bucket of its own BackupEntry.
fn bucket_with_data(shoot: &Shoot, own: Option<&BackupEntry>) -> Option<String> {
    let record = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    let claimed = record.filter(|record| record.phase == Some(OwnershipPhase::Claiming));
    match claimed {
        Some(record) => record.recorded_source_bucket().map(str::to_owned),
        None => own.map(|own| own.spec.bucket_name.clone()),
    }
}

/// Name prefix of a source BackupEntry.
pub(super) const SOURCE: &str = "source-";

/// The name of the entry, built from the shoot's technical id and uid like the gardenlet does.
pub(super) fn backup_entry_name(shoot: &Shoot) -> Option<String> {
    let status = shoot.status.as_ref()?;
    Some(placement::names::backup_entry(&status.technical_id, &status.uid))
}

/// The extensions that are registered in the garden, and the installations in the destination seed.
async fn extensions(context: &Context, shoot: &Shoot) -> Result<Extensions> {
    let garden = &context.garden;
    let all = garden.cluster_wide::<ControllerRegistration>();
    let all = all.list(&ListParams::default()).await;
    let all = all.context("could not list ControllerRegistrations")?.items;
    let seed = shoot.spec.seed_name.as_deref().unwrap_or_default();
    let some = ListParams::default().fields(&format!("spec.seedRef.name={seed}"));
    let installations = garden.cluster_wide::<ControllerInstallation>().list(&some).await;
    Ok(Extensions {
        registrations: all.into_iter().map(Arc::new).collect(),
        installations: installations
            .context("could not list ControllerInstallations")?
            .items,
    })
}

/// The CloudProfile that the Shoot names. `None` for a profile of another kind.
pub(crate) async fn cloud_profile(context: &Context, shoot: &Shoot) -> Result<Option<CloudProfile>> {
    let Some(name) = shoot.spec.cloud_profile_name() else {
        return Ok(None);
    };
    let profiles: Api<CloudProfile> = context.garden.cluster_wide();
    profiles
        .get_opt(name)
        .await
        .context(format_args!("could not read CloudProfile {name}"))
}

async fn backup_entry(context: &Context, shoot: &Shoot, prefix: &str) -> Result<Option<BackupEntry>> {
    let Some(name) = backup_entry_name(shoot).map(|name| format!("{prefix}{name}")) else {
        return Ok(None);
    };
    let entries: Api<BackupEntry> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    entries
        .get_opt(&name)
        .await
        .context(format_args!("could not read BackupEntry {name}"))
}

/// Returns whether the patch was written; `false` if the Shoot has changed since it was read.
pub(crate) async fn write(shoots: &Api<Shoot>, name: &str, patch: Value) -> Result<bool> {
    let patch = serde_json::from_value(patch)
        .map_err(|error| Error::bug("the change of a Shoot is no JSON patch").caused_by(error))?;
    let params = PatchParams {
        field_manager: Some(MANAGER.0.to_owned()),
        ..PatchParams::default()
    };
    match shoots
        .patch_status(name, &params, &Patch::<()>::Json(patch))
        .await
    {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(answer)) if answer.is_conflict() || answer.is_not_found() => Ok(false),
        Err(error) => Err(error).context("could not write the status of the Shoot"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_data_are_in_the_bucket_of_the_seed_that_has_opened_data() {
        let mut own = BackupEntry::default();
        own.spec.bucket_name = "own".into();
        let bucket = |ownership: Value| {
            let spec = json!({"region": "r", "provider": {"type": "t"}, "kubernetes": {}});
            let shoot =
                json!({"metadata": {"name": "web"}, "spec": spec, "status": {"ownership": ownership}});
            bucket_with_data(&serde_json::from_value(shoot).unwrap(), Some(&own))
        };
        let record = |phase: &str, epoch: i64| {
            json!({"epoch": 2, "phase": phase, "source": {"name": "a", "epoch": 1},
                "sourceBucket": {"name": "earlier", "epoch": epoch}})
        };
        assert_eq!(bucket(Value::Null).as_deref(), Some("own"));
        assert_eq!(bucket(record("Held", 1)).as_deref(), Some("own"));
        assert_eq!(bucket(record("Claiming", 1)).as_deref(), Some("earlier"));
        assert_eq!(bucket(record("Claiming", 7)), None);
    }
}
