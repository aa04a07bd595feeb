//! The bucket with the backups of a shoot that comes from a different seed. garden-controller-manager records
//! the bucket in the Shoot, and policy `shoot-ownership` lets no seed and no user write the record. No object
//! that a seed can name decides about the data of a restore.

use api::gardencore::Shoot;
use runtime::{Error, Result, client::wait::WaitState, error::Explain as _};

use super::etcds::MAIN;
use crate::{Facts, configuration_problem};

/// Name prefix of a source BackupEntry.
pub(crate) const SOURCE: &str = "source-";

/// The recorded bucket of the present epoch.
pub(crate) fn recorded(shoot: &Shoot) -> Option<&str> {
    let record = shoot.status.as_ref()?.ownership.as_ref()?;
    record.recorded_source_bucket()
}

/// Whether the Shoot records the bucket of this epoch. `own`: the bucket of this seed.
pub(crate) fn look_recorded(shoot: Option<&Shoot>, epoch: i64, own: &str) -> WaitState {
    let present = shoot.and_then(|shoot| shoot.status.as_ref());
    let Some(shoot) = shoot.filter(|_| present.is_some_and(|status| status.epoch() == epoch)) else {
        let why = format!("the Shoot is gone, or not in ownership epoch {epoch} any more");
        return WaitState::Fail(Error::not_owner(why));
    };
    match recorded(shoot) {
        None => WaitState::Wait(
            "garden-controller-manager has not recorded status.ownership.sourceBucket yet: see the Events of the Shoot"
                .into(),
        ),
        Some(bucket) if bucket == own => WaitState::Fail(configuration_problem(format!(
            "backups have not been copied, and status.ownership.sourceBucket of the Shoot names bucket {own} of this seed: \
             record the bucket of the former seed"
        ))),
        Some(_) => WaitState::Done,
    }
}

/// Refuses a claim without a copy whose data are recorded in a bucket of a different name: an administrator
/// has recorded the bucket, or the Seed was registered anew. The volume of an Etcd that exists has the data.
/// `newest`: the Shoot of a claim whose source is this seed.
pub(crate) async fn check_without_copy(f: &Facts, newest: &Shoot) -> Result<()> {
    let Some(bucket) = recorded(newest) else {
        return Ok(());
    };
    let found = f.residency.etcds().get_opt(MAIN).await;
    let has_etcd = found.context("could not read Etcd etcd-main")?.is_some();
    refusal_without_copy(bucket, &f.bucket()?, has_etcd).map_or(Ok(()), |why| Err(configuration_problem(why)))
}

fn refusal_without_copy(bucket: &str, own: &str, has_etcd: bool) -> Option<String> {
    (bucket != own && !has_etcd).then(|| {
        format!(
            "status.ownership.sourceBucket of the Shoot names bucket {bucket}, and this seed was the source of the data, so that etcd \
             would begin with bucket {own} and without Etcd etcd-main: let another seed take the Shoot over, which copies bucket \
             {bucket}, or record bucket {own} if it has the newest backups"
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]
    use api::gardencore::ShootSpec;
    use serde_json::{Value, json};

    use super::*;

    fn shoot(ownership: &Value) -> Shoot {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        shoot.status =
            Some(serde_json::from_value(json!({"seedName": "b", "ownership": ownership})).unwrap());
        shoot
    }

    fn record(epoch: i64, of: i64) -> Value {
        json!({"epoch": epoch, "phase": "Claiming", "source": {"name": "a", "epoch": 1},
            "sourceBucket": {"name": "former", "epoch": of}})
    }

    #[test]
    fn the_bucket_of_the_epoch_is_awaited() {
        let look = |ownership: &Value| look_recorded(Some(&shoot(ownership)), 2, "own");
        assert!(matches!(look(&record(2, 1)), WaitState::Done));
        assert_eq!(recorded(&shoot(&record(2, 1))), Some("former"));
        // A record of an earlier move has no effect.
        for missing in [record(2, 7), json!({"epoch": 2, "phase": "Claiming"})] {
            let WaitState::Wait(why) = look(&missing) else {
                panic!("a bucket is taken that is not of the epoch");
            };
            assert!(why.contains("sourceBucket"), "{why}");
        }
    }

    #[test]
    fn a_claim_without_a_copy_begins_with_the_recorded_bucket_or_the_own_volume() {
        let refused = refusal_without_copy("former", "own", false).unwrap();
        assert!(refused.contains("names bucket former"), "{refused}");
        assert_eq!(refusal_without_copy("former", "own", true), None);
        assert_eq!(refusal_without_copy("own", "own", false), None);
    }

    #[test]
    fn a_restore_ends_where_the_shoot_or_the_record_is_not_of_this_seed() {
        assert!(matches!(look_recorded(None, 2, "own"), WaitState::Fail(_)));
        let later = shoot(&record(3, 1));
        assert!(matches!(
            look_recorded(Some(&later), 2, "own"),
            WaitState::Fail(_)
        ));
        let own = look_recorded(Some(&shoot(&record(2, 1))), 2, "former");
        assert!(matches!(own, WaitState::Fail(_)));
    }
}
