//! Which objects may go. A chain (a full snapshot and its deltas) goes as a whole.
//!
//! Never collected: the newest chain, and a final snapshot. Pure: the listing and the time in, the victims out.

use crate::chain::fulls_newest_first;
use crate::snapshot_name::{Kind, Snapshot};

/// What is kept beside the newest chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The newest `--max-backups` chains.
    #[default]
    #[value(name = "LimitBased")]
    LimitBased,
    /// Every chain of the last day, then the newest of each day for a week, then of each week for four weeks.
    #[value(name = "Exponential")]
    Exponential,
}

const DAY: i64 = 24 * 60 * 60;
const WEEK: i64 = 7 * DAY;

/// The objects that the policy gives up, oldest chains last to be thought of and first to go.
#[must_use]
pub fn victims(listing: &[Snapshot], policy: Policy, max_backups: usize, now: i64) -> Vec<Snapshot> {
    let fulls = fulls_newest_first(listing);
    let Some(newest) = fulls.first() else {
        return Vec::new();
    };
    let kept: Vec<&Snapshot> = match policy {
        Policy::LimitBased => fulls.iter().take(max_backups.max(1)).copied().collect(),
        Policy::Exponential => thinned(&fulls, now),
    };
    listing
        .iter()
        .filter(|s| match s.kind {
            Kind::Full => !s.is_final && !kept.contains(s) && s != newest,
            // A delta belongs to the newest full snapshot that is older than its end.
            Kind::Delta => {
                let chain = fulls.iter().find(|f| f.last_revision < s.last_revision);
                chain.is_none_or(|full| !kept.contains(full) && full != newest && !full.is_final)
            }
        })
        .cloned()
        .collect()
}

fn thinned<'a>(fulls: &[&'a Snapshot], now: i64) -> Vec<&'a Snapshot> {
    let mut kept: Vec<&Snapshot> = Vec::new();
    let mut taken = std::collections::HashSet::new();
    for &full in fulls {
        let age = now - full.created;
        let slot = match age {
            a if a < DAY => None,
            a if a < WEEK => Some((DAY, a / DAY)),
            a if a < 4 * WEEK => Some((WEEK, a / WEEK)),
            _ => continue,
        };
        if slot.is_none_or(|slot| taken.insert(slot)) {
            kept.push(full);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full, last};

    fn names(listing: &[Snapshot]) -> Vec<String> {
        listing.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_limit_keeps_the_newest_chains_whole() {
        let listing: Vec<_> = (1..=5)
            .flat_map(|n| [full(n * 10, n), delta(n * 10 + 1, n * 10 + 5, n)])
            .collect();
        let gone = victims(&listing, Policy::LimitBased, 2, 100);
        let expected: Vec<_> = (1..=3)
            .flat_map(|n| [full(n * 10, n), delta(n * 10 + 1, n * 10 + 5, n)])
            .collect();
        assert_eq!(names(&gone), names(&expected));
    }

    #[test]
    fn the_newest_chain_and_finals_always_stay() {
        let listing = [
            last(10, 1),
            delta(11, 15, 2),
            full(20, 3),
            full(30, 4),
            delta(31, 32, 5),
        ];
        let gone = victims(&listing, Policy::LimitBased, 0, 100);
        assert_eq!(names(&gone), names(&[full(20, 3)]));
        assert!(victims(&[full(5, 1)], Policy::Exponential, 0, 900 * WEEK).is_empty());
        assert!(victims(&[], Policy::LimitBased, 7, 0).is_empty());
    }

    #[test]
    fn deltas_older_than_every_full_go() {
        let gone = victims(
            &[delta(2, 4, 1), full(5, 2), delta(6, 7, 3)],
            Policy::LimitBased,
            7,
            100,
        );
        assert_eq!(names(&gone), names(&[delta(2, 4, 1)]));
    }

    #[test]
    fn a_delta_that_runs_into_a_full_goes_with_the_chain_it_began_in() {
        // The full at 10 covers 6..=10 in part: the delta ends after it, so the newer chain still needs it.
        let listing = [full(5, 1), full(10, 2), delta(6, 12, 3), delta(13, 14, 4)];
        assert!(
            victims(&listing, Policy::LimitBased, 1, 100)
                .iter()
                .all(|s| s.kind == Kind::Full)
        );
    }

    #[test]
    fn age_thins_out_chains() {
        let now = 40 * WEEK;
        let listing: Vec<_> = (0..200).map(|n| full(1000 - n, now - n * DAY / 4)).collect();
        let gone = victims(&listing, Policy::Exponential, 7, now);
        let kept = listing.len() - gone.len();
        assert_eq!(kept, 4 + 6 + 3);
    }
}
