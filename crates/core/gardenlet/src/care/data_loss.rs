//! A volume of etcd that was lost within an ownership epoch: constraint `DataComplete`, an Event and a
//! metric.
//!
//! etcd-druid reports the loss in the Etcd, and removes the report after 7 days. A move deletes the Etcd with
//! the report, so the constraint stays for 7 days also where no Etcd reports the loss any more.

use std::sync::OnceLock;

use api::{
    constants::condition::{DATA_COMPLETE, VOLUME_LOST},
    druid::{Etcd, VolumeLoss},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt};
use placement::Role;
use prometheus_client::metrics::histogram::Histogram;
use runtime::{Result, client::Cluster, clock, controller::conditions, process::metrics::Metrics};

use super::reading;
use crate::{Context, MANAGER};

/// How long the Shoot reports a loss; the same time as in etcd-druid.
const REPORTED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The losses that the Etcds of a shoot report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DataLoss {
    sentences: Vec<String>,
    losses: Vec<VolumeLoss>,
}

impl DataLoss {
    pub(super) fn find(etcds: &[Etcd]) -> Self {
        let mut found = Self::default();
        for etcd in etcds {
            let Some(status) = &etcd.status else { continue };
            let condition = status.conditions.iter().find(|c| c.type_ == DATA_COMPLETE);
            if let (Some(condition), Some(loss)) = (condition, &status.volume_loss) {
                found
                    .sentences
                    .push(format!("Etcd {}: {}", etcd.name_any(), condition.message));
                found.losses.push(loss.clone());
            }
        }
        found
    }

    fn set_condition(&self, now: &Time, constraints: &mut Vec<Condition>) {
        if self.sentences.is_empty() {
            let is_over =
                |constraint: &Condition| now.0.duration_since(constraint.last_update_time.0) >= REPORTED_FOR;
            constraints.retain(|constraint| constraint.type_ != DATA_COMPLETE || !is_over(constraint));
            return;
        }
        let (status, message) = (ConditionStatus::False, self.sentences.join(" "));
        let constraint = Condition::new(DATA_COMPLETE, status, VOLUME_LOST, &message, now.clone());
        constraint.merge_into(constraints);
    }

    /// Seconds from the last snapshot to the restore, of each loss with a bound.
    fn seconds(&self) -> impl Iterator<Item = f64> {
        self.losses.iter().filter_map(|loss| {
            let saved = loss.saved.as_ref()?.0;
            let seconds = loss.restored.0.duration_since(saved).as_secs();
            u32::try_from(seconds).ok().map(f64::from)
        })
    }
}

/// Reports a loss before the Shoot is handed over: after the hand-over this seed writes no constraint of the
/// Shoot, and deletes the Etcd with the report.
///
/// # Errors
/// The Etcds cannot be read, or the Shoot cannot be written.
pub async fn report_before_hand_over(context: &Context, shoot: &Shoot) -> Result<()> {
    let namespace = shoot.status.as_ref().map(|status| status.technical_id.as_str());
    let etcds = reading::etcds(context, namespace.unwrap_or_default()).await?;
    report(context, shoot, &DataLoss::find(&etcds)).await
}

/// Writes a changed constraint, and reports a new loss.
pub(super) async fn report(context: &Context, shoot: &Shoot, found: &DataLoss) -> Result<()> {
    let now = clock::now_k8s();
    let constraints = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        status
            .map(|status| status.constraints.clone())
            .unwrap_or_default()
    };
    let reported = constraints(shoot);
    let mut wanted = reported.clone();
    found.set_condition(&now, &mut wanted);
    if wanted == reported {
        return Ok(());
    }
    let shoots: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let name = shoot.name_any();
    // A watch may be late: a former seed must not write to the Shoot, and no loss is reported twice.
    let newest = shoots.get_opt(&name).await?;
    let Some(newest) = newest.filter(|newest| {
        newest.uid() == shoot.uid() && placement::role(newest, &context.seed_name) == Role::Owner
    }) else {
        return Ok(());
    };
    let told = constraints(&newest);
    let written = conditions::change(MANAGER, &shoots, &name, "constraints", |list| {
        found.set_condition(&now, list);
    })
    .await?;
    let message = find_condition(&wanted, DATA_COMPLETE).map(|constraint| constraint.message.clone());
    let is_new =
        find_condition(&told, DATA_COMPLETE).map(|constraint| &constraint.message) != message.as_ref();
    if let Some(message) = message.filter(|_| written && is_new) {
        let metric = metric(&context.metrics);
        found.seconds().for_each(|seconds| metric.observe(seconds));
        context.garden_events.warning(shoot, "DataLost", &message).await;
    }
    Ok(())
}

/// `shoot_volume_loss_seconds` of the process.
fn metric(metrics: &Metrics) -> &'static Histogram {
    static SECONDS: OnceLock<Histogram> = OnceLock::new();
    SECONDS.get_or_init(|| {
        let seconds = Histogram::new([1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 43200.0]);
        metrics.register(|registry| {
            registry.register(
                "shoot_volume_loss_seconds",
                "Seconds from the last snapshot to the restore of etcd, of shoots whose volume was lost within an ownership epoch",
                seconds.clone(),
            );
        });
        seconds
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn etcd(message: Option<&str>) -> Etcd {
        let time = "2026-01-01T00:01:30Z";
        let status = message.map(|message| {
            json!({
                "volumeLoss": {"epoch": 1, "lastRevision": 832, "revision": 100_000_832, "saved": "2026-01-01T00:00:00Z",
                    "restored": time},
                "conditions": [{"type": "DataComplete", "status": "False", "reason": "VolumeLost", "message": message,
                    "lastTransitionTime": time, "lastUpdateTime": time}],
            })
        });
        let mut etcd = Etcd::new("etcd-main", api::druid::EtcdSpec::default());
        etcd.status = status.map(|status| serde_json::from_value(status).unwrap());
        etcd
    }

    #[test]
    fn a_loss_of_etcd_is_a_constraint_of_the_shoot_for_a_week_also_without_the_etcd() {
        let now = Time("2026-01-01T00:02:00Z".parse().unwrap());
        let mut constraints = Vec::new();
        let lost = DataLoss::find(&[etcd(Some("at most 90 s."))]);
        lost.set_condition(&now, &mut constraints);
        let told = find_condition(&constraints, DATA_COMPLETE).unwrap();
        assert_eq!(
            (told.status, told.reason.as_str(), told.message.as_str()),
            (
                ConditionStatus::False,
                "VolumeLost",
                "Etcd etcd-main: at most 90 s."
            )
        );
        assert_eq!(lost.seconds().collect::<Vec<_>>(), [90.0]);
        // The destination of a move has an Etcd of its own.
        for (later, reported) in [("2026-01-08T00:01:59Z", true), ("2026-01-08T00:02:00Z", false)] {
            let later = Time(later.parse().unwrap());
            DataLoss::find(&[etcd(None)]).set_condition(&later, &mut constraints);
            assert_eq!(find_condition(&constraints, DATA_COMPLETE).is_some(), reported);
        }
    }
}
