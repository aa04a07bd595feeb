#![allow(clippy::unwrap_used)]
use api::gardencore::shoot::HibernationSchedule;

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-01-05T{text}:00Z").parse().unwrap()
}

fn schedules(all: &[(&str, &str)]) -> Vec<Schedule> {
    let read = |(start, end): &(&str, &str)| {
        Schedule::read(&HibernationSchedule {
            start: Some((*start).to_owned()),
            end: Some((*end).to_owned()),
            location: None,
        })
    };
    all.iter().map(|one| read(one).unwrap()).collect()
}

#[test]
fn the_last_time_that_has_come_counts_once() {
    let nightly = schedules(&[("0 20 * * *", "0 8 * * *")]);
    for (last, now, sleep, next) in [
        ("07:00", "07:59", None, "08:00"),
        ("07:00", "08:00", Some(false), "20:00"),
        ("08:00", "08:00", None, "20:00"),
        // A user may have changed the hibernation since.
        ("08:01", "12:00", None, "20:00"),
        ("08:00", "20:00", Some(true), "08:00"),
        // Missed, and missed by too much.
        ("08:00", "21:59", Some(true), "08:00"),
        ("08:00", "22:01", None, "08:00"),
    ] {
        let decision = decide(&nightly, at(last), at(now));
        assert_eq!(decision.sleep, sleep, "{last} {now}");
        let next_at = decision.next.unwrap().to_string();
        assert!(next_at.contains(&format!("T{next}")), "{last} {now}: {next_at}");
    }
}

/// The value of a hostile seed, which moves to the next seed with the Shoot.
#[test]
fn a_last_time_in_the_far_future_holds_no_later_time_back() {
    let nightly = schedules(&[("0 20 * * *", "0 8 * * *")]);
    let last: Timestamp = "8999-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(decide(&nightly, last, at("19:59")).sleep, None);
    assert_eq!(decide(&nightly, last, at("20:00")).sleep, Some(true));
    // The clock of a former process was a minute ahead: the time has taken effect.
    assert_eq!(decide(&nightly, at("20:01"), at("20:00")).sleep, None);
}

#[test]
fn of_several_the_last_counts_and_waking_before_sleeping() {
    let of = |all: &[(&str, &str)], now| decide(&schedules(all), at("08:00"), at(now)).sleep;
    assert_eq!(of(&[("0 9 * * *", "30 9 * * *")], "10:00"), Some(false));
    assert_eq!(of(&[("30 9 * * *", "0 9 * * *")], "10:00"), Some(true));
    assert_eq!(
        of(
            &[("0 9 * * *", "0 20 * * *"), ("0 20 * * *", "0 9 * * *")],
            "09:30"
        ),
        Some(false)
    );
    // Each minute, for the whole of [`DEADLINE`].
    assert_eq!(of(&[("* * * * *", "30 9 * * *")], "10:00"), Some(true));
    assert_eq!(
        decide(&[], at("08:00"), at("10:00")),
        Decision {
            sleep: None,
            next: None
        }
    );
}
