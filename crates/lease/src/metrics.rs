//! Metrics of the election (RK-31).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

/// Time after the lease duration for which a lock may still be held without a renewal: the same as in
/// Kubernetes' own managers.
const TOLERATED: Duration = Duration::from_secs(20);

/// From a hand-over by a watch (some 10 ms) to a hand-over at a busy API server.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    name: String,
    reason: &'static str,
}

/// The metrics of all locks of a process. A process has a single value and clones that value to each elector.
/// - `leader_active{name}` is 1 while this process holds the lock of that name, else 0.
/// - `leader_handover_duration_seconds{name}` is the time without a holder, as seen by this candidate, until
///   this candidate held the lock. The time starts when the previous holder released the lock, or had shown
///   no sign of life for the lease duration.
/// - `leader_refusals_total{name,reason}` counts failed attempts to read or take the lock.
#[derive(Clone, Debug)]
pub struct Metrics {
    active: Family<Labels, Gauge>,
    handover: Family<Labels, Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    /// For each held lock: the time by which the lock must have been renewed or ended.
    due: Arc<Mutex<HashMap<String, Instant>>>,
    /// For each lock that is held or waited for: the last answer of the API server.
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

/// The last answer of the API server about a lock.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// `None` before the first answer.
    at: Option<Instant>,
    /// The time for which a further answer may be missing.
    patience: Duration,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            active: Family::default(),
            handover: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            refusals: Family::default(),
            due: Arc::default(),
            answers: Arc::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry. Call once in a process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "leader_active",
            "Whether the lock of this name is held by this process",
            self.active.clone(),
        );
        registry.register(
            "leader_refusals",
            "Attempts to see or take the lock of this name that failed, by reason",
            self.refusals.clone(),
        );
        registry.register_with_unit(
            "leader_handover_duration",
            "From the moment a candidate saw the previous holder go until it held the lock",
            Unit::Seconds,
            self.handover.clone(),
        );
    }

    /// Whether this process holds the lock of this name.
    #[must_use]
    pub fn is_active(&self, name: &str) -> bool {
        self.active.get_or_create(&labels(name)).get() == 1
    }

    /// The fault, if a held lock was neither renewed nor ended for the lease duration and 20 s. Renewals,
    /// work and the end of a process are a single task. So that task is stuck, and only another process can
    /// end this process.
    #[must_use]
    pub fn overdue(&self) -> Option<String> {
        let now = Instant::now();
        let due = self.due();
        let (name, due) = due.iter().find(|(_, due)| **due < now)?;
        let late = now.duration_since(*due).as_secs();
        Some(format!(
            "the lock {name} should have been renewed or ended {late} s ago: the process is stuck"
        ))
    }

    /// A lock without any answer of the API server, or without an answer for the lease duration. A candidate
    /// reads the lock all the time. So each replica shows whether the lock's cluster is reachable.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        self.answers().iter().find_map(|(name, answer)| match answer.at {
            None => Some(format!("the lock {name} has not been read yet")),
            Some(at) if at.elapsed() > answer.patience => {
                let seconds = at.elapsed().as_secs();
                Some(format!(
                    "the lock {name} could not be read or renewed for {seconds} s"
                ))
            }
            Some(_) => None,
        })
    }

    /// A candidate begins to wait for this lock.
    pub(crate) fn awaited(&self, name: &str, patience: Duration) {
        self.answers()
            .insert(name.to_owned(), Answer { at: None, patience });
    }

    /// The API server has answered about this lock.
    pub(crate) fn answered(&self, name: &str) {
        if let Some(answer) = self.answers().get_mut(name) {
            answer.at = Some(Instant::now());
        }
    }

    /// A write that took or renewed a lock was sent at this time.
    pub(crate) fn renewed(&self, name: &str, sent: Instant, lease_duration: Duration) {
        self.due()
            .insert(name.to_owned(), sent + lease_duration + TOLERATED);
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<String, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_active(&self, name: &str, active: bool) {
        if !active {
            self.due().remove(name);
            self.answers().remove(name);
        }
        self.active.get_or_create(&labels(name)).set(i64::from(active));
    }

    pub(crate) fn refused(&self, name: &str, reason: &'static str) {
        let labels = RefusalLabels {
            name: name.to_owned(),
            reason,
        };
        self.refusals.get_or_create(&labels).inc();
    }

    pub(crate) fn handed_over(&self, name: &str, took: Duration) {
        self.handover
            .get_or_create(&labels(name))
            .observe(took.as_secs_f64());
    }
}

fn labels(name: &str) -> Labels {
    Labels {
        name: name.to_owned(),
    }
}
