//! Selects the objects that garbage collection deletes. A chain (a full snapshot and its deltas) is deleted
//! as a whole.
//!
//! Never collected: the newest chain, the chain with which the epoch began (while that chain is the newest),
//! and a final snapshot. Pure functions: listing and time in, victims out.

use crate::chain::fulls_newest_first;
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::Recorded;
use std::collections::HashSet;

/// The retention policy for chains older than the newest chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The newest `--max-backups` chains.
    #[default]
    #[value(name = "LimitBased")]
    LimitBased,
    /// Every chain of the last hour; then the last chain of each hour for a day, of each day for a week, and
    /// of each week for four more weeks.
    #[value(name = "Exponential")]
    Exponential,
}

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970 began on a Thursday; weeks begin on Mondays.
const MONDAY: i64 = 3 * DAY;

/// A slot is an hour, a day or a week of the calendar in UTC. The last chain of a slot stays the last chain
/// at any later run. (Slots counted back from the current time would move with every run, and no chain would
/// ever age.)
struct Tier {
    slot: i64,
    offset: i64,
    /// Number of slots that are kept before the current slot.
    before: i64,
}

const TIERS: [Tier; 3] = [
    Tier {
        slot: HOUR,
        offset: 0,
        before: 24,
    },
    Tier {
        slot: DAY,
        offset: 0,
        before: 7,
    },
    // The week of the days above lies in two weeks of the calendar, four more follow.
    Tier {
        slot: WEEK,
        offset: MONDAY,
        before: 5,
    },
];

impl Tier {
    fn slot_of(&self, time: i64) -> i64 {
        time.saturating_add(self.offset).div_euclid(self.slot)
    }
}

/// The objects that the policy releases: the oldest chains are deleted first.
#[must_use]
pub fn victims(listing: &[Snapshot], policy: Policy, max_backups: usize, now: i64) -> Vec<Snapshot> {
    let fulls = fulls_newest_first(listing);
    let Some(newest) = fulls.first() else {
        return Vec::new();
    };
    let kept = kept(&fulls, policy, max_backups, now);
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

/// The snapshots of earlier epochs that the policy releases. The copy transferred such snapshots ahead of a
/// final snapshot, and the epoch did not begin with them; or an earlier residency in this seed left them. No
/// restore and no copy reads such snapshots any more.
///
/// The snapshots count as older chains in addition to `listing`, the snapshots that the epoch sees; `listing`
/// itself is not reduced. Never collected: the chain with which the epoch began, and a final snapshot. If a
/// snapshot lies behind the end of the chain with which the epoch began, all snapshots stay. Such a snapshot
/// may be the last copy of lost changes, and may continue the rest.
#[must_use]
pub fn superseded(
    everything: &[Snapshot],
    listing: &[Snapshot],
    recorded: &Recorded,
    (policy, max_backups): (Policy, usize),
    now: i64,
) -> Vec<Snapshot> {
    let seen: HashSet<String> = listing.iter().map(ToString::to_string).collect();
    let is_needed = |s: &Snapshot| {
        let name = s.to_string();
        seen.contains(&name) || recorded.snapshots.contains(&name)
    };
    let is_left = |s: &&Snapshot| s.epoch < recorded.epoch && !s.is_final && !is_needed(s);
    let left: Vec<Snapshot> = everything.iter().filter(is_left).cloned().collect();
    if left.iter().any(|s| s.last_revision > recorded.last_revision) {
        return Vec::new();
    }
    let all: Vec<Snapshot> = listing.iter().chain(&left).cloned().collect();
    let kept = kept(&fulls_newest_first(&all), policy, max_backups, now);
    let fulls = fulls_newest_first(&left);
    left.iter()
        .filter(|s| match s.kind {
            Kind::Full => !kept.contains(s),
            Kind::Delta => {
                let mut chains = fulls.iter().filter(|f| f.epoch == s.epoch);
                let chain = chains.find(|f| f.last_revision < s.last_revision);
                chain.is_none_or(|full| !kept.contains(full))
            }
        })
        .cloned()
        .collect()
}

/// The full snapshots whose chains the policy keeps.
fn kept<'a>(fulls: &[&'a Snapshot], policy: Policy, max_backups: usize, now: i64) -> HashSet<&'a Snapshot> {
    match policy {
        Policy::LimitBased => fulls.iter().take(max_backups.max(1)).copied().collect(),
        Policy::Exponential => thinned(fulls, now),
    }
}

fn thinned<'a>(fulls: &[&'a Snapshot], now: i64) -> HashSet<&'a Snapshot> {
    let mut taken = HashSet::new();
    let mut kept = HashSet::new();
    for &full in fulls {
        if now.saturating_sub(full.created) < HOUR {
            kept.insert(full);
        }
        for (number, tier) in TIERS.iter().enumerate() {
            let slot = tier.slot_of(full.created);
            let is_recent = tier.slot_of(now) - slot <= tier.before;
            if is_recent && taken.insert((number, slot)) {
                kept.insert(full);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chain::tests::{delta, full, last};
    use crate::chain::{self, Chain};

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

    fn at_epoch(epoch: i64, mut snapshot: Snapshot) -> Snapshot {
        snapshot.epoch = epoch;
        snapshot
    }

    fn begun_with(snapshots: &[&Snapshot]) -> Recorded {
        Recorded {
            epoch: 2,
            origin: 1,
            snapshots: snapshots.iter().map(ToString::to_string).collect(),
            last_revision: snapshots.last().unwrap().last_revision,
            complete: false,
        }
    }

    /// The names of the objects of epoch 1 that are deleted while epoch 2 sees `listing` and `chains` chains
    /// are kept.
    fn gone(ahead: &[Snapshot], listing: &[Snapshot], recorded: &Recorded, chains: usize) -> Vec<String> {
        let everything: Vec<_> = ahead.iter().chain(listing).cloned().collect();
        let policy = (Policy::LimitBased, chains);
        names(&superseded(&everything, listing, recorded, policy, 100))
    }

    /// A copy waits for the final snapshot, and transfers existing objects meanwhile.
    #[test]
    fn what_was_copied_ahead_of_a_final_snapshot_goes_as_an_older_chain() {
        let ahead = [at_epoch(1, full(10, 1)), at_epoch(1, delta(11, 20, 2))];
        let end = at_epoch(1, last(25, 3));
        let recorded = begun_with(&[&end]);
        let listing = [end, at_epoch(2, delta(26, 30, 4)), at_epoch(2, full(40, 5))];
        // The copied chain is the third chain: after the chain of this epoch and the final snapshot.
        assert!(gone(&ahead, &listing, &recorded, 3).is_empty());
        assert_eq!(gone(&ahead, &listing, &recorded, 2), names(&ahead));
        // No snapshot of `listing` is collected in exchange.
        assert!(victims(&listing, Policy::LimitBased, 2, 100).is_empty());
        // By age: the chain stays for its hour, and is deleted with the hours of its day.
        let everything: Vec<_> = ahead.iter().chain(&listing).cloned().collect();
        for (now, left) in [(100, 0), (10 * WEEK, 2)] {
            let by_age = superseded(&everything, &listing, &recorded, (Policy::Exponential, 7), now);
            assert_eq!(by_age.len(), left, "{now}");
        }
        // The delta alone is useless without its full snapshot.
        assert_eq!(gone(&ahead[1..], &listing, &recorded, 7), names(&ahead[1..]));
    }

    /// A later restore, of this epoch or of an epoch that begins with this epoch, needs all of that chain,
    /// even an old chain.
    #[test]
    fn what_the_epoch_began_with_is_not_left_over() {
        let older = [at_epoch(1, full(3, 0)), at_epoch(1, delta(4, 9, 1))];
        let chain = [
            at_epoch(1, full(10, 1)),
            at_epoch(1, delta(11, 20, 2)),
            at_epoch(1, delta(21, 25, 3)),
        ];
        let recorded = begun_with(&chain.each_ref());
        for listing in [chain.to_vec(), [&chain[..], &[at_epoch(2, full(40, 5))]].concat()] {
            assert_eq!(gone(&older, &listing, &recorded, 1), names(&older));
        }
        // The listing is older than the recorded chain.
        let all = [&older[..], &chain[..]].concat();
        assert_eq!(
            gone(&all, &[at_epoch(2, full(40, 5))], &recorded, 1),
            names(&older)
        );
    }

    #[test]
    fn what_may_hold_lost_changes_stays_with_all_that_it_continues() {
        let end = at_epoch(1, full(25, 3));
        let recorded = begun_with(&[&end]);
        let listing = [end, at_epoch(2, full(1_000_000_030, 5))];
        let older = at_epoch(1, full(10, 1));
        for late in [at_epoch(1, delta(26, 30, 4)), at_epoch(1, full(30, 4))] {
            assert!(gone(&[older.clone(), late], &listing, &recorded, 1).is_empty());
        }
        // A late final snapshot holds all data by itself, and stays.
        let late = at_epoch(1, last(30, 4));
        assert_eq!(
            gone(&[older.clone(), late], &listing, &recorded, 1),
            names(std::slice::from_ref(&older))
        );
        // Snapshots of later epochs do not concern this epoch.
        let later = [at_epoch(3, full(20, 6)), at_epoch(2, full(20, 6))];
        assert_eq!(gone(&later, &listing, &recorded, 1), [] as [String; 0]);
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
        // The full at 10 covers 6..=10 in part: the delta ends after that full, so the newer chain still
        // needs the delta.
        let listing = [full(5, 1), full(10, 2), delta(6, 12, 3), delta(13, 14, 4)];
        assert!(
            victims(&listing, Policy::LimitBased, 1, 100)
                .iter()
                .all(|s| s.kind == Kind::Full)
        );
    }

    /// A Wednesday, 00:00.
    const START: i64 = 2800 * WEEK + 6 * DAY;

    /// Takes a full snapshot every `every` seconds with a delta after each, and a final snapshot on the third
    /// day, for 60 days. `look` receives the store after each collection.
    fn sixty_days(
        every: i64,
        collect_every: i64,
        mut look: impl FnMut(&[Snapshot], i64),
    ) -> (Vec<Snapshot>, i64) {
        let (mut store, mut revision, mut clock) = (Vec::new(), 1, START);
        let end = START + 60 * DAY;
        while clock < end {
            clock += 60;
            if clock % every == 0 {
                store.push(full(revision, clock));
                store.push(delta(revision + 1, revision + 9, clock + 30));
                revision += 10;
            }
            if clock == START + 3 * DAY + 60 {
                store.push(last(revision, clock));
            }
            if clock % collect_every == 0 {
                let before = newest(&store);
                for gone in victims(&store, Policy::Exponential, 7, clock) {
                    store.retain(|s| *s != gone);
                }
                assert_eq!(newest(&store), before, "the newest chain is whole");
                look(&store, clock);
            }
        }
        (store, clock)
    }

    fn newest(store: &[Snapshot]) -> Option<Chain> {
        chain::newest(store).unwrap()
    }

    fn ages(store: &[Snapshot], now: i64) -> Vec<i64> {
        let fulls = fulls_newest_first(store).into_iter().filter(|f| !f.is_final);
        fulls.map(|f| now - f.created).collect()
    }

    #[test]
    fn sixty_days_leave_four_weeks_and_not_eight_days() {
        for (every, collect_every) in [
            (HOUR, 12 * HOUR),
            (HOUR, 20 * 60),
            (DAY, 12 * HOUR),
            (15 * 60, HOUR),
        ] {
            let (store, now) = sixty_days(every, collect_every, |store, now| {
                if now < START + 40 * DAY {
                    return;
                }
                let ages = ages(store, now);
                let no_gap = |until: i64, gap: i64| {
                    let mut newer = 0;
                    for &age in ages.iter().chain([&until]) {
                        assert!(
                            newer >= until || age.min(until) - newer <= gap,
                            "nothing between {newer} and {age}"
                        );
                        newer = age;
                    }
                };
                no_gap(HOUR, every);
                no_gap(DAY, every.max(HOUR) + HOUR);
                no_gap(WEEK, 2 * DAY);
                no_gap(4 * WEEK, 2 * WEEK);
                let oldest = *ages.last().unwrap();
                assert!(
                    (4 * WEEK..6 * WEEK).contains(&oldest),
                    "the oldest is {oldest} s old"
                );
            });
            let ages = ages(&store, now);
            let count = |from: i64, to: i64| ages.iter().filter(|age| (from..to).contains(*age)).count();
            assert_eq!(count(8 * DAY, 6 * WEEK), 4, "weekly for four weeks");
            if every == HOUR {
                assert_eq!((count(0, DAY + 1), count(DAY + 1, 8 * DAY)), (25, 6));
            }
            assert_eq!(
                store.iter().filter(|s| s.is_final).count(),
                1,
                "the final one stays"
            );
            // A kept chain is kept whole, and no delta outlives its chain.
            let fulls = fulls_newest_first(&store);
            let deltas: Vec<_> = store.iter().filter(|s| s.kind == Kind::Delta).collect();
            for full in fulls.iter().filter(|f| !f.is_final) {
                assert!(
                    deltas.iter().any(|d| d.start_revision == full.last_revision + 1),
                    "{full}"
                );
            }
            assert!(deltas.len() <= fulls.len());
        }
    }

    /// A chain with an impossible date is kept, and does not take the slot of a valid chain.
    #[test]
    fn a_chain_of_a_year_that_can_be_none_does_no_harm() {
        let listing = [
            full(40, START),
            full(30, i64::MAX),
            full(20, 221_845_392_000),
            full(10, START - HOUR),
        ];
        assert!(victims(&listing, Policy::Exponential, 7, START).is_empty());
        assert_eq!(
            names(&victims(&listing, Policy::LimitBased, 1, START)),
            names(&listing[1..])
        );
    }

    #[test]
    fn every_chain_of_the_last_hour_stays() {
        let now = START + 30 * 60;
        let listing: Vec<_> = (0..12).map(|n| full(100 - n, now - n * 10 * 60)).collect();
        let gone = victims(&listing, Policy::Exponential, 7, now);
        // Six chains of the last hour; the last chain of the hour before is among those six.
        assert!(gone.iter().all(|s| now - s.created >= HOUR), "{:?}", names(&gone));
        assert_eq!(listing.len() - gone.len(), 6 + 1);
    }
}
