//! Which objects may go. A chain (a full snapshot and its deltas) goes as a whole.
//!
//! Never collected: the newest chain, that with which the epoch began, for as long as it is the newest, and a
//! final snapshot. Pure: the listing and the time in, the victims out.

use crate::chain::fulls_newest_first;
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::Recorded;
use std::collections::HashSet;

/// What is kept beside the newest chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The newest `--max-backups` chains.
    #[default]
    #[value(name = "LimitBased")]
    LimitBased,
    /// Every chain of the last hour, then the last of each hour for a day, of each day for a week and of each
    /// week for four weeks more.
    #[value(name = "Exponential")]
    Exponential,
}

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970 began on a Thursday; weeks begin on Mondays.
const MONDAY: i64 = 3 * DAY;

/// A slot is an hour, a day or a week of the calendar in UTC: its last chain stays the last one, however late
/// it is looked at. (Slots that are counted back from now move on with every look, and nothing would ever
/// grow old.)
struct Tier {
    slot: i64,
    offset: i64,
    /// Slots that are kept beside the one that lasts.
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

/// The objects that the policy gives up, oldest chains last to be thought of and first to go.
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

/// What the policy gives up of earlier epochs: the copy has brought it, and the epoch did not begin with it
/// in the end, as with what was copied ahead of a final snapshot; or it was left by an earlier stay. No
/// restore and no copy sees it any more.
///
/// It counts as older chains beside `listing`, which is what the epoch sees, and takes nothing away from
/// that. Never collected: what the epoch began with, and a final snapshot. Where something lies behind the
/// end of what the epoch began with, everything stays: it may be all that is left of lost changes, and
/// continue the rest.
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

    fn of(epoch: i64, mut snapshot: Snapshot) -> Snapshot {
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

    /// What of epoch 1 goes while epoch 2 sees `listing`, with one chain kept.
    fn gone(ahead: &[Snapshot], listing: &[Snapshot], recorded: &Recorded, chains: usize) -> Vec<String> {
        let everything: Vec<_> = ahead.iter().chain(listing).cloned().collect();
        let policy = (Policy::LimitBased, chains);
        names(&superseded(&everything, listing, recorded, policy, 100))
    }

    /// A copy waits for the final snapshot, and brings meanwhile what is there.
    #[test]
    fn what_was_copied_ahead_of_a_final_snapshot_goes_as_an_older_chain() {
        let ahead = [of(1, full(10, 1)), of(1, delta(11, 20, 2))];
        let end = of(1, last(25, 3));
        let recorded = begun_with(&[&end]);
        let listing = [end, of(2, delta(26, 30, 4)), of(2, full(40, 5))];
        // It is the third chain: after that of this epoch and the final snapshot.
        assert!(gone(&ahead, &listing, &recorded, 3).is_empty());
        assert_eq!(gone(&ahead, &listing, &recorded, 2), names(&ahead));
        // Nothing that the epoch sees is collected for it.
        assert!(victims(&listing, Policy::LimitBased, 2, 100).is_empty());
        // By age: it stays for its hour, and goes with the hours of its day.
        let everything: Vec<_> = ahead.iter().chain(&listing).cloned().collect();
        for (now, left) in [(100, 0), (10 * WEEK, 2)] {
            let by_age = superseded(&everything, &listing, &recorded, (Policy::Exponential, 7), now);
            assert_eq!(by_age.len(), left, "{now}");
        }
        // The delta would be no use without its full snapshot.
        assert_eq!(gone(&ahead[1..], &listing, &recorded, 7), names(&ahead[1..]));
    }

    /// A later restore, of this epoch or of one that begins with it, needs all of that chain, also when it is
    /// old.
    #[test]
    fn what_the_epoch_began_with_is_not_left_over() {
        let older = [of(1, full(3, 0)), of(1, delta(4, 9, 1))];
        let chain = [
            of(1, full(10, 1)),
            of(1, delta(11, 20, 2)),
            of(1, delta(21, 25, 3)),
        ];
        let recorded = begun_with(&chain.each_ref());
        for listing in [chain.to_vec(), [&chain[..], &[of(2, full(40, 5))]].concat()] {
            assert_eq!(gone(&older, &listing, &recorded, 1), names(&older));
        }
        // The listing is older than what was recorded.
        let all = [&older[..], &chain[..]].concat();
        assert_eq!(gone(&all, &[of(2, full(40, 5))], &recorded, 1), names(&older));
    }

    #[test]
    fn what_may_hold_lost_changes_stays_with_all_that_it_continues() {
        let end = of(1, full(25, 3));
        let recorded = begun_with(&[&end]);
        let listing = [end, of(2, full(1_000_000_030, 5))];
        let older = of(1, full(10, 1));
        for late in [of(1, delta(26, 30, 4)), of(1, full(30, 4))] {
            assert!(gone(&[older.clone(), late], &listing, &recorded, 1).is_empty());
        }
        // A late final snapshot holds all by itself, and stays.
        let late = of(1, last(30, 4));
        assert_eq!(
            gone(&[older.clone(), late], &listing, &recorded, 1),
            names(std::slice::from_ref(&older))
        );
        // What a later epoch has, this one has nothing to do with.
        let later = [of(3, full(20, 6)), of(2, full(20, 6))];
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
        // The full at 10 covers 6..=10 in part: the delta ends after it, so the newer chain still needs it.
        let listing = [full(5, 1), full(10, 2), delta(6, 12, 3), delta(13, 14, 4)];
        assert!(
            victims(&listing, Policy::LimitBased, 1, 100)
                .iter()
                .all(|s| s.kind == Kind::Full)
        );
    }

    /// A Wednesday, 00:00.
    const START: i64 = 2800 * WEEK + 6 * DAY;

    /// Takes a full snapshot every `every` seconds with a delta after it, and a final one on the third day,
    /// for 60 days; `look` sees the store after each collection.
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
            // A chain that is kept is kept whole, and no delta outlives its chain.
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

    /// It is kept, and takes no other one's place.
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
        // Six of the last hour; of the hour before, its last one is among those six.
        assert!(gone.iter().all(|s| now - s.created >= HOUR), "{:?}", names(&gone));
        assert_eq!(listing.len() - gone.len(), 6 + 1);
    }
}
