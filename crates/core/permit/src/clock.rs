//! Monotonic time that counts suspension.
//!
//! Timers run on the kernel's `CLOCK_MONOTONIC`. That clock counts the time of a stopped process but not the
//! time of a suspended machine; successors on other machines count both. So time here is the timers' time
//! (paused in tests) plus the suspended time of the machine (`CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`). A
//! timer that fires late because of a suspension does no harm: this clock is read before every step.
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

/// Shorter suspensions are not noticed. Longer than the error of two clocks that are read in sequence. Much
/// shorter than the difference between any validity and the corresponding wait of a successor.
const NOTICED: Duration = Duration::from_millis(50);

/// Maximum time between the two readings of a comparison. Shorter than [`NOTICED`].
const APART: Duration = Duration::from_millis(10);

/// Reads the time. Cheap to clone.
#[derive(Clone)]
pub struct Clock {
    suspended: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// `None` where the kernel shows no clock of the host.
    host: Option<Arc<Shared>>,
}

/// A moment by a [`Clock`], comparable only with moments of the same clock. Not a time for a timer.
///
/// A later moment computed from this moment keeps the state of the host clock at this moment. So a permit
/// that is valid until `asked + validity` is judged by the advance of the host clock since `asked`.
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
    /// The kernel's clock, guarded by the clock of the host where the kernel shows such a clock.
    fn default() -> Self {
        Self {
            host: HostClock::of_machine(),
            ..Self::with_suspension(suspended)
        }
    }
}

impl Clock {
    /// With a different source for the suspended time of the machine. The source must never decrease.
    pub fn with_suspension(suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            suspended: Arc::new(suspended),
            host: None,
        }
    }

    /// Permits by this clock also end where the host clock shows a pause of the guest.
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

    /// The present: a moment between the call and the return.
    #[must_use]
    pub fn now(&self) -> Moment {
        // The host clock first: a pause before the two readings below must count. Timers before suspension:
        // time that passes between the two readings must not be counted twice.
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
    /// The time from `earlier` until this moment; zero if `earlier` is not earlier.
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

/// The suspended time of this machine, as far as noticed. Grows in steps, so that two moments without a
/// suspension in between differ by exactly the timers' time.
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

/// `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`; `None` on a system without these clocks.
fn difference() -> Option<Duration> {
    let read = |clock: ClockId| clock_gettime(clock).ok().map(Duration::from);
    loop {
        let before = read(ClockId::CLOCK_MONOTONIC)?;
        let all = read(ClockId::CLOCK_BOOTTIME)?;
        // A stop of the process between the readings would look like a suspension, so the readings are
        // repeated.
        if read(ClockId::CLOCK_MONOTONIC)?.saturating_sub(before) < APART {
            return Some(all.saturating_sub(before));
        }
    }
}
