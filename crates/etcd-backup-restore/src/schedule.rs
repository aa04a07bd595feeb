//! Cron schedules with five fields, in UTC: minute, hour, day of month, month, day of week.

use jiff::{Span, Timestamp, Zoned, civil::Time, tz::TimeZone};

/// When full snapshots are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
}

/// A due time is looked for this far ahead; it must be longer than the four years between two 29ths of February.
const HORIZON_DAYS: u32 = 5 * 366;

impl Schedule {
    /// Reads a schedule; the error is the sentence that the command line prints.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<_> = text.split_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(format!(
                "{text:?} is not a schedule; it has five fields like \"0 */24 * * *\""
            ));
        };
        let weekday_bits = field(weekdays, 0, 7)?;
        let schedule = Self {
            minutes: field(minutes, 0, 59)?,
            hours: field(hours, 0, 23)?,
            days: field(days, 1, 31)?,
            months: field(months, 1, 12)?,
            // 7 is Sunday too.
            weekdays: weekday_bits | (weekday_bits >> 7 & 1),
            any_day: days.starts_with('*'),
            any_weekday: weekdays.starts_with('*'),
        };
        if schedule.next(Timestamp::UNIX_EPOCH).is_none() {
            return Err(format!("{text:?} is never due"));
        }
        Ok(schedule)
    }

    /// The first due minute after a time.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_zoned(TimeZone::UTC);
        let mut day = after.start_of_day().ok()?;
        for _ in 0..HORIZON_DAYS {
            if self.is_due_on(&day) {
                for minute in (0..24_i8).filter(|h| bit(self.hours, *h)).flat_map(|h| {
                    (0..60_i8)
                        .filter(|m| bit(self.minutes, *m))
                        .filter_map(move |m| Time::new(h, m, 0, 0).ok())
                }) {
                    let due = day.date().to_datetime(minute).to_zoned(TimeZone::UTC).ok()?;
                    if due > after {
                        return Some(due.timestamp());
                    }
                }
            }
            day = day.checked_add(Span::new().days(1)).ok()?;
        }
        None
    }

    fn is_due_on(&self, day: &Zoned) -> bool {
        let by_day = bit(self.days, day.day());
        let by_weekday = bit(self.weekdays, day.weekday().to_sunday_zero_offset());
        let day_fits = match (self.any_day, self.any_weekday) {
            // Both restricted: either may fit, as cron has always had it.
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        };
        bit(self.months, day.month()) && day_fits
    }
}

fn bit(bits: u64, index: i8) -> bool {
    u32::try_from(index).is_ok_and(|i| bits >> i & 1 == 1)
}

fn field(text: &str, min: u32, max: u32) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a field of a schedule between {min} and {max}");
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = part
            .split_once('/')
            .map_or((part, Ok(1)), |(r, s)| (r, s.parse::<u32>()));
        let step = step.ok().filter(|s| *s > 0).ok_or_else(wrong)?;
        let number = |n: &str| {
            n.parse::<u32>()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .ok_or_else(wrong)
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part.contains('/') => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        let step = usize::try_from(step).map_err(|_| wrong())?;
        bits |= (from..=to).step_by(step).fold(0, |bits, n| bits | 1 << n);
    }
    if bits == 0 { Err(wrong()) } else { Ok(bits) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn next_due_times() {
        for (schedule, after, expected) in [
            ("0 */24 * * *", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"),
            ("0 */24 * * *", "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"),
            ("*/15 * * * *", "2026-03-01T10:07:00Z", "2026-03-01T10:15:00Z"),
            ("30 3,15 * * *", "2026-03-01T03:30:00Z", "2026-03-01T15:30:00Z"),
            ("0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 * * 0", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"),
            ("0 0 * * 7", "2026-11-21T10:00:00Z", "2026-11-22T00:00:00Z"),
            ("0 0 13 * 1", "2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z"),
            ("10-20/5 1 1 1 *", "2026-01-01T01:15:00Z", "2026-01-01T01:20:00Z"),
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
            "60 * * * *",
            "* 24 * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "0 0 31 2 *",
        ] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }
}
