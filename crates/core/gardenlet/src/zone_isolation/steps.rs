//! Steps that open and close zones (GEP-21). A zone is opened before the infrastructure changes, and closed
//! after the machines of the zone are gone (RZ-11, RZ-12, RZ-35). Shoots without a failover skip these steps.

use std::time::Duration;

use flow::TaskId;
use parts::{Facts, SubnetIsolation};
use placement::Operation;
use runtime::Result;

use crate::shoot::flows::graph::{ShootGraph, Steps, when};

/// Limit for the machines to leave a zone, and for the network to close. Longer than the bounds of a Worker
/// together (10 minutes for machines in other zones to grow, 10 for pods to leave, 5 for machines to end),
/// and longer than the wait of a SubnetIsolation for the machines. A slow failover is no error, and the
/// condition reports the progress.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45 * 60);

/// The zone changes of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// A zone has to be closed.
    pub closes: bool,
    /// A zone is closed that has to be open, or a zone is closed in a shoot that is deleted.
    pub opens: bool,
}

impl Zones {
    /// Reads the present state. A zone that a restored shoot has closed is opened by the next reconciliation,
    /// if required.
    pub(crate) async fn plan(f: &Facts, operation: Operation, namespace_is_active: bool) -> Result<Self> {
        let opens = namespace_is_active
            && match operation {
                Operation::Restore => false,
                Operation::Delete => SubnetIsolation::is_there(&f.residency).await?,
                _ => SubnetIsolation::is_stale(f).await?,
            };
        Ok(Self {
            closes: f.isolation.cuts_off(),
            opens,
        })
    }
}

/// Opens zones that have to be open again.
pub(crate) fn open<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    zones: Zones,
    after: impl IntoIterator<Item = TaskId>,
) -> TaskId {
    let [_, gone] = when(g, zones.opens).steps(SubnetIsolation::DESTROY_STALE, f, after);
    gone
}

/// Opens each zone of a shoot that is deleted.
pub(crate) fn open_all<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, zones: Zones, after: TaskId) -> TaskId {
    when(g, zones.opens).destroy::<SubnetIsolation>(&f.residency, after)
}

/// Closes the zone that is cut off.
pub(crate) fn close<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, zones: Zones, machines: TaskId) -> TaskId {
    when(g, zones.closes)
        .within(Some(PATIENCE))
        .deploy::<SubnetIsolation>(f, machines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use flow::Task;
    use runtime::Error;
    use tokio::time::Instant;

    use super::*;
    use crate::shoot::flows::graph::{RETRY_LIMIT, graph};

    /// A task that is not done for this long: attempts of ten minutes each end with what they waited for, as
    /// a Worker's do.
    async fn is_error(lasts: Duration, limit: Option<Duration>) -> bool {
        let attempts = Arc::new(AtomicU32::new(0));
        let mut g = graph("a failover", RETRY_LIMIT);
        let (begin, count) = (Instant::now(), Arc::clone(&attempts));
        let task = Task::new("Waiting", move || {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                let attempt = Duration::from_secs(600);
                let rest = lasts.saturating_sub(begin.elapsed());
                tokio::time::sleep(attempt.min(rest)).await;
                if rest <= attempt {
                    return Ok(());
                }
                Err(Error::not_ready(
                    Duration::from_secs(5),
                    "machines are there still",
                ))
            }
        });
        when(&mut g, true).within(limit).step_without_part(task);
        let ended = g.compile().into_flow().run(|_| {}).await;
        assert!(attempts.load(Ordering::Relaxed) > 0);
        ended.is_err()
    }

    /// A task must not fail while the SubnetIsolation that the task awaits is within its timeout.
    #[test]
    fn the_wait_for_the_network_is_shorter_than_the_patience_of_its_flow() {
        assert!(parts::Timeouts::default().subnet_isolation.timeout < RETRY_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_zone_that_takes_its_time_is_no_error_and_one_that_hangs_is() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        for (lasts, limit, expected) in [
            (minutes(15), None, false),
            (minutes(25), None, true),
            (minutes(10), Some(PATIENCE), false),
            (minutes(16), Some(PATIENCE), false),
            (minutes(25), Some(PATIENCE), false),
            (minutes(50), Some(PATIENCE), true),
        ] {
            assert_eq!(is_error(lasts, limit).await, expected, "{lasts:?}");
        }
    }
}
