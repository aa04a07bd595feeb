//! A clock of the host, which advances while a hypervisor pauses the guest.
//!
//! During such a pause neither `CLOCK_MONOTONIC` nor `CLOCK_BOOTTIME` of the guest advances, so a guest that
//! wakes takes its permits for valid. The real-time clock (RTC) and a PTP device of the hypervisor advance. A
//! thread compares this host clock with the guest's clock once a second. A permit ends when, since the permit
//! was requested, the host clock has advanced by [`TOLERATED`] more than the guest's clock. A permit also
//! ends when the host clock goes back.
//!
//! The RTC counts whole seconds, so a measured advance is wrong by less than a second. A pause shorter than 1
//! s never ends a permit, and the next reading notices a pause of 3 s or more.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// From this advance on, a permit ends. Longer than the error of two readings of a clock that counts whole
/// seconds.
const TOLERATED: Duration = Duration::from_secs(2);

/// The resolution of the coarsest host clock.
const RESOLUTION: Duration = Duration::from_secs(1);

/// From one reading to the next.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Maximum time by which a permit outlasts its validity because the guest was paused. The bound holds if the
/// pause ends within [`TOLERATED`] and the resolution after the end of the validity. A pause of less than 3 s
/// is not noticed, and the reading that notices a longer pause follows the wake-up within a second. A
/// successor adds this time to the wait.
pub const UNNOTICED_PAUSE: Duration = Duration::from_secs(4);
const _: () =
    assert!(UNNOTICED_PAUSE.as_secs() == TOLERATED.as_secs() + RESOLUTION.as_secs() + READ_EVERY.as_secs());

/// A reading that takes longer is not exact enough, since the guest's clock is read before and after. Such a
/// reading counts as missing.
const READS_WITHIN: Duration = Duration::from_millis(100);

/// If the last reading is older, the process or the thread was stopped. The next check of a permit then reads
/// the host clock.
const LATE: Duration = Duration::from_secs(2);

/// Without a reading for this long, permits end: a pause would not be noticed.
const MISSING: Duration = Duration::from_secs(5);

/// Folder of the kernel's RTCs. Every process can read this folder.
const RTCS: &str = "/sys/class/rtc";

/// Folder of the PTP devices. A pod has a device only if the operator mounts the device.
const DEVICES: &str = "/dev";

/// The clock of the host that guards the permits of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostClockKind {
    /// A real-time clock in sysfs.
    Rtc,
    /// A PTP device.
    Ptp,
    /// No clock of the host is readable: a pause of the guest stays unnoticed.
    #[default]
    None,
}

impl HostClockKind {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rtc => "Rtc",
            Self::Ptp => "Ptp",
            Self::None => "None",
        }
    }
}

/// The lead of the host clock over the guest's clock when a permit was requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Upper bound of the lead, in nanoseconds.
    lead: i64,
    steps_back: u64,
}

/// The result of all readings so far.
#[derive(Clone, Copy, Debug)]
struct Latest {
    /// Lower bound of the lead of the host clock over the guest's clock, in nanoseconds.
    lead: i64,
    steps_back: u64,
    /// The time since the last reading, by the guest's clock.
    age: Duration,
}

/// The reason why the host clock ends a permit; `None` while the permit is valid.
fn reason_to_end(asked: Mark, latest: Latest) -> Option<&'static str> {
    if latest.steps_back != asked.steps_back {
        Some("the clock of the host went back, so a pause of this machine may stay unnoticed")
    } else if HostClock::shows_pause(asked.lead, latest.lead) {
        Some(
            "this machine was paused: the clock of the host has advanced by more than the clocks of this machine",
        )
    } else if latest.age > MISSING {
        Some("the clock of the host cannot be read, so a pause of this machine may stay unnoticed")
    } else {
        None
    }
}

/// A clock of the host.
enum Source {
    /// The file `since_epoch`, in seconds.
    Rtc(PathBuf),
    Ptp(File),
}

impl Source {
    /// PTP devices first, since they are more exact.
    fn all(rtcs: &Path, devices: &Path) -> impl Iterator<Item = Self> {
        let ptp = entries(devices, "ptp").into_iter();
        let ptp = ptp.filter_map(|path| File::open(path).ok()).map(Self::Ptp);
        ptp.chain(Self::rtcs(rtcs))
    }

    fn rtcs(folder: &Path) -> impl Iterator<Item = Self> {
        let rtcs = entries(folder, "rtc").into_iter();
        rtcs.map(|path| Self::Rtc(path.join("since_epoch")))
    }

    fn kind(&self) -> HostClockKind {
        match self {
            Self::Rtc(_) => HostClockKind::Rtc,
            Self::Ptp(_) => HostClockKind::Ptp,
        }
    }

    fn read(&self) -> io::Result<Duration> {
        match self {
            Self::Rtc(path) => {
                let text = std::fs::read_to_string(path)?;
                let seconds = text.trim().parse().map_err(io::Error::other)?;
                Ok(Duration::from_secs(seconds))
            }
            // The kernel's number for the clock of an open device (FD_TO_CLOCKID).
            Self::Ptp(device) => {
                let clock = ClockId::from_raw((!device.as_raw_fd() << 3) | 3);
                Ok(clock_gettime(clock).map(Duration::from)?)
            }
        }
    }
}

/// The entries of a folder whose names are `prefix` and a number.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut entries: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_prefix(prefix))
                .is_some_and(|number| number.parse::<u16>().is_ok())
        })
        .collect();
    entries.sort();
    entries
}

/// Compares a clock of the host with the clock of the guest.
pub struct HostClock {
    shared: Arc<Shared>,
    /// The thread ends when this sender is dropped.
    _thread: Option<Sender<()>>,
}

/// A right that ends where the host clock shows a pause of the guest.
pub(crate) trait Guarded: Send + Sync {
    /// Ends the right if the guest was paused since the right was requested.
    fn end_after_a_pause(&self);
}

/// The state shared by the thread, clocks and permits.
pub(crate) struct Shared {
    source: Source,
    /// Counts suspension, but no pause by the hypervisor.
    guest: Box<dyn Fn() -> Option<Duration> + Send + Sync>,
    /// Of the last reading, in nanoseconds: the host clock minus the guest's clock, with the guest's clock
    /// read after and before the host clock.
    lead_at_least: AtomicI64,
    lead_at_most: AtomicI64,
    steps_back: AtomicU64,
    /// The last reading: of the host clock, and of the guest's clock in nanoseconds.
    last: Mutex<Last>,
    /// The host clock has advanced since the first reading. A clock that stands still from the start neither
    /// guards nor ends permits.
    goes: AtomicBool,
    read_at: AtomicU64,
    grants: Mutex<Vec<Weak<dyn Guarded>>>,
}

/// The last reading of the host clock, and the guest's time at the last advance of the host clock.
#[derive(Debug, Default)]
struct Last {
    host: Duration,
    advanced_at: Duration,
}

impl HostClock {
    /// The time between two readings. A pause is noticed at most this long after the end of the pause.
    pub const READ_EVERY: Duration = READ_EVERY;

    /// A measured advance is wrong by less than this time.
    pub const RESOLUTION: Duration = RESOLUTION;

    /// Whether a permit ends because the guest was paused since the permit was requested. A lead is the time,
    /// in nanoseconds, by which the host clock is ahead of the guest's clock.
    #[must_use]
    pub fn shows_pause(lead_when_asked: i64, lead: i64) -> bool {
        let tolerated = i64::try_from(TOLERATED.as_nanos()).unwrap_or(i64::MAX);
        lead.saturating_sub(lead_when_asked) >= tolerated
    }

    /// The first RTC in a folder laid out as `/sys/class/rtc`, compared with `guest`. Starts no thread; the
    /// caller calls [`HostClock::read`].
    pub fn of_folder(
        rtcs: &Path,
        guest: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Option<Self> {
        Self::open(Source::rtcs(rtcs), guest)
    }

    /// The first readable clock.
    fn open(
        sources: impl Iterator<Item = Source>,
        guest: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Option<Self> {
        let source = sources.into_iter().find(|source| source.read().is_ok())?;
        Some(Self {
            shared: Shared::open(source, guest)?,
            _thread: None,
        })
    }

    /// The host clock of this machine, read by a single thread of the process.
    pub(crate) fn of_machine() -> Option<Arc<Shared>> {
        static MACHINE: OnceLock<Option<HostClock>> = OnceLock::new();
        let machine = MACHINE.get_or_init(|| {
            let guest = || clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from);
            let sources = Source::all(Path::new(RTCS), Path::new(DEVICES));
            Self::open(sources, guest)?.read_on_thread().ok()
        });
        machine.as_ref().map(Self::shared)
    }

    /// Reads once a second until the returned value is dropped. A dedicated thread reads, because a busy or
    /// blocked async runtime would delay the reading that ends the permits of a paused guest.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn read_on_thread(self) -> io::Result<Self> {
        let (alive, dropped) = mpsc::channel();
        let shared = self.shared();
        let name = thread::Builder::new().name("host-clock".to_owned());
        name.spawn(move || {
            while dropped.recv_timeout(READ_EVERY) == Err(RecvTimeoutError::Timeout) {
                shared.read();
                shared.end_permits();
            }
        })?;
        Ok(Self {
            _thread: Some(alive),
            ..self
        })
    }

    /// Reads once, and ends the permits that have expired by a pause.
    pub fn read(&self) {
        self.shared.read();
        self.shared.end_permits();
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Shared {
    /// `None` where the first reading fails.
    fn open(
        source: Source,
        guest: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Option<Arc<Self>> {
        let shared = Self {
            source,
            guest: Box::new(guest),
            lead_at_least: AtomicI64::default(),
            lead_at_most: AtomicI64::default(),
            steps_back: AtomicU64::default(),
            last: Mutex::default(),
            goes: AtomicBool::default(),
            read_at: AtomicU64::default(),
            grants: Mutex::default(),
        };
        let is_read = shared.read();
        shared.goes.store(false, Ordering::SeqCst);
        is_read.then(|| Arc::new(shared))
    }

    pub(crate) fn kind(&self) -> HostClockKind {
        if self.goes.load(Ordering::SeqCst) {
            self.source.kind()
        } else {
            HostClockKind::None
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            lead: self.lead_at_most.load(Ordering::SeqCst),
            steps_back: self.steps_back.load(Ordering::SeqCst),
        }
    }

    /// The reason why a permit requested at `asked` has ended; `None` while the permit is valid.
    pub(crate) fn reason_to_end(&self, asked: Mark) -> Option<&'static str> {
        if !self.goes.load(Ordering::SeqCst) {
            return None;
        }
        if self.age() > LATE {
            self.read();
        }
        let latest = Latest {
            lead: self.lead_at_least.load(Ordering::SeqCst),
            steps_back: self.steps_back.load(Ordering::SeqCst),
            age: self.age(),
        };
        reason_to_end(asked, latest)
    }

    /// Checks this permit after each reading.
    pub(crate) fn watch(&self, grant: Weak<dyn Guarded>) {
        locked(&self.grants).push(grant);
    }

    /// Ends the rights actively: work that waits does not check its permit.
    fn end_permits(&self) {
        let present: Vec<_> = {
            let mut grants = locked(&self.grants);
            grants.retain(|grant| grant.strong_count() > 0);
            grants.iter().filter_map(Weak::upgrade).collect()
        };
        for grant in present {
            grant.end_after_a_pause();
        }
    }

    /// False where the reading failed or took too long. Readings of two threads do not overlap.
    fn read(&self) -> bool {
        let mut last = locked(&self.last);
        let (Some(before), Ok(host), Some(after)) = ((self.guest)(), self.source.read(), (self.guest)())
        else {
            return false;
        };
        if after.saturating_sub(before) > READS_WITHIN {
            return false;
        }
        if host < last.host {
            self.steps_back.fetch_add(1, Ordering::SeqCst);
        }
        if host > last.host {
            self.goes.store(true, Ordering::SeqCst);
        }
        if host != last.host {
            last.advanced_at = after;
        } else if after.saturating_sub(last.advanced_at) > MISSING {
            // The host clock stands still, and would show no pause.
            return false;
        }
        last.host = host;
        self.lead_at_least.store(lead(host, after), Ordering::SeqCst);
        self.lead_at_most.store(lead(host, before), Ordering::SeqCst);
        self.read_at.store(nanos(after), Ordering::SeqCst);
        true
    }

    fn age(&self) -> Duration {
        let read_at = Duration::from_nanos(self.read_at.load(Ordering::SeqCst));
        (self.guest)().map_or(Duration::MAX, |now| now.saturating_sub(read_at))
    }
}

fn lead(host: Duration, guest: Duration) -> i64 {
    let (host, guest) = (i128::from(nanos(host)), i128::from(nanos(guest)));
    i64::try_from(host - guest).unwrap_or(i64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tests/host_clock.rs"]
mod tests;
