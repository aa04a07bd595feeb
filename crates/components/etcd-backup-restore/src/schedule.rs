//! Cron schedules with five fields, in UTC: minute, hour, day of month, month, day of week.
//!
//! A full snapshot can therefore not be due more than once a minute.

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;

/// When full snapshots are due.
#[derive(Clone, Debug)]
pub struct Schedule(Cron);

impl Schedule {
    /// Reads a schedule; the error is the sentence that the command line prints.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(text).map_err(|e| {
            format!("{text:?} is not a schedule ({e}); it has five fields like \"0 */24 * * *\"")
        })?;
        let schedule = Self(cron);
        if schedule.next(Timestamp::UNIX_EPOCH).is_none() {
            return Err(format!(
                "{text:?} is never due; write a schedule like \"0 */24 * * *\""
            ));
        }
        Ok(schedule)
    }

    /// The first due minute after a time.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = DateTime::<Utc>::from_timestamp(after.as_second(), 0)?;
        let due = self.0.find_next_occurrence(&after, false).ok()?;
        Timestamp::from_second(due.timestamp()).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn next_due_times() {
        for (schedule, after, expected) in [
            ("0 */24 * * *", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"),
            ("0 */24 * * *", "2026-02-28T23:59:59.5Z", "2026-03-01T00:00:00Z"),
            ("*/15 * * * *", "2026-03-01T10:07:00Z", "2026-03-01T10:15:00Z"),
            ("30 3,15 * * *", "2026-03-01T03:30:00Z", "2026-03-01T15:30:00Z"),
            ("0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 * * 0", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"),
            ("0 0 * * 7", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"),
            // Both day fields are restricted: either may match, as in cron.
            ("0 0 13 * 1", "2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z"),
            ("10-20/5 1 1 1 *", "2026-01-01T01:15:00Z", "2026-01-01T01:20:00Z"),
            ("0 22 * * mon-fri", "2026-11-21T10:00:00Z", "2026-11-23T22:00:00Z"),
        ] {
            let next = Schedule::parse(schedule)
                .unwrap()
                .next(after.parse().unwrap())
                .unwrap();
            assert_eq!(next.to_string(), expected, "{schedule} after {after}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "0 0 31 2 *",
        ] {
            let refused = Schedule::parse(text).unwrap_err();
            assert!(refused.contains("0 */24 * * *"), "{refused}");
        }
    }
}
