//! The file in which candidates record their acts, and the check that the acts of two candidates do not
//! overlap.
//!
//! A line is "when who": nanoseconds of the monotonic clock, shared by all processes of a machine, read
//! before the line is written. Candidates append to the file without a lock: only the election keeps the
//! candidates apart.
//!
//! A candidate that no longer holds the lock after reading the clock adds "late". That is inevitable where a
//! process is stopped between the guard's clock reading and the act, about once in a thousand stops. Work
//! without a proper guard is late at every stop.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use rstest::rstest;

/// The monotonic clock of the machine.
pub fn monotonic() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap())
}

/// Marks the line of an act that came too late.
const LATE: &str = " late";

/// Records that `who` acts now; `held` reports whether `who` still holds the lock.
pub fn act(file: &Path, who: &str, held: impl FnOnce() -> bool) {
    let now = monotonic();
    let late = if held() { "" } else { LATE };
    let line = format!("{} {who}{late}\n", now.as_nanos());
    let mut file = File::options().append(true).create(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// The time in which a single process acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reign {
    pub who: String,
    pub first: Duration,
    pub last: Duration,
}

/// All reigns in the order of the first act, without late acts.
pub fn read(file: &Path) -> Vec<Reign> {
    reigns(&text(file))
}

/// Number of late acts.
pub fn late(file: &Path) -> usize {
    text(file).lines().filter(|line| line.ends_with(LATE)).count()
}

fn text(file: &Path) -> String {
    let mut text = fs::read_to_string(file).unwrap_or_default();
    // An incomplete last line is being written.
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

fn reigns(text: &str) -> Vec<Reign> {
    let mut by_name = BTreeMap::<&str, Reign>::new();
    for line in text.lines().filter(|line| !line.ends_with(LATE)) {
        let (when, who) = line.split_once(' ').unwrap();
        let when = Duration::from_nanos(when.parse().unwrap());
        let reign = by_name.entry(who).or_insert_with(|| Reign {
            who: who.to_owned(),
            first: when,
            last: when,
        });
        reign.first = reign.first.min(when);
        reign.last = reign.last.max(when);
    }
    let mut all: Vec<Reign> = by_name.into_values().collect();
    all.sort_by_key(|reign| reign.first);
    all
}

/// Two processes that acted at once, if any: the second began before the first had ended.
pub fn overlap(reigns: &[Reign]) -> Option<(&Reign, &Reign)> {
    reigns
        .windows(2)
        .map(|pair| (&pair[0], &pair[1]))
        .find(|(one, next)| next.first <= one.last)
}

#[rstest]
#[case::nothing("", None)]
#[case::one("1 a\n2 a\n", None)]
#[case::one_after_another("1 a\n2 a\n3 b\n4 b\n5 c\n", None)]
#[case::written_late("3 b\n1 a\n2 a\n", None)]
#[case::in_between("1 a\n2 b\n3 a\n", Some(("a", "b")))]
#[case::once_more("1 a\n2 a\n3 b\n4 b\n5 a\n", Some(("a", "b")))]
#[case::at_the_same_moment("1 a\n1 b\n", Some(("a", "b")))]
#[case::late("1 a\n2 b\n3 a late\n", None)]
fn acting_at_once_is_found(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
    let reigns = reigns(text);
    let found = overlap(&reigns).map(|(one, next)| (one.who.as_str(), next.who.as_str()));
    assert_eq!(found, expected);
}
