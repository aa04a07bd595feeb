//! The events of a run, drawn beforehand: the whole environment is a function of time.

use std::time::Duration;

use fastrand::Rng;

use crate::mutation::Mutation;
use crate::settings::{Settings, Terms};

pub(super) const SERVERS: usize = 3;

/// Length of a run.
pub(super) const LASTS: Duration = Duration::from_secs(300);

/// Clocks are wrong by a tenth, so that an error of a second shows.
const DRIFT: u32 = 100_000;
const DRIFTS_BY: f64 = 0.1;

/// The rules that are switched off, and the faults of the environment.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) mutation: Option<Mutation>,
    pub(super) caches_pose_as_authorities: bool,
    pub(super) clock_counts_stops: bool,
    pub(super) fence: Fence,
    pub(super) weather: Weather,
    pub(super) sidecar: Sidecar,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            mutation: None,
            caches_pose_as_authorities: false,
            clock_counts_stops: true,
            fence: Fence::Right,
            weather: Weather::Foul,
            sidecar: Sidecar::Right,
        }
    }
}

/// The behaviour of the sidecar beside etcd.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sidecar {
    Right,
    /// The final snapshot comes before the mark on the volume.
    SavesBeforeItMarks,
    /// Writes through the gate are not compared with the permit.
    OpensTheGateOnce,
}

/// The wait of the destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    Right,
    FromTheRecordAlone,
    FromTheFirstAuthority,
    WithoutPropagation,
    WithoutDrift,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Any fault, at any time.
    Foul,
    /// Either the authorities or the second witness are silent, never both.
    OneAtATime,
}

/// From, until.
pub(super) type Window = (Duration, Duration);

/// A seed takes the shoot over.
#[derive(Clone)]
pub(super) struct TakeOver {
    pub(super) epoch: i64,
    pub(super) identity: &'static str,
    /// When each authority begins to show the new owner.
    pub(super) shown: [Duration; SERVERS],
    /// When the last replica behind that authority shows the new owner.
    pub(super) everywhere: [Duration; SERVERS],
    /// When the second witness shows the new owner.
    pub(super) second: Duration,
    /// When the destination's wait is over.
    pub(super) begins: Duration,
}

#[derive(Clone)]
pub(super) struct History {
    pub(super) terms: Terms,
    pub(super) take_overs: Vec<TakeOver>,
    /// When the first owner deletes the record in a planned move, at all authorities.
    pub(super) deleted: Option<Duration>,
    /// When a stranger deletes the identity at all authorities, by a slip.
    pub(super) slip: Option<Duration>,
    pub(super) authorities_silent: Vec<Window>,
    pub(super) one_silent: [Vec<Window>; SERVERS],
    pub(super) second_silent: Vec<Window>,
    pub(super) stops: Vec<Window>,
    pub(super) kills: Vec<Duration>,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn is_in(windows: &[Window], at: Duration) -> bool {
    windows.iter().any(|(from, until)| *from <= at && at < *until)
}

impl History {
    pub(super) fn draw(random: &mut Rng, rules: Rules) -> Self {
        let mut settings = Settings {
            drift: DRIFT,
            // No machine is paused in the simulation.
            pause: Duration::ZERO,
            ..Settings::default()
        };
        settings.fence = settings.least_fence();
        let terms = Terms::new(settings).unwrap();
        let first = ms(random.u64(60_000..120_000));
        let mut take_overs = vec![take_over(random, rules, &settings, 2, "seed-b", first)];
        if random.bool() {
            let again = take_overs[0].begins + ms(random.u64(..30_000));
            take_overs.push(take_over(random, rules, &settings, 3, "seed-a", again));
        }
        let deleted = (random.u8(..4) == 0).then(|| first - ms(random.u64(..10_000)));
        let slip = (random.u8(..4) == 0).then(|| ms(random.u64(..60_000)));
        let mut history = Self {
            terms,
            take_overs,
            deleted,
            slip,
            authorities_silent: Vec::new(),
            one_silent: Default::default(),
            second_silent: Vec::new(),
            stops: Vec::new(),
            kills: Vec::new(),
        };
        match rules.weather {
            Weather::Foul => history.foul(random, first),
            Weather::OneAtATime => history.one_at_a_time(random),
        }
        history
    }

    fn foul(&mut self, random: &mut Rng, first: Duration) {
        // Some of the faults begin at the worst moment: right when the record changes everywhere.
        let worst = self.take_overs[0].shown.iter().max().copied().unwrap_or(first);
        let mut windows = |many: usize, longest: u64| -> Vec<Window> {
            let any = (0..many).map(|_| ms(random.u64(..LASTS.as_secs() * 1000)));
            let mut starts: Vec<Duration> = any.collect();
            if random.u8(..10) < 6 {
                starts.push(worst + ms(random.u64(..2500)));
            }
            let end = |from: Duration, random: &mut Rng| from + ms(random.u64(..longest));
            starts.into_iter().map(|from| (from, end(from, random))).collect()
        };
        self.authorities_silent = windows(4, 60_000);
        self.second_silent = windows(4, 60_000);
        self.stops = windows(2, 40_000);
        for server in 0..SERVERS {
            self.one_silent[server] = windows(2, 60_000);
        }
        self.kills = (0..random.usize(..3))
            .map(|_| ms(random.u64(..250_000)))
            .collect();
        self.kills.sort_unstable();
    }

    fn one_at_a_time(&mut self, random: &mut Rng) {
        let mut at = ms(5000);
        while at < LASTS {
            let until = at + ms(random.u64(1000..60_000));
            let silent = if random.bool() {
                &mut self.authorities_silent
            } else {
                &mut self.second_silent
            };
            silent.push((at, until));
            // Longer than a check, so that no check sees both windows.
            at = until + ms(random.u64(3500..8000));
        }
    }

    /// The record at an authority: the epoch, and the identity beside the epoch.
    pub(super) fn shown(
        &self,
        server: usize,
        at: Duration,
        replica_is_behind: bool,
    ) -> (i64, Option<&'static str>) {
        let shows = |take: &&TakeOver| {
            let since = if replica_is_behind {
                take.everywhere
            } else {
                take.shown
            };
            since[server] <= at
        };
        match self.take_overs.iter().rev().find(shows) {
            Some(take) => (take.epoch, Some(take.identity)),
            None if [self.deleted, self.slip]
                .into_iter()
                .flatten()
                .any(|gone| gone <= at) =>
            {
                (1, None)
            }
            None => (1, Some("seed-a")),
        }
    }

    /// The moment from which no request sent under a permit of epoch 1 may be under way.
    pub(super) fn must_have_ended(&self) -> Duration {
        self.take_overs[0].begins - self.terms.settings().requests
    }

    /// The end of the time in which both witnesses would confirm the first owner.
    pub(super) fn quiet_until(&self) -> Duration {
        self.taken_from().min(self.slip.unwrap_or(LASTS))
    }

    /// The end of the time in which no seed has taken the shoot, and the owner has not left.
    pub(super) fn taken_from(&self) -> Duration {
        let first = &self.take_overs[0];
        let earliest = first.shown.iter().min().copied().unwrap_or_default();
        earliest.min(first.second).min(self.deleted.unwrap_or(LASTS))
    }

    /// The total time until `at` for which the process was stopped.
    pub(super) fn stopped(&self, at: Duration) -> Duration {
        // Windows may overlap, so the sum counts steps of time.
        let mut edges: Vec<Duration> = self
            .stops
            .iter()
            .flat_map(|(from, until)| [*from, *until])
            .collect();
        edges.push(at);
        edges.retain(|edge| *edge <= at);
        edges.sort_unstable();
        let stopped = edges.windows(2).filter(|pair| is_in(&self.stops, pair[0]));
        stopped.map(|pair| pair[1] - pair[0]).sum()
    }

    /// The delay of the first owner's slow clock against the true time.
    pub(super) fn clock_is_behind(&self, at: Duration, counts_stops: bool) -> Duration {
        let drift = at.mul_f64(DRIFTS_BY);
        if counts_stops {
            drift
        } else {
            drift + self.stopped(at)
        }
    }
}

fn take_over(
    random: &mut Rng,
    rules: Rules,
    settings: &Settings,
    epoch: i64,
    identity: &'static str,
    at: Duration,
) -> TakeOver {
    let hidden = u64::try_from(settings.propagation.as_millis()).unwrap();
    // The worst case for P: all servers show the record at the same moment, and each server has a replica
    // that is behind for all of P.
    let at_once = random.u8(..3) == 0;
    let shown = [(); SERVERS].map(|()| {
        if at_once {
            return at;
        }
        let slow = if random.u8(..5) == 0 { 20_000 } else { 1500 };
        at + ms(random.u64(..slow))
    });
    let everywhere = shown.map(|shown| {
        let behind = if at_once { hidden } else { random.u64(..hidden) };
        shown + ms(behind)
    });
    // D, then K.
    let last = shown.iter().max().copied().unwrap_or(at);
    let slow = if !at_once && random.u8(..3) == 0 {
        40_000
    } else {
        500
    };
    let second = last + ms(random.u64(..slow));
    let right = settings.fence;
    let (from, wait) = match rules.fence {
        Fence::Right => (second, right),
        Fence::FromTheRecordAlone => (last, right),
        Fence::FromTheFirstAuthority => (shown.iter().min().copied().unwrap_or(at), right),
        Fence::WithoutPropagation => {
            let propagation = Duration::ZERO;
            (
                second,
                Settings {
                    propagation,
                    ..*settings
                }
                .least_fence(),
            )
        }
        Fence::WithoutDrift => (
            second,
            Settings {
                drift: 0,
                ..*settings
            }
            .least_fence(),
        ),
    };
    TakeOver {
        epoch,
        identity,
        shown,
        everywhere,
        second,
        // The destination's clock is fast.
        begins: from + wait.div_f64(1.0 + DRIFTS_BY),
    }
}
