//! Tables: observation, decision, and time of the decision.

#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction)]

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use crate::decision::{Decision, decide};
use crate::observation::{LeaseState, Observation};
use crate::{ElectionRecord, Timing, TimingError};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A record of `holder` ("" is no holder) that was renewed this many seconds after 1970.
fn record(holder: &str, renewed: i64) -> ElectionRecord {
    ElectionRecord {
        holder: Some(holder.to_owned()).filter(|holder| !holder.is_empty()),
        lease_seconds: Some(15),
        acquired: Some(Timestamp::UNIX_EPOCH),
        renewed: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(renewed)),
        transitions: 3,
    }
}

fn present(holder: &str) -> LeaseState {
    LeaseState::Present(record(holder, 0))
}

#[rstest]
#[case::no_lease(LeaseState::Absent, s(0), Decision::Wait(s(15)))]
#[case::no_lease_for_a_while(LeaseState::Absent, s(14), Decision::Wait(s(1)))]
#[case::no_lease_for_long(LeaseState::Absent, s(100), Decision::Create)]
#[case::released(present(""), s(0), Decision::TakeOver)]
#[case::a_lease_without_spec(LeaseState::Present(ElectionRecord::read(None)), s(0), Decision::TakeOver)]
#[case::my_own(present("me"), s(0), Decision::Renew)]
#[case::my_own_after_its_time(present("me"), s(100), Decision::Renew)]
#[case::another_just_seen(present("other"), s(0), Decision::Wait(s(15)))]
#[case::another_for_a_while(present("other"), s(14), Decision::Wait(s(1)))]
#[case::another_just_in_time(present("other"), ms(14_999), Decision::Wait(ms(1)))]
#[case::another_ran_out(present("other"), s(15), Decision::TakeOver)]
#[case::another_long_gone(present("other"), s(3600), Decision::TakeOver)]
fn the_first_look_decides_by_the_time_since_it(
    #[case] seen: LeaseState,
    #[case] later: Duration,
    #[case] expected: Decision,
) {
    let now = Instant::now();
    let observation = Observation::first(seen, now);
    assert_eq!(
        decide(&observation, "me", &Timing::default(), now + later),
        expected
    );
}

/// The lease duration in the holder's record counts, not this candidate's. Without a valid duration in the
/// record, this candidate's counts.
#[rstest]
#[case::shorter(Some(2), s(2))]
#[case::longer(Some(60), s(60))]
#[case::longest(Some(i32::MAX), s(2_147_483_647))]
#[case::none(None, s(15))]
#[case::zero(Some(0), s(15))]
#[case::negative(Some(-5), s(15))]
fn the_duration_in_the_record_counts(#[case] seconds: Option<i32>, #[case] waits: Duration) {
    let now = Instant::now();
    let seen = LeaseState::Present(ElectionRecord {
        lease_seconds: seconds,
        ..record("other", 0)
    });
    let observation = Observation::first(seen, now);
    assert_eq!(
        decide(&observation, "me", &Timing::default(), now),
        Decision::Wait(waits)
    );
}

/// Any change of the record is a sign of life; an unchanged record is not.
#[rstest]
#[case::the_same(record("other", 0), Decision::TakeOver)]
#[case::renewed(record("other", 2), Decision::Wait(s(14)))]
#[case::renewed_by_a_clock_that_went_back(record("other", -3600), Decision::Wait(s(14)))]
#[case::taken_by_a_third(record("third", 0), Decision::Wait(s(14)))]
#[case::one_more_transition(ElectionRecord { transitions: 4, ..record("other", 0) }, Decision::Wait(s(14)))]
#[case::released(record("", 0), Decision::TakeOver)]
fn time_starts_anew_when_the_record_changes(#[case] second: ElectionRecord, #[case] expected: Decision) {
    let start = Instant::now();
    let mut observation = Observation::first(present("other"), start);
    observation.update(LeaseState::Present(second), start + s(14));
    assert_eq!(
        decide(&observation, "me", &Timing::default(), start + s(15)),
        expected
    );
}

/// Deleting a Lease does not stop the holder: the holder works until the end of the lease and will create the
/// Lease again. The same wait applies where the lock was free when last seen: a process may have taken the
/// lock since.
#[rstest]
#[case::while_another_may_work(present("other"), s(5), Decision::Wait(s(15)))]
#[case::after_anothers_time(present("other"), s(15), Decision::Wait(s(15)))]
#[case::while_it_was_free(present(""), s(5), Decision::Wait(s(15)))]
#[case::while_it_was_mine(present("me"), s(5), Decision::Create)]
#[case::before_there_was_any(LeaseState::Absent, s(5), Decision::Wait(s(10)))]
fn a_deleted_lease_is_not_a_released_one(
    #[case] before: LeaseState,
    #[case] deleted_after: Duration,
    #[case] expected: Decision,
) {
    let start = Instant::now();
    let mut observation = Observation::first(before, start);
    let now = start + deleted_after;
    observation.update(LeaseState::Absent, now);
    observation.update(LeaseState::Absent, now);
    assert_eq!(decide(&observation, "me", &Timing::default(), now), expected);
}

#[rstest]
#[case::held(present("other"), s(14), None)]
#[case::run_out(present("other"), s(16), Some(s(15)))]
#[case::released(present(""), s(16), Some(s(0)))]
#[case::never_there(LeaseState::Absent, s(16), None)]
fn a_hand_over_is_measured_from_when_the_holder_was_gone(
    #[case] seen: LeaseState,
    #[case] now: Duration,
    #[case] free_since: Option<Duration>,
) {
    let start = Instant::now();
    let observation = Observation::first(seen, start);
    let measured = observation.free_since(s(15), start + now);
    assert_eq!(measured.map(|since| since - start), free_since);
}

#[rstest]
#[case::as_kubernetes(s(15), s(10), s(2), None)]
#[case::short(s(1), ms(700), ms(200), None)]
#[case::not_whole_seconds(ms(1500), s(1), ms(200), Some(TimingError::NotWholeSeconds(ms(1500))))]
#[case::no_lease(s(0), s(0), s(0), Some(TimingError::NotWholeSeconds(s(0))))]
#[case::too_long(s(1 << 40), s(10), s(2), Some(TimingError::NotWholeSeconds(s(1 << 40))))]
#[case::lease_not_longer(s(10), s(10), s(2), Some(TimingError::LeaseTooShort { lease: s(10), renew: s(10) }))]
#[case::deadline_not_longer(s(15), ms(2400), s(2), Some(TimingError::DeadlineTooShort { renew: ms(2400), retry: s(2) }))]
#[case::no_pause(s(15), s(10), s(0), Some(TimingError::NoPause))]
fn timing_is_checked(
    #[case] lease: Duration,
    #[case] renew: Duration,
    #[case] retry: Duration,
    #[case] error: Option<TimingError>,
) {
    assert_eq!(Timing::new(lease, renew, retry).err(), error);
}

#[test]
fn a_candidate_looks_within_the_retry_period_and_two_requests_fit_into_the_deadline() {
    let timing = Timing::default();
    for chance in [0.0, 0.5, 0.999, 1.0, 7.0] {
        let pause = timing.pause(chance);
        assert!(
            pause <= timing.retry_period && pause >= timing.retry_period.mul_f64(0.79),
            "{pause:?}"
        );
    }
    assert!(timing.request_timeout() * 2 <= timing.renew_deadline);
}
