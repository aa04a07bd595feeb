//! Steps by which zones are opened and closed (GEP-21). One is opened before the infrastructure is touched,
//! and closed when its machines are gone (RZ-11, RZ-12, RZ-35). Only where a zone is to be cut off, or one
//! was: for all other shoots nothing of it runs.

use std::time::Duration;

use flow::{Graph, TaskId};
use parts::{Facts, SubnetIsolation};
use runtime::{Error, Result};

use super::graph::{Steps, when};

/// How long machines may take to leave a zone, and its network to be closed. Longer than the bounds of a
/// Worker together (10 minutes for others to grow, 10 for pods to leave, 5 for machines to end) and than a
/// SubnetIsolation's own wait for the machines: what takes its time is no error, and is told by the
/// condition.
pub(super) const PATIENCE: Duration = Duration::from_secs(45 * 60);

/// How long the machines are waited for, where that is longer than in other flows.
pub(super) fn patience(f: &Facts) -> Option<Duration> {
    f.isolation.cuts_off().then_some(PATIENCE)
}

/// What is to be done with zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// One is to be closed.
    pub closes: bool,
    /// One is closed that is not to be, or not any more.
    pub opens: bool,
}

impl Zones {
    /// Looks at what is there. What a shoot brings from another seed is opened by the next reconciliation, if
    /// it is to be.
    pub(super) async fn plan(f: &Facts, namespace_is_active: bool, restoring: bool) -> Result<Self> {
        Ok(Self {
            closes: f.isolation.cuts_off(),
            opens: namespace_is_active && !restoring && SubnetIsolation::is_stale(f).await?,
        })
    }
}

/// Opens zones that are not to be closed any more.
pub(super) fn open<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    zones: Zones,
    after: impl IntoIterator<Item = TaskId>,
) -> TaskId {
    let [work, wait] = SubnetIsolation::REMOVAL_OF_STALE;
    let mut g = when(g, zones.opens);
    let asked = g.step(work, after, || SubnetIsolation::destroy_stale(f));
    g.step(wait, asked, || SubnetIsolation::stale_gone(f))
}

/// Closes the zone that is cut off.
pub(super) fn close<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, zones: Zones, machines: TaskId) -> TaskId {
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

    use tokio::time::Instant;

    use super::{
        super::graph::{RETRY_LIMIT, graph},
        *,
    };

    /// A task that is not done for this long: attempts of ten minutes each end with what they waited for, as
    /// a Worker's do.
    async fn is_error(lasts: Duration, limit: Option<Duration>) -> bool {
        let attempts = Arc::new(AtomicU32::new(0));
        let mut g = graph("a failover", RETRY_LIMIT);
        let (begin, count) = (Instant::now(), Arc::clone(&attempts));
        when(&mut g, true).within(limit).step("Waiting", [], move || {
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
        let ended = g.compile().run(|_| {}).await;
        assert!(attempts.load(Ordering::Relaxed) > 0);
        ended.is_err()
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
