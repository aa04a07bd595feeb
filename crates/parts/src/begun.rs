//! The loss of an epoch that a seed begins with its own data. When the epoch opens, nothing tells whether etcd will find its volume;
//! etcd-druid reports that when etcd has started.

use api::{
    druid::{BegunEpoch, Etcd},
    gardencore::{Shoot, shoot::RestoredData},
};
use kube::ResourceExt;
use runtime::{Cluster, Result};
use serde_json::{Value, json};

use crate::{FIELD_MANAGER, Facts, lost};

/// Replaces an unknown loss of this epoch by the report, or removes the loss where nothing is lost. Without a report the loss stays
/// unknown.
pub(crate) async fn record(f: &Facts, etcd: Option<&Etcd>) -> Result<()> {
    let Some(begun) = etcd.and_then(|etcd| report(etcd, f.epoch())) else {
        return Ok(());
    };
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let seed = f.seed_object.name_any();
    loop {
        let newest = f.newest_shoot().await?;
        let Some(restored) = unknown_loss(&newest, &seed, f.epoch()) else {
            return Ok(());
        };
        let loss = lost::with_begun(restored, begun);
        let patch = loss.map_or_else(
            || json!({"restored": Value::Null}),
            |loss| lost::restored_patch(&loss, None),
        );
        // The version of the Shoot is tested: the loss is that of this epoch.
        let patch = json!({"ownership": patch});
        if FIELD_MANAGER
            .try_merge_status_of(&api, &newest, &patch)
            .await?
            .is_some()
        {
            return Ok(());
        }
    }
}

fn report(etcd: &Etcd, epoch: i64) -> Option<&BegunEpoch> {
    let begun = etcd.status.as_ref()?.begun.as_ref()?;
    (begun.epoch == epoch).then_some(begun)
}

/// What `Claim::open` has recorded of an epoch without a copy.
fn unknown_loss<'a>(shoot: &'a Shoot, seed: &str, epoch: i64) -> Option<&'a RestoredData> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let restored = ownership.restored.as_ref()?;
    let is_own = restored.source.as_ref().is_some_and(|source| source.name == seed);
    let is_unknown = restored.last_revision.is_none() && restored.lost_revisions.is_none();
    (ownership.epoch == epoch && restored.epoch == epoch && is_own && is_unknown).then_some(restored)
}
