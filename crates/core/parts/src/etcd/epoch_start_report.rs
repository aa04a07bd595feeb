//! The loss of an epoch that a seed begins with the data of the same seed. At the start of the epoch, no
//! process knows whether etcd will find the volume; etcd-druid reports the result when etcd has started.

use api::{
    druid::{BegunEpoch, Etcd},
    gardencore::{
        Shoot,
        shoot::{OwnershipChain, RestoredData},
    },
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::{Result, client::Cluster, clock};
use serde_json::{Value, json};

use crate::{ConflictLimit, FIELD_MANAGER, Facts, ownership::data_loss};

/// Replaces an unknown loss of this epoch by the report, or removes the loss if the report is complete.
/// Without a report the loss stays unknown. If etcd is restored after a start without loss, a loss is
/// reported again.
pub(crate) async fn record_loss(f: &Facts, etcd: Option<&Etcd>) -> Result<()> {
    let Some(begun) = etcd.and_then(|etcd| report(etcd, f.epoch())) else {
        return Ok(());
    };
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let seed = f.seed_object.name_any();
    let mut conflicts = ConflictLimit::default();
    loop {
        let newest = f.newest_shoot().await?;
        let Some(restored) = loss_to_report(&newest, &seed, begun, clock::now()) else {
            return Ok(());
        };
        let loss = data_loss::loss_after_start(&restored, begun);
        let patch = loss.map_or_else(
            || json!({"restored": Value::Null}),
            |loss| data_loss::restored_patch(&loss, None),
        );
        // The write is conditional on the Shoot's resourceVersion: the loss belongs to this epoch.
        let patch = json!({"ownership": patch});
        if FIELD_MANAGER
            .try_merge_status_of(&api, &newest, &patch)
            .await?
            .is_some()
        {
            return Ok(());
        }
        conflicts.count("Shoot", &newest.name_any())?;
    }
}

fn report(etcd: &Etcd, epoch: i64) -> Option<&BegunEpoch> {
    let begun = etcd.status.as_ref()?.begun.as_ref()?;
    (begun.epoch == epoch).then_some(begun)
}

/// The loss that the report replaces.
fn loss_to_report(shoot: &Shoot, seed: &str, begun: &BegunEpoch, now: Timestamp) -> Option<RestoredData> {
    unknown_loss(shoot, seed, begun.epoch).or_else(|| removed_loss(shoot, seed, begun, now))
}

/// The loss that `ClaimSteps::open` has recorded for an epoch without a copy.
fn unknown_loss(shoot: &Shoot, seed: &str, epoch: i64) -> Option<RestoredData> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let restored = ownership.restored.as_ref()?;
    let is_own = restored.source.as_ref().is_some_and(|source| source.name == seed);
    let is_unknown = restored.last_revision.is_none() && restored.lost_revisions.is_none();
    (ownership.epoch == epoch && restored.epoch == epoch && is_own && is_unknown).then(|| restored.clone())
}

/// The unknown loss again, where an earlier report has removed the loss and the present report is incomplete.
/// The time of the fence was removed too: `now` is a bound, since the former epoch ended before etcd began
/// this epoch.
fn removed_loss(shoot: &Shoot, seed: &str, begun: &BegunEpoch, now: Timestamp) -> Option<RestoredData> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let is_removed = ownership.epoch == begun.epoch
        && ownership.chain == Some(OwnershipChain::Last)
        && ownership.restored.is_none();
    let source = ownership.source.clone().filter(|source| source.name == seed);
    let source = source.filter(|_| is_removed && !begun.complete)?;
    Some(RestoredData {
        epoch: begun.epoch,
        last_revision: None,
        saved: None,
        fenced: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        source: Some(source),
        unknown: None,
        lost_revisions: None,
        left_aside: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(ownership: &Value) -> Shoot {
        let status = json!({"seedName": "b", "ownership": ownership});
        let spec =
            json!({"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}});
        let shoot = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": spec, "status": status});
        serde_json::from_value(shoot).unwrap()
    }

    fn begun(epoch: i64, complete: bool) -> BegunEpoch {
        BegunEpoch {
            epoch,
            result: if complete { "Kept" } else { "Restored" }.to_owned(),
            last_revision: 49,
            saved: Some(Time("2026-01-01T00:00:00Z".parse().unwrap())),
            complete,
        }
    }

    #[test]
    fn an_incomplete_report_after_a_complete_one_is_a_loss() {
        let record = |source: &str, chain: &str| json!({"epoch": 4, "phase": "Held", "chain": chain, "source": {"name": source, "epoch": 3}});
        let now = "2026-01-01T00:01:30.7Z".parse().unwrap();
        let own = shoot(&record("b", "Last"));
        let removed = loss_to_report(&own, "b", &begun(4, false), now).unwrap();
        let loss = data_loss::loss_after_start(&removed, &begun(4, false)).unwrap();
        assert_eq!(
            (loss.epoch, loss.last_revision, loss.unknown.as_ref()),
            (4, Some(49), None)
        );
        assert_eq!(loss.source.as_ref().map(|source| source.epoch), Some(3));
        assert_eq!(loss.fenced, Time("2026-01-01T00:01:30Z".parse().unwrap()));
        // The report is complete, or the data are not the data of this seed, or the report is of an earlier
        // epoch.
        for (ownership, begun) in [
            (record("b", "Last"), begun(4, true)),
            (record("a", "Last"), begun(4, false)),
            (record("b", "Final"), begun(4, false)),
            (record("b", "Last"), begun(3, false)),
        ] {
            assert_eq!(
                loss_to_report(&shoot(&ownership), "b", &begun, now),
                None,
                "{ownership}"
            );
        }
        // A recorded loss stays.
        let mut known = record("b", "Last");
        known["restored"] = json!(loss);
        let known = shoot(&known);
        assert_eq!(loss_to_report(&known, "b", &begun(4, false), now), None);
    }
}
