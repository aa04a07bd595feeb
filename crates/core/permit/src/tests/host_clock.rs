//! A clock of the host goes on while both clocks of the guest stand still.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::future::pending;
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::{Clock, Issuer, NotPermitted};

const SECOND: Duration = Duration::from_secs(1);

/// The reason that a test expects first.
const PAUSED: &str = "this machine was paused";

/// A machine with clocks set by the test: the RTC is a folder in place of `/sys/class/rtc`, and the clocks of
/// the guest stand still unless the test moves the clocks.
struct Machine {
    rtcs: TempDir,
    guest: Arc<AtomicU64>,
    host: HostClock,
    clock: Clock,
}

impl Machine {
    fn new() -> Self {
        let rtcs = tempfile::tempdir().unwrap();
        set_rtc(rtcs.path(), 1_800_000_000);
        let guest = Arc::new(AtomicU64::new(7_000));
        let (read, suspended) = (Arc::clone(&guest), Arc::clone(&guest));
        let host = HostClock::of_folder(rtcs.path(), move || {
            Some(Duration::from_millis(read.load(Ordering::SeqCst)))
        })
        .unwrap();
        let suspended = move || Duration::from_millis(suspended.load(Ordering::SeqCst));
        let clock = Clock::with_suspension(suspended).guarded_by(&host);
        Self {
            rtcs,
            guest,
            host,
            clock,
        }
    }

    /// Sets the RTC to this time after the start.
    fn set_rtc(&self, seconds: u64) {
        set_rtc(self.rtcs.path(), 1_800_000_000 + seconds);
    }

    fn run_guest(&self, time: Duration) {
        self.guest
            .fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Both clocks advance.
    fn go_on(&self, time: Duration) {
        self.run_guest(time);
        self.set_rtc(time.as_secs());
        self.host.read();
    }

    fn issue_for(&self, validity: Duration) -> Issuer {
        Issuer::new("a right", self.clock.clone(), self.clock.now() + validity)
    }
}

fn set_rtc(rtcs: &Path, seconds: u64) {
    let rtc = rtcs.join("rtc0");
    std::fs::create_dir_all(&rtc).unwrap();
    std::fs::write(rtc.join("since_epoch"), format!("{seconds}\n")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_was_paused_loses_its_permits_with_the_next_reading() {
    let machine = Machine::new();
    let issuer = machine.issue_for(12 * SECOND);
    let permit = issuer.permit();
    // Both clocks of the guest stand still, and the host's clock advances.
    machine.set_rtc(60);
    assert!(
        permit.is_valid(),
        "before the next reading nothing shows the pause"
    );
    machine.host.read();
    let refused = permit.check().unwrap_err();
    assert!(refused.why.contains(PAUSED), "{refused}");
    // For good, also if a later reading shows a smaller advance.
    machine.run_guest(60 * SECOND);
    machine.set_rtc(61);
    machine.host.read();
    assert!(!permit.is_valid());
    assert!(!issuer.extend(machine.clock.now() + 12 * SECOND));
    // A right requested after the pause is valid.
    assert!(machine.issue_for(12 * SECOND).permit().is_valid());
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_from_before_the_pause_gives_no_permit() {
    let machine = Machine::new();
    let asked = machine.clock.now();
    let issuer = Issuer::new("a right", machine.clock.clone(), asked + 12 * SECOND);
    machine.set_rtc(60);
    machine.host.read();
    assert!(!issuer.extend(asked + 13 * SECOND));
    let late = Issuer::new("a right", machine.clock.clone(), asked + 12 * SECOND);
    assert!(!late.permit().is_valid());
}

#[tokio::test(start_paused = true)]
async fn pauses_add_up_since_the_permit_was_asked_for() {
    let machine = Machine::new();
    let issuer = machine.issue_for(60 * SECOND);
    machine.set_rtc(1);
    machine.host.read();
    assert!(issuer.in_time());
    machine.set_rtc(2);
    machine.host.read();
    assert!(!issuer.in_time());
}

#[tokio::test(start_paused = true)]
async fn a_host_clock_that_goes_back_ends_permits() {
    let machine = Machine::new();
    let permit = machine.issue_for(12 * SECOND);
    machine.set_rtc(1);
    machine.host.read();
    assert!(permit.in_time());
    machine.set_rtc(0);
    machine.host.read();
    let refused = permit.permit().check().unwrap_err();
    assert!(refused.why.contains("went back"), "{refused}");
}

/// The process or the thread was stopped: a check of a permit makes the overdue reading.
#[tokio::test(start_paused = true)]
async fn a_reading_that_is_late_is_made_by_the_check() {
    let machine = Machine::new();
    machine.go_on(SECOND);
    let issuer = machine.issue_for(12 * SECOND);
    machine.run_guest(4 * SECOND);
    machine.set_rtc(5);
    assert!(issuer.in_time(), "the clocks agree");
    machine.run_guest(3 * SECOND);
    machine.set_rtc(28);
    assert!(!issuer.in_time(), "nothing but the check has read");
}

#[tokio::test(start_paused = true)]
async fn a_host_clock_that_cannot_be_read_any_more_ends_permits() {
    let machine = Machine::new();
    machine.go_on(SECOND);
    let issuer = machine.issue_for(60 * SECOND);
    std::fs::remove_file(machine.rtcs.path().join("rtc0/since_epoch")).unwrap();
    machine.run_guest(5 * SECOND);
    assert!(issuer.in_time());
    machine.run_guest(SECOND);
    let refused = issuer.permit().check().unwrap_err();
    assert!(refused.why.contains("cannot be read"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_host_clock_that_stands_still_guards_nothing_from_the_start_and_ends_permits_later() {
    let machine = Machine::new();
    let issuer = machine.issue_for(600 * SECOND);
    for _ in 0..20 {
        machine.run_guest(SECOND);
        machine.host.read();
    }
    assert_eq!(machine.clock.host_clock(), HostClockKind::None);
    assert!(issuer.in_time());
    // A clock that has advanced before and stops is noticed.
    machine.set_rtc(20);
    machine.host.read();
    assert_eq!(machine.clock.host_clock(), HostClockKind::Rtc);
    let issuer = machine.issue_for(600 * SECOND);
    for second in 0..12 {
        assert!(issuer.in_time() || second > MISSING.as_secs(), "after {second} s");
        machine.run_guest(SECOND);
        machine.host.read();
    }
    assert!(!issuer.in_time());
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_no_time_ends_is_not_ended_by_a_pause() {
    let machine = Machine::new();
    let issuer = machine.issue_for(Duration::from_secs(10 * 365 * 24 * 60 * 60));
    machine.set_rtc(60);
    machine.host.read();
    assert!(issuer.in_time());
}

#[test]
fn a_machine_without_a_host_clock_has_none() {
    let empty = tempfile::tempdir().unwrap();
    let guest = || Some(Duration::ZERO);
    assert!(HostClock::of_folder(empty.path(), guest).is_none());
    std::fs::create_dir(empty.path().join("rtc0")).unwrap();
    std::fs::write(empty.path().join("rtc0/since_epoch"), "unknown").unwrap();
    assert!(HostClock::of_folder(empty.path(), guest).is_none());
    // The next RTC counts then.
    std::fs::create_dir(empty.path().join("rtc1")).unwrap();
    std::fs::write(empty.path().join("rtc1/since_epoch"), "1800000000").unwrap();
    assert!(HostClock::of_folder(empty.path(), guest).is_some());
    assert!(Source::all(empty.path(), empty.path()).next().is_some());
    assert_eq!(
        Clock::with_suspension(|| Duration::ZERO).host_clock().as_str(),
        "None"
    );
}

/// The work waits and would not check the permit.
#[tokio::test]
async fn the_thread_ends_work_that_waits() {
    let machine = Machine::new();
    let Machine {
        rtcs, host, clock, ..
    } = machine;
    let issuer = Issuer::new("a right", clock.clone(), clock.now() + 600 * SECOND);
    let _reading = host.read_on_thread().unwrap();
    set_rtc(rtcs.path(), 1_800_000_600);
    let begun = Instant::now();
    let refused = issuer.permit().guard(pending::<()>()).await.unwrap_err();
    assert!(
        matches!(&refused, NotPermitted { why, .. } if why.contains(PAUSED)),
        "{refused}"
    );
    assert!(begun.elapsed() < 60 * SECOND, "{:?}", begun.elapsed());
}

/// A machine under real conditions: readings are late and slow, the host clock counts whole seconds, both
/// clocks run at different rates.
struct Simulated {
    random: fastrand::Rng,
    /// Parts per million by which the guest's clock is fast.
    fast: i64,
    phase: f64,
    paused: f64,
    steps_back: u64,
}

impl Simulated {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            fast: random.i64(-2000..=2000),
            phase: random.f64(),
            random,
            paused: 0.0,
            steps_back: 0,
        }
    }

    /// The leads of a reading at this time of the guest: lower and upper bound.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    fn read(&mut self, guest: f64) -> (i64, i64) {
        let before = guest;
        let read = before + self.random.f64() * 0.05;
        let after = read + self.random.f64() * 0.05;
        let rate = 1.0 + self.fast as f64 / 1e6;
        let host = (read / rate + self.phase + self.paused).floor();
        let lead = |guest: f64| ((host - guest) * 1e9) as i64;
        (lead(after), lead(before))
    }

    /// Requests a right at about 0 s of the guest's time, and pauses the guest for `pause` at 6 s. Returns
    /// the reason to end for each reading up to 12 s.
    fn reasons(&mut self, pause: f64) -> Vec<(f64, Option<&'static str>)> {
        let asked = -self.random.f64();
        let mark = Mark {
            lead: self.read(asked).1,
            steps_back: self.steps_back,
        };
        let mut reasons = Vec::new();
        let mut now = asked;
        while now < 12.0 {
            // A second after the last reading, or later.
            now += 1.0 + self.random.f64() * 0.2;
            self.paused = if now > 6.0 { pause } else { 0.0 };
            let latest = Latest {
                lead: self.read(now).0,
                steps_back: self.steps_back,
                age: Duration::ZERO,
            };
            reasons.push((now, reason_to_end(mark, latest)));
        }
        reasons
    }
}

#[test]
fn a_healthy_machine_loses_no_permit() {
    for seed in 0..20_000 {
        // Shorter than the resolution minus the error of the rates.
        let pause = if seed % 2 == 0 { 0.0 } else { 0.9 };
        let reasons = Simulated::new(seed).reasons(pause);
        assert!(
            reasons.iter().all(|(_, reason)| reason.is_none()),
            "seed {seed}: {reasons:?}"
        );
    }
}

#[test]
fn a_pause_of_three_seconds_is_noticed_by_the_first_reading_after_it() {
    for seed in 0..20_000 {
        // The additional 0.13 s covers the time of a reading and the error of the rates.
        let pause = 3.13 + f64::from(u32::try_from(seed).unwrap() % 100);
        for (at, reason) in Simulated::new(seed).reasons(pause) {
            assert_eq!(reason.is_some(), at > 6.0, "seed {seed}: {reason:?} at {at}");
        }
    }
}
