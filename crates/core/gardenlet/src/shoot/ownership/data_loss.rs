//! Reports the changes that a shoot lost because the shoot continued without the last changes of its former
//! seed.

use std::sync::OnceLock;

use api::gardencore::Shoot;
use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use runtime::process::metrics::Metrics;

/// The data loss with which the present epoch of a shoot began.
pub struct EpochLoss {
    /// Seconds from the last snapshot to the end of the fence. Only changes of this time are lost, if all
    /// processes of the source follow the fence. `None` where a bound is not known.
    pub seconds: Option<u32>,
    /// Number of lost changes; `None` while the number is unknown.
    pub revisions: Option<i64>,
    /// Text for users.
    pub sentence: String,
}

/// Metrics of losses.
pub struct LossMetrics {
    /// `shoot_takeover_loss_seconds`: observed by the seed that has taken the shoot over and knows a bound.
    pub seconds: Histogram,
    /// `shoot_takeover_lost_revisions`: observed by the former seed, after the return of the seed.
    pub revisions: Histogram,
}

/// The metrics of the process. A restarted controller continues the same metrics.
pub fn metrics(metrics: &Metrics) -> &'static LossMetrics {
    static LOSSES: OnceLock<LossMetrics> = OnceLock::new();
    LOSSES.get_or_init(|| {
        let losses = LossMetrics {
            // From a shoot whose bucket worked until the end, to a shoot without a bucket for half a day.
            seconds: Histogram::new([1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 43200.0]),
            // From a shoot without writes, to half a day of a busy shoot.
            revisions: Histogram::new([0.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]),
        };
        metrics.register(|registry| {
            registry.register(
                "shoot_takeover_loss_seconds",
                "Seconds from the last snapshot to the end of the fence, of shoots that were taken over without a final snapshot",
                losses.seconds.clone(),
            );
            registry.register(
                "shoot_takeover_lost_revisions",
                "Changes that this seed had acknowledged and nobody else has, of shoots that were taken over from it",
                losses.revisions.clone(),
            );
        });
        losses
    })
}

impl EpochLoss {
    /// Reason of the Event that reports the loss.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        if self.seconds.is_none() && self.revisions.is_none() {
            return "LossUnknown";
        }
        "DataLost"
    }
}

/// Converts a number of changes to a value of the metric. Numbers beyond `u32::MAX` all become `u32::MAX`.
#[must_use]
pub fn revisions_metric(lost: i64) -> f64 {
    f64::from(u32::try_from(lost.max(0)).unwrap_or(u32::MAX))
}

/// The loss, if this epoch of the shoot began with a loss. The text contains both times unchanged, although
/// two clocks have taken the times.
#[must_use]
pub fn read_loss(shoot: &Shoot) -> Option<EpochLoss> {
    let status = shoot.status.as_ref()?;
    let ownership = status.ownership.as_ref()?;
    let restored = ownership.restored.as_ref()?;
    if restored.epoch != ownership.epoch {
        return None;
    }
    // Without phases the record names no source.
    let mut formers = status.former_seeds.iter();
    let former = formers.find(|former| former.epoch + 1 == ownership.epoch);
    let source = ownership.source.as_ref().or(former);
    let source = source.map_or("", |source| source.name.as_str());
    let fenced = restored.fenced.0;
    let up_to = restored
        .last_revision
        .map(|revision| format!(", up to revision {revision}"))
        .unwrap_or_default();
    let left_aside = match &*restored.left_aside {
        [] => String::new(),
        names => format!(
            " Objects in the bucket of seed {source} look like snapshots and were left aside, because they cannot be read or trusted: \
             {}. They may hold changes that are lost.",
            names.join(", ")
        ),
    };
    if let Some(lost) = restored.lost_revisions {
        let sentence = format!(
            "The shoot goes on with the backups of seed {source}{up_to}. {lost} changes that seed {source} acknowledged after that are \
             lost.{left_aside}"
        );
        return Some(EpochLoss {
            seconds: None,
            revisions: Some(lost),
            sentence,
        });
    }
    let saved = restored.saved.as_ref().map(|saved| saved.0);
    let (seconds, sentence) = match (saved, &restored.unknown) {
        (Some(saved), None) if saved <= fenced => {
            let seconds = u32::try_from(fenced.duration_since(saved).as_secs()).unwrap_or(u32::MAX);
            let sentence = format!(
                "The shoot goes on with what seed {source} had saved at {saved}{up_to}. Writes that seed {source} acknowledged later are \
                 lost. {} That is {seconds} s after the last snapshot.{left_aside}",
                last_write(source, fenced)
            );
            (Some(seconds), sentence)
        }
        (_, why) => {
            let why = why.as_deref().unwrap_or("the two clocks are apart");
            let sentence = format!(
                "The shoot goes on with the data of seed {source}{up_to}. The number of lost writes is unknown: {why}. \
                 {}{left_aside}",
                last_write(source, fenced)
            );
            (None, sentence)
        }
    };
    Some(EpochLoss {
        seconds,
        revisions: None,
        sentence,
    })
}

/// The destination cannot observe the source: the time of the fence is a bound under a condition.
fn last_write(source: &str, fenced: Timestamp) -> String {
    format!(
        "Seed {source} has acknowledged its last write at the latest by {fenced}, if all processes of seed {source} ask the servers that \
         the destination has asked."
    )
}

/// The report of a source that has returned and saved its last changes.
#[must_use]
pub fn describe_exact_loss(source: &str, lost: i64) -> String {
    format!(
        "Seed {source} is back and has saved the last changes: the takeover of the shoot lost {lost} changes. These changes are in the \
         final snapshot in the bucket of seed {source}."
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn describe_loss(ownership: &Value) -> Option<String> {
        find_loss(ownership).map(|loss| loss.sentence)
    }

    fn find_loss(ownership: &Value) -> Option<EpochLoss> {
        let shoot = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "ownership": ownership},
        });
        read_loss(&serde_json::from_value(shoot).unwrap())
    }

    #[test]
    fn the_loss_of_this_epoch_is_told_as_a_number() {
        let restored = json!({"epoch": 2, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z"});
        let record = |epoch: i64, restored: &Value| json!({"epoch": epoch, "phase": "Held", "chain": "Last", "source": {"name": "a", "epoch": epoch - 1}, "restored": restored});
        let sentence = describe_loss(&record(2, &restored)).unwrap();
        for part in [
            "seed a had saved at 2026-01-01T00:00:00Z",
            "revision 832",
            "90 s",
            // The destination cannot observe the servers that the source checks, so the text states the
            // condition.
            "at the latest by 2026-01-01T00:01:30Z, if all processes of seed a ask the servers that the destination has asked",
        ] {
            assert!(sentence.contains(part), "{sentence}");
        }
        // The report names an object that may hold lost changes.
        let mut strange = restored.clone();
        strange["leftAside"] = json!(["Incr-0-99-1.Z"]);
        let sentence = describe_loss(&record(2, &strange)).unwrap();
        assert!(
            sentence.contains("cannot be read or trusted: Incr-0-99-1.Z. They"),
            "{sentence}"
        );
        // The record belongs to a different takeover.
        assert_eq!(describe_loss(&record(3, &restored)), None);
        assert_eq!(describe_loss(&record(2, &Value::Null)), None);
        let known = find_loss(&record(2, &restored)).unwrap();
        assert_eq!((known.seconds, known.reason()), (Some(90), "DataLost"));
    }

    /// A person has accepted the loss, so no fence bounds the loss.
    #[test]
    fn a_loss_whose_number_is_known_is_told_by_the_number() {
        let restored = json!({"epoch": 2, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z",
            "lostRevisions": 17});
        let record = json!({"epoch": 2, "phase": "Held", "chain": "Last", "source": {"name": "a", "epoch": 1}, "restored": restored});
        let loss = find_loss(&record).unwrap();
        assert_eq!(
            (loss.seconds, loss.revisions, loss.reason()),
            (None, Some(17), "DataLost")
        );
        assert!(
            loss.sentence.contains("up to revision 832. 17 changes"),
            "{}",
            loss.sentence
        );
    }

    /// The record names no source there.
    #[test]
    fn a_loss_without_phases_names_the_seed_that_had_the_shoot() {
        let restored =
            json!({"epoch": 2, "lastRevision": 832, "fenced": "2026-01-01T00:01:30Z", "lostRevisions": 17});
        let formers = json!([{"name": "z", "epoch": 7}, {"name": "a", "epoch": 1}]);
        let shoot = json!({
            "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "formerSeeds": formers, "ownership": {"epoch": 2, "restored": restored}},
        });
        let loss = read_loss(&serde_json::from_value(shoot).unwrap()).unwrap();
        assert!(
            loss.sentence.contains("backups of seed a, up to"),
            "{}",
            loss.sentence
        );
    }

    #[test]
    fn a_loss_without_bounds_is_told_as_unknown_and_why() {
        let record = |restored: &Value| json!({"epoch": 2, "phase": "Held", "chain": "Last", "source": {"name": "a", "epoch": 1}, "restored": restored});
        let none = json!({"epoch": 2, "fenced": "2026-01-01T00:01:30Z", "unknown": "nobody looked"});
        let timeless = json!({"epoch": 2, "lastRevision": 832, "fenced": "2026-01-01T00:01:30Z", "unknown": "its year is 9000"});
        // Two clocks that are apart, and a time that none can have shown.
        let apart = json!({"epoch": 2, "lastRevision": 832, "saved": "2026-01-01T00:02:30Z", "fenced": "2026-01-01T00:01:30Z"});
        let absurd = json!({"epoch": 2, "lastRevision": 832, "saved": "9000-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z"});
        for (restored, parts) in [
            (&none, ["seed a.", "unknown: nobody looked."]),
            (&timeless, ["up to revision 832.", "unknown: its year is 9000."]),
            (
                &apart,
                ["up to revision 832.", "unknown: the two clocks are apart."],
            ),
            (
                &absurd,
                ["up to revision 832.", "unknown: the two clocks are apart."],
            ),
        ] {
            let loss = find_loss(&record(restored)).unwrap();
            assert_eq!((loss.seconds, loss.reason()), (None, "LossUnknown"));
            for part in parts
                .into_iter()
                .chain(["at the latest by 2026-01-01T00:01:30Z, if all processes of seed a ask"])
            {
                assert!(loss.sentence.contains(part), "{}", loss.sentence);
            }
        }
        // The bound stays valid at any age of the snapshot.
        let long_ago = json!({"epoch": 2, "lastRevision": 832, "saved": "0000-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z"});
        assert_eq!(find_loss(&record(&long_ago)).unwrap().seconds, Some(u32::MAX));
    }

    /// R17-45, R17-46: both metrics exist before the first loss, so that an alert sees the first loss as an
    /// increase.
    #[test]
    fn losses_are_counted_in_seconds_and_in_revisions() {
        let registry = Metrics::default();
        let losses = metrics(&registry);
        let begin = registry.encode();
        for line in [
            "shoot_takeover_loss_seconds_count 0",
            "shoot_takeover_lost_revisions_count 0",
        ] {
            assert!(begin.contains(line), "{begin}");
        }
        losses.seconds.observe(90.0);
        for lost in [0, 832, i64::MAX] {
            losses.revisions.observe(revisions_metric(lost));
        }
        let end = registry.encode();
        for line in [
            "shoot_takeover_loss_seconds_sum 90.0",
            "shoot_takeover_lost_revisions_bucket{le=\"0.0\"} 1",
            "shoot_takeover_lost_revisions_bucket{le=\"1000.0\"} 2",
            "shoot_takeover_lost_revisions_count 3",
        ] {
            assert!(end.contains(line), "{end}");
        }
    }
}
