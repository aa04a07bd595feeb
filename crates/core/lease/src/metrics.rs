//! Metrics of the election (RK-31).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(feature = "metrics")]
use prometheus_client::registry::Registry;
use tokio::time::Instant;

#[cfg(feature = "metrics")]
use crate::families::Families;

/// Time after the lease duration for which a lock may still be held without a renewal: the same as in
/// Kubernetes' own managers.
const TOLERATED: Duration = Duration::from_secs(20);

/// The metrics of all locks of a process. A process has a single value and clones that value to each elector.
/// - `leader_active{name}` is 1 while this process holds the lock of that name, else 0.
/// - `leader_handover_duration_seconds{name}` is the time without a holder, as seen by this candidate, until
///   this candidate held the lock. The time starts when the previous holder released the lock, or had shown
///   no sign of life for the lease duration.
/// - `leader_refusals_total{name,reason}` counts failed attempts to read or take the lock.
///
/// Without the feature `metrics` of this crate, only the state for [`Metrics::is_active`],
/// [`Metrics::overdue`] and [`Metrics::unread`] is kept.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    #[cfg(feature = "metrics")]
    families: Families,
    /// The locks that this process holds.
    active: Arc<Mutex<HashSet<String>>>,
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

impl Metrics {
    /// Adds the metrics to a registry. Call once in a process.
    #[cfg(feature = "metrics")]
    pub fn register(&self, registry: &mut Registry) {
        self.families.register(registry);
    }

    /// Whether this process holds the lock of this name.
    #[must_use]
    pub fn is_active(&self, name: &str) -> bool {
        self.active().contains(name)
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
    pub(crate) fn wait_begun(&self, name: &str, patience: Duration) {
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

    fn active(&self) -> MutexGuard<'_, HashSet<String>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<String, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_active(&self, name: &str, active: bool) {
        if active {
            self.active().insert(name.to_owned());
        } else {
            self.active().remove(name);
            self.due().remove(name);
            self.answers().remove(name);
        }
        #[cfg(feature = "metrics")]
        self.families.set_active(name, active);
    }

    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, clippy::unused_self))]
    pub(crate) fn refused(&self, name: &str, reason: &'static str) {
        #[cfg(feature = "metrics")]
        self.families.refused(name, reason);
    }

    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, clippy::unused_self))]
    pub(crate) fn handed_over(&self, name: &str, took: Duration) {
        #[cfg(feature = "metrics")]
        self.families.handed_over(name, took);
    }
}
