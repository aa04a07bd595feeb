//! The room below etcd's quota: reported, and made while etcd refuses writes for lack of room.
//!
//! etcd raises alarm NOSPACE when the quota is reached and never disarms the alarm. Without this task an etcd
//! whose quota was raised, or whose database holds former values and free pages, would refuse writes until a
//! person acts.

use super::relief::ReliefAttempt;
use super::requests::{Handle, Request, make_room};
use super::state::State;
use crate::error::{Class, Result};
use crate::etcd::{EtcdConfig, Space};
use crate::metrics::Metrics;
use sidecar_protocol::ReliefResult;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Period of the question. No watch of etcd reports alarms. Shorter than the period in which etcd-druid asks
/// this process, 30 s, and a local read for etcd.
const SPACE_POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Shortest time after an attempt that found no room: a defragmentation blocks etcd, and the data alone fill
/// the quota.
const RELIEF_INTERVAL: Duration = Duration::from_secs(3600);
/// The shortest time after an attempt that made room, as etcd can refuse writes again at once, or after an
/// attempt that failed, for example because etcd did not answer.
const RELIEF_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The pause after an attempt that made room, as a multiple of the duration of the defragmentation. Reads
/// wait during a defragmentation: a tenant that refills etcd at once must not block the reads for more than a
/// tenth of the time.
const RELIEF_PAUSE_FACTOR: u32 = 10;

pub(super) struct SpaceWatch {
    etcd: EtcdConfig,
    state: Arc<State>,
    metrics: Arc<Metrics>,
    requests: mpsc::WeakSender<Request>,
    /// When the next attempt to make room may begin.
    next_relief: Mutex<Option<Instant>>,
}

impl SpaceWatch {
    pub(super) fn new(etcd: EtcdConfig, handle: &Handle) -> Self {
        Self {
            etcd,
            state: handle.state.clone(),
            metrics: handle.metrics.clone(),
            requests: handle.weak_requests(),
            next_relief: Mutex::default(),
        }
    }

    /// Asks periodically, without end. May be dropped at any time.
    pub(super) async fn run(&self) {
        let mut ticks = interval(SPACE_POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.check().await {
                // The snapshotter reports an etcd that does not answer.
                tracing::debug!(%error, "etcd did not report its size");
            }
        }
    }

    async fn check(&self) -> Result<()> {
        let etcd = self.etcd.connect().await?;
        let mut space = etcd.space().await?;
        // After the final snapshot etcd must not change.
        if space.alarm && space.has_room() && !self.state.is_finished() {
            etcd.disarm_no_space().await?;
            tracing::info!(
                size = space.used,
                quota = space.quota,
                "disarmed alarm NOSPACE: there is room below the quota"
            );
            space = etcd.space().await?;
        }
        let had_alarm = self.state.space().is_some_and(|before| before.alarm);
        if space.alarm && !had_alarm {
            tracing::warn!(
                size = space.used,
                in_use = space.in_use,
                quota = space.quota,
                "etcd refuses writes: alarm NOSPACE is raised, and the database has no room below the quota"
            );
        }
        self.note(space);
        if space.alarm && self.is_relief_due(Instant::now()) {
            self.make_room().await;
            self.note(etcd.space().await?);
        }
        Ok(())
    }

    fn note(&self, space: Space) {
        self.metrics.space(space);
        self.state.note_space(space);
    }

    /// An etcd before 3.6 reports no quota, so that free room cannot be distinguished from a full database.
    fn is_relief_due(&self, now: Instant) -> bool {
        let next = *self.next_relief.lock().unwrap_or_else(PoisonError::into_inner);
        let has_quota = self.state.space().is_some_and(|space| space.quota > 0);
        has_quota && !self.state.is_finished() && next.is_none_or(|next| next <= now)
    }

    /// After a dropped attempt, for the final snapshot for example, the next attempt follows after a pause:
    /// etcd may be defragmenting.
    async fn make_room(&self) {
        self.rest_until(Instant::now() + RELIEF_RETRY_INTERVAL);
        let made = make_room(&self.requests).await;
        self.rest_until(Instant::now() + RELIEF_INTERVAL);
        match made {
            None => {}
            Some(Ok(ReliefAttempt {
                report: relief,
                blocked,
            })) => {
                self.metrics.room_made(relief.result.as_str());
                if relief.result == ReliefResult::Disarmed {
                    tracing::info!("{}", relief.message);
                    self.rest_until(Instant::now() + pause_after(blocked));
                } else {
                    tracing::warn!("etcd still refuses writes. {}", relief.message);
                }
                self.state.note_relief(relief);
            }
            Some(Err(error)) => {
                self.metrics.room_made("Failed");
                if !matches!(error.class, Class::Finished | Class::Stopping) {
                    tracing::warn!(%error, "no room was made for etcd");
                }
                self.rest_until(Instant::now() + RELIEF_RETRY_INTERVAL);
            }
        }
    }

    fn rest_until(&self, time: Instant) {
        *self.next_relief.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
    }
}

/// The pause after an attempt that made room and blocked the reads of etcd for `blocked`. Never longer than
/// after an attempt that found no room.
fn pause_after(blocked: Duration) -> Duration {
    let pause = blocked.saturating_mul(RELIEF_PAUSE_FACTOR);
    pause.clamp(RELIEF_RETRY_INTERVAL, RELIEF_INTERVAL)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use crate::snapshotter::{Proof, relief};
    use permit::Permit;
    use tokio::time::sleep;

    fn watch(handle: &Handle) -> SpaceWatch {
        let etcd = EtcdConfig::plain(String::new(), Duration::ZERO, Permit::sole("a test"));
        SpaceWatch::new(etcd, handle)
    }

    fn full(quota: u64) -> Space {
        Space {
            used: quota,
            in_use: quota / 2,
            quota,
            alarm: true,
        }
    }

    /// Checks the pause after an attempt that waits in the queue for `queued`, blocks etcd for `blocked` and
    /// leaves the alarm as `alarm`.
    async fn assert_pause((queued, blocked): (Duration, Duration), alarm: bool, pause: Duration) {
        let (handle, mut inbox) = Handle::new("p/v2", 1, Arc::default());
        let watch = watch(&handle);
        watch.note(full(1 << 30));
        let answer = async {
            let Some(Request::MakeRoom(answer)) = inbox.requests.recv().await else {
                panic!("room was not requested");
            };
            sleep(queued + blocked).await;
            let report = relief::report(full(1 << 30), alarm);
            assert!(answer.send(Ok(ReliefAttempt { report, blocked })).is_ok());
        };
        tokio::join!(watch.make_room(), answer);
        let ended = Instant::now();
        assert!(!watch.is_relief_due(ended + pause - Duration::from_millis(1)));
        assert!(watch.is_relief_due(ended + pause));
    }

    /// etcd that fills the new room at once would else refuse writes for an hour.
    #[tokio::test(start_paused = true)]
    async fn room_is_made_again_after_a_minute_where_an_attempt_has_made_room() {
        let at_once = (Duration::ZERO, Duration::ZERO);
        assert_pause(at_once, false, RELIEF_RETRY_INTERVAL).await;
        assert_pause(at_once, true, RELIEF_INTERVAL).await;
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_that_make_room_take_a_tenth_of_the_time_at_most() {
        let seconds = Duration::from_secs;
        for (blocked, pause) in [(2, 60), (6, 60), (7, 70), (90, 900), (360, 3600), (600, 3600)] {
            // A full snapshot before the attempt, for example, blocks no reads.
            for queued in [0, 1200] {
                assert_pause((seconds(queued), seconds(blocked)), false, seconds(pause)).await;
            }
        }
    }

    /// The final snapshot comes first and may fail: etcd would then refuse writes for an hour.
    #[tokio::test(start_paused = true)]
    async fn a_dropped_attempt_is_repeated_after_a_minute() {
        let (handle, mut inbox) = Handle::new("p/v2", 1, Arc::default());
        let watch = watch(&handle);
        watch.note(full(1 << 30));
        tokio::select! {
            () = watch.make_room() => panic!("nobody has answered"),
            asked = inbox.requests.recv() => assert!(asked.is_some()),
        }
        let dropped = Instant::now();
        assert!(!watch.is_relief_due(dropped));
        assert!(watch.is_relief_due(dropped + RELIEF_RETRY_INTERVAL));
    }

    #[test]
    fn room_is_made_once_an_hour_and_never_after_the_final_snapshot() {
        let handle = Handle::idle("p/v2", 1, Arc::default());
        let watch = watch(&handle);
        let now = Instant::now();
        assert!(!watch.is_relief_due(now), "the quota is unknown");
        watch.note(full(0));
        assert!(!watch.is_relief_due(now), "etcd reports no quota");
        watch.note(full(1 << 30));
        assert!(watch.is_relief_due(now));
        watch.rest_until(now + RELIEF_INTERVAL);
        let last = now + RELIEF_INTERVAL - Duration::from_secs(1);
        assert!(!watch.is_relief_due(last));
        assert!(watch.is_relief_due(now + RELIEF_INTERVAL));
        handle.state.finished(Proof {
            snapshot: String::new(),
            epoch: 1,
            last_revision: 1,
            etcd_revision: 1,
            sha256: String::new(),
            sealed: false,
        });
        assert!(!watch.is_relief_due(now + RELIEF_INTERVAL));
    }
}
