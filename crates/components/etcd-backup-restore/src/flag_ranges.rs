//! Bounds of flags: a value outside the bounds would let the process take snapshots continuously, never take
//! a snapshot, or keep no snapshot. The process refuses such a value at the start, with the bounds and an
//! example.

use crate::duration;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// A parser for a duration between two bounds, which are written as on the command line.
pub fn period(
    shortest: &'static str,
    longest: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let value = duration::parse(text)?;
        let (least, most) = (duration::parse(shortest)?, duration::parse(longest)?);
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(format!(
            "write a duration from {shortest} to {longest}, such as {longest}"
        ))
    }
}

/// Like [`period`], but also accepts 0, with the meaning `zero`.
pub fn period_or_zero(
    zero: &'static str,
    shortest: &'static str,
    longest: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    let within = period(shortest, longest);
    move |text| match duration::parse(text)? {
        Duration::ZERO => Ok(Duration::ZERO),
        _ => within(text).map_err(|e| format!("{e}, or 0 {zero}")),
    }
}

/// A parser for a number between two bounds.
pub fn number<N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static>(
    least: N,
    most: N,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        text.parse()
            .ok()
            .filter(|value| (least..=most).contains(value))
            .ok_or_else(|| format!("write a number from {least} to {most}"))
    }
}

/// A parser for a number from 1 to `most`, or -1 for no limit.
pub fn number_or_all(most: i64) -> impl Fn(&str) -> Result<i64, String> + Clone + Send + Sync + 'static {
    let within = number(1, most);
    move |text| match text {
        "-1" => Ok(-1),
        _ => within(text).map_err(|e| format!("{e}, or -1 for no limit")),
    }
}
