//! Monotonic time that counts suspension.
//!
//! Timers run on the kernel's `CLOCK_MONOTONIC`, which counts the time of a stopped process but not that of a
//! suspended machine; others count all of it. So time here is that of the timers (which tests can pause) and
//! the time that the machine has been suspended (`CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`) on top. A timer
//! that rings late because of a suspension does no harm: this clock is looked at before every step.
//!
//! A pause of the guest by its hypervisor stops both clocks. The clock of the host shows such a pause, see
//! `host_clock`.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use crate::host_clock::{HostClock, HostClockKind, Mark, Shared};

/// Suspensions shorter than this are not noticed. Longer than the inexactness of two clocks that are read one
/// after the other, much shorter than the distance between any validity and what others wait.
const NOTICED: Duration = Duration::from_millis(50);

/// How far apart the two readings of one comparison may be. Shorter than [`NOTICED`].
const APART: Duration = Duration::from_millis(10);

/// Reads the time. Cheap to clone.
#[derive(Clone)]
pub struct Clock {
    suspended: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// None where the kernel shows no clock of the host.
    host: Option<Arc<Shared>>,
}

/// A moment by a [`Clock`], to be compared with others of the same clock only. It is no time for a timer.
///
/// A later moment that is computed from this moment keeps the state of the host clock at this moment: a
/// permit that is valid until `asked + validity` is judged by what the host clock did since `asked`.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    host: Option<Mark>,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Default for Clock {
    /// The kernel's, guarded by the clock of the host where the kernel shows one.
    fn default() -> Self {
        Self {
            host: HostClock::of_machine(),
            ..Self::with_suspension(suspended)
        }
    }
}

impl Clock {
    /// With another way to say for how long the machine has been suspended: it never says less than before.
    pub fn with_suspension(suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            suspended: Arc::new(suspended),
            host: None,
        }
    }

    /// Permits by this clock also end where the host clock shows that the guest was paused.
    #[must_use]
    pub fn guarded_by(self, host: &HostClock) -> Self {
        Self {
            host: Some(host.shared()),
            ..self
        }
    }

    /// The clock of the host that guards the permits by this clock.
    #[must_use]
    pub fn host_clock(&self) -> HostClockKind {
        self.host.as_ref().map_or(HostClockKind::None, |host| host.kind())
    }

    pub(crate) fn host(&self) -> Option<&Arc<Shared>> {
        self.host.as_ref()
    }

    /// The present: a moment between the call and its return.
    #[must_use]
    pub fn now(&self) -> Moment {
        // The host clock first: a pause before the two readings below must count. In this order: what passes
        // between the two readings must not be counted twice.
        let host = self.host.as_ref().map(|host| host.mark());
        let timers = Instant::now();
        Moment {
            at: timers + (self.suspended)(),
            host,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Moment {
    /// The time from `earlier` until this moment; nothing if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.at.saturating_duration_since(earlier.at)
    }

    pub(crate) fn host(self) -> Option<Mark> {
        self.host
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self {
            at: self.at + duration,
            ..self
        }
    }
}

/// For how long this machine has been suspended, as far as it was noticed. It grows in steps, so that two
/// moments between which there was no suspension differ by exactly the time of the timers.
fn suspended() -> Duration {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let known = Duration::from_nanos(KNOWN.load(Ordering::SeqCst));
    match difference() {
        Some(measured) if measured > known + NOTICED => {
            let nanos = u64::try_from(measured.as_nanos()).unwrap_or(u64::MAX);
            Duration::from_nanos(KNOWN.fetch_max(nanos, Ordering::SeqCst).max(nanos))
        }
        _ => known,
    }
}

/// `CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`. None on a system that does not have them.
fn difference() -> Option<Duration> {
    let read = |clock: ClockId| clock_gettime(clock).ok().map(Duration::from);
    loop {
        let before = read(ClockId::CLOCK_MONOTONIC)?;
        let all = read(ClockId::CLOCK_BOOTTIME)?;
        // A process that was stopped in between would take that for a suspension.
        if read(ClockId::CLOCK_MONOTONIC)?.saturating_sub(before) < APART {
            return Some(all.saturating_sub(before));
        }
    }
}
