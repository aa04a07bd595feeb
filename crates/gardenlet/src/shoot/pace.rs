//! The expected time of each step of a flow. The times come from former flows of this process, and before the
//! first flow from measurements in the tests with real clusters. The percentage of an operation follows these
//! times.
//!
//! The times are kept in the memory of the process only. A percentage needs no better estimate after a
//! restart, and a record in the cluster would have to be bounded and cleaned up as well. The memory is
//! bounded, since the names of flows and steps are literals.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Steps that take longer than [`SHORTEST`], in milliseconds: medians of eight moves between two local seeds
/// (`tests/e2e_move.rs`), and the shortest fence.
const MEASURED: [(&str, u64); 10] = [
    ("Waiting until the former seed cannot act any more", 24_000),
    ("Waiting until main and event etcd report readiness", 7_900),
    ("Waiting until etcd backups are copied", 4_200),
    ("Waiting until Kubernetes API server rolled out", 3_700),
    ("Waiting until Kubernetes scheduler is ready", 2_100),
    ("Waiting until Kubernetes controller manager is ready", 2_000),
    ("Waiting until kube-apiserver has been deleted", 1_900),
    ("Creating ETCD Snapshot", 1_200),
    ("Initializing secrets management", 1_200),
    ("Waiting until the backup entry has been reconciled", 1_100),
];

/// The shortest time that is expected of a step, and the time of all steps that are not measured. Short steps
/// must still raise the percentage: garden-controller-manager treats a percentage without progress as a stuck
/// source.
const SHORTEST: Duration = Duration::from_secs(1);

/// A step that took longer waited for a cause outside of the flow, such as a seed without a node.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Times of steps by flow. Cloning gives a second view of the same times.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(Arc<Mutex<HashMap<(&'static str, &'static str), Duration>>>);

impl Pace {
    /// How long a step of a flow is expected to take.
    pub(super) fn expected(&self, flow: &'static str, step: &'static str) -> Duration {
        let learned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = learned.get(&(flow, step)).copied();
        let expected = learned.unwrap_or_else(|| {
            let measured = MEASURED.iter().find(|(name, _)| *name == step);
            measured.map_or(SHORTEST, |(_, milliseconds)| Duration::from_millis(*milliseconds))
        });
        expected.max(SHORTEST)
    }

    /// Takes over how long a step took that has succeeded. The last flow counts for half, so that a single
    /// slow flow fades.
    pub(super) fn learn(&self, flow: &'static str, step: &'static str, took: Duration) {
        let mean = (self.expected(flow, step) + took.min(LONGEST)) / 2;
        let mut learned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert((flow, step), mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "Waiting until etcd backups are copied";

    #[test]
    fn a_step_is_expected_to_take_what_it_took_in_former_flows_of_the_same_kind() {
        let pace = Pace::default();
        assert_eq!(pace.expected("restore", COPY), Duration::from_millis(4_200));
        assert_eq!(pace.expected("restore", "anything else"), SHORTEST);
        for _ in 0..8 {
            pace.learn("restore", COPY, Duration::from_secs(105));
        }
        let learned = pace.expected("restore", COPY);
        assert!(
            learned > Duration::from_secs(100) && learned <= Duration::from_secs(105),
            "{learned:?}"
        );
        assert_eq!(pace.expected("reconcile", COPY), Duration::from_millis(4_200));
        pace.learn("restore", COPY, Duration::from_secs(1_000_000));
        assert!(pace.expected("restore", COPY) < LONGEST);
    }
}
