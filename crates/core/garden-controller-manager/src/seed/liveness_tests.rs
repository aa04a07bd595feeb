use super::*;

const PERIOD: Duration = Duration::from_secs(40);

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

#[test]
fn silence_is_measured_from_the_last_change_that_was_seen() {
    let mut observations = Observations::default();
    let start = Instant::now();
    let later = |seconds| start + Duration::from_secs(seconds);
    // A Lease that is years old is still fresh to a process that has just started.
    assert_eq!(observations.judge("a", at(5), PERIOD, start), Liveness::Heard);
    assert_eq!(observations.judge("a", at(5), PERIOD, later(40)), Liveness::Heard);
    assert_eq!(
        observations.judge("a", at(5), PERIOD, later(41)),
        Liveness::Silent(Duration::from_secs(41))
    );
    // A single renewal makes the gardenlet alive again, with any renewal time (a clock may run behind).
    assert_eq!(observations.judge("a", at(4), PERIOD, later(50)), Liveness::Heard);
    assert_eq!(observations.judge("a", at(4), PERIOD, later(90)), Liveness::Heard);
    assert_eq!(
        observations.judge("a", at(4), PERIOD, later(91)),
        Liveness::Silent(Duration::from_secs(41))
    );
}

#[test]
fn shoots_of_a_silent_seed_are_listed_once_a_period() {
    let mut observations = Observations::default();
    let start = Instant::now();
    let later = |seconds| start + Duration::from_secs(seconds);
    observations.judge("a", at(5), PERIOD, start);
    assert!(observations.are_shoots_due("a", PERIOD, later(50)));
    observations.note_shoots("a", later(50));
    observations.judge("a", at(5), PERIOD, later(60));
    assert!(!observations.are_shoots_due("a", PERIOD, later(89)));
    assert!(observations.are_shoots_due("a", PERIOD, later(90)));
    // The period restarts with each silence.
    observations.judge("a", at(6), PERIOD, later(61));
    assert!(observations.are_shoots_due("a", PERIOD, later(62)));
}

#[test]
fn a_seed_without_lease_gets_one_period() {
    let mut observations = Observations::default();
    let start = Instant::now();
    assert_eq!(observations.judge("a", None, PERIOD, start), Liveness::Heard);
    let late = start + Duration::from_secs(100);
    assert_eq!(
        observations.judge("a", None, PERIOD, late),
        Liveness::Silent(Duration::from_secs(100))
    );
    observations.forget("a");
    assert_eq!(observations.judge("a", None, PERIOD, late), Liveness::Heard);
}
