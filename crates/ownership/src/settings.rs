//! How often is asked, for how long an answer is good, and how long a destination waits: checked against each
//! other.
//!
//! docs/understand/ownership.md explains the numbers. Seeds may have different ones: a destination waits for
//! the least fence of the settings of all seeds joined ([`Terms::waiting_for_settings`]), and for the longest
//! fence that any seed has recorded ([`Terms::waiting_for`]).

use std::ops::Add;
use std::time::Duration;

use permit::UNNOTICED_PAUSE;

/// So often each server is asked in one check.
pub(crate) const TRIES: u32 = 2;

/// Parts of a million: the unit of [`Settings::drift`].
const MILLION: u32 = 1_000_000;

/// No clock is worse than one part of ten.
const WORST_DRIFT: u32 = MILLION / 10;

/// No duration here makes sense beyond this, and sums of them must not overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Ten years: for how long an answer is good where only a loss ends it ([`Silence::Tolerate`]).
const UNTIL_LOST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What a permit does when neither witness says anything for its validity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Silence {
    /// It ends, without grace; when the record says Owned again there is a new one (R17-47, R17-48).
    #[default]
    Deactivate,
    /// It goes on until the record says Lost. Then no time passes a fence: only the final snapshot of the
    /// epoch, or the word of a person that the seed is off ([`Terms::fence`] gives none).
    Tolerate,
}

impl Silence {
    /// As flags, objects and answers name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deactivate => "Deactivate",
            Self::Tolerate => "Tolerate",
        }
    }
}

/// The intervals and bounds of the owner check, as a Seed may set them. All defaults are those of
/// docs/understand/ownership.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I: from the start of one check to that of the next.
    pub interval: Duration,
    /// For one try at all authorities; there are two in a check. Longer than a round trip to the farthest
    /// authority.
    pub attempt: Duration,
    /// For the question to the second witness, which follows where the authorities say nothing.
    pub second_witness: Duration,
    /// V: for how long an answer is good, from the moment in which its question was sent.
    pub validity: Duration,
    /// H: how long a request may be under way after the permit under which it was sent has ended.
    pub requests: Duration,
    /// P: for how long an authority may still serve the former record to others after it has served the new
    /// one to the destination (anycast, replicas behind one address).
    pub propagation: Duration,
    /// For how long something on the way may answer in an authority's place from what it has kept, AA bit and
    /// all: nothing by default. Where that cannot be excluded: the record's TTL and the time for which stale
    /// answers are served.
    pub caches: Duration,
    /// ρ: by how many parts of a million a clock may run too fast or too slowly.
    pub drift: u32,
    /// How much longer a permit may last because the hypervisor paused the machine for too short a time to be
    /// noticed. No setting of a Seed: the bound follows from how often the clock of the host is read.
    pub pause: Duration,
    /// F: how long a destination waits after every witness shows it as the owner.
    pub fence: Duration,
    /// What silence of both witnesses does.
    pub silence: Silence,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(4),
            attempt: Duration::from_secs(1),
            second_witness: Duration::from_secs(1),
            validity: Duration::from_secs(12),
            requests: Duration::from_secs(5),
            propagation: Duration::from_secs(2),
            caches: Duration::ZERO,
            drift: 1000,
            pause: UNNOTICED_PAUSE,
            fence: Duration::from_secs(24),
            silence: Silence::Deactivate,
        }
    }
}

/// Settings that do not fit together. They are named as the fields by which they are set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A question without time for its answer, or without a pause before the next one.
    #[error("{0} must be longer than nothing")]
    Nothing(&'static str),
    /// Beyond an hour.
    #[error("{name} is {given:?}; the longest is {LONGEST:?}")]
    TooLong {
        /// Which one.
        name: &'static str,
        /// Its value.
        given: Duration,
    },
    /// A clock that is no clock.
    #[error("drift is {0} parts of a million; the largest is {WORST_DRIFT}")]
    Drift(u32),
    /// Checks would not begin once in an interval.
    #[error(
        "interval ({interval:?}) must be at least as long as a check may take ({check:?} = {TRIES} x timeout + storeTimeout)"
    )]
    IntervalTooShort {
        /// The interval given.
        interval: Duration,
        /// Q of these settings.
        check: Duration,
    },
    /// One failed check would end a permit.
    #[error(
        "validity ({validity:?}) must be at least {least:?} = 2 x interval + the time of one check, so that one failed check \
         ends no permit"
    )]
    ValidityTooShort {
        /// The validity given.
        validity: Duration,
        /// The shortest for these intervals.
        least: Duration,
    },
    /// A permit of the source could be good when the destination begins.
    #[error(
        "fence ({fence:?}) must be at least {least:?} = (1 + drift) x (propagation + dnsCacheTTL + validity / (1 - drift) + \
         requests + {UNNOTICED_PAUSE:?}), or the destination begins while the source may still act"
    )]
    FenceTooShort {
        /// The fence given.
        fence: Duration,
        /// The shortest for these settings.
        least: Duration,
    },
}

impl Settings {
    /// Q: the longest time that one check takes.
    #[must_use]
    pub fn check_takes(&self) -> Duration {
        self.attempt
            .saturating_mul(TRIES)
            .saturating_add(self.second_witness)
    }

    /// The shortest fence that is safe with these settings: (1+ρ)·(P + caches + V/(1−ρ) + H + pause), rounded
    /// up to a millisecond.
    #[must_use]
    pub fn least_fence(&self) -> Duration {
        let (million, drift) = (u128::from(MILLION), u128::from(self.drift.min(WORST_DRIFT)));
        // Nanoseconds times a million fit u128 many times over. Each division rounds up.
        let valid = (self.validity.as_nanos() * million).div_ceil(million - drift);
        let other = [self.propagation, self.caches, self.requests, self.pause];
        let other: u128 = other.iter().map(Duration::as_nanos).sum();
        let nanos = ((valid + other) * (million + drift)).div_ceil(million);
        Duration::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Whether a destination that waits for this long may take over from who acts by these settings.
    #[must_use]
    pub fn is_fenced_by(&self, fence: Duration) -> bool {
        self.silence == Silence::Deactivate && self.least_fence() <= fence
    }

    /// How long a destination waits for whoever acts by these settings, also where they do not fit together.
    #[must_use]
    pub fn needs(&self) -> Duration {
        self.fence.max(self.least_fence())
    }

    /// The component-wise maximum of the settings of two seeds. The fence of a pair needs validity and
    /// requests of the former owner, and clock, propagation and caches of both: no single fence of the two
    /// covers that.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self {
            validity: self.validity.max(other.validity),
            requests: self.requests.max(other.requests),
            propagation: self.propagation.max(other.propagation),
            caches: self.caches.max(other.caches),
            drift: self.drift.max(other.drift),
            pause: self.pause.max(other.pause),
            fence: self.fence.max(other.fence),
            ..*self
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        let all = [
            ("interval", self.interval, true),
            ("timeout", self.attempt, true),
            ("storeTimeout", self.second_witness, true),
            ("validity", self.validity, true),
            ("requests", self.requests, true),
            ("propagation", self.propagation, false),
            ("dnsCacheTTL", self.caches, false),
            ("pause", self.pause, false),
            ("fence", self.fence, true),
        ];
        for (name, given, needed) in all {
            if needed && given.is_zero() {
                return Err(SettingsError::Nothing(name));
            }
            if given > LONGEST {
                return Err(SettingsError::TooLong { name, given });
            }
        }
        if self.drift > WORST_DRIFT {
            return Err(SettingsError::Drift(self.drift));
        }
        let check = self.check_takes();
        if self.interval < check {
            let interval = self.interval;
            return Err(SettingsError::IntervalTooShort { interval, check });
        }
        let least = self.interval * 2 + check;
        if self.validity < least {
            let validity = self.validity;
            return Err(SettingsError::ValidityTooShort { validity, least });
        }
        let least = self.least_fence();
        if self.fence < least {
            let fence = self.fence;
            return Err(SettingsError::FenceTooShort { fence, least });
        }
        Ok(())
    }
}

/// Settings that fit together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms(Settings);

impl Terms {
    /// Checks the settings against each other.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self(settings))
    }

    /// What was checked.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0
    }

    /// For how long an answer is good, from when its question was sent. `at_most` is what a witness has left
    /// that only passes on what it was told.
    #[must_use]
    pub fn good_for(&self, at_most: Option<Duration>) -> Duration {
        match self.0.silence {
            Silence::Deactivate => at_most.unwrap_or(self.0.validity).min(self.0.validity),
            Silence::Tolerate => UNTIL_LOST,
        }
    }

    /// Whether the fence is behind a destination that has seen at `shown` that every witness shows it. Never
    /// before it has seen that; a destination that was started anew has not.
    pub fn fence_has_passed<M: Copy + Ord + Add<Duration, Output = M>>(
        &self,
        shown: Option<M>,
        now: M,
    ) -> bool {
        match (shown, self.fence()) {
            (Some(shown), Some(fence)) => shown + fence <= now,
            _ => false,
        }
    }

    /// These, of a destination that also waits for whoever needs a longer fence than its own.
    #[must_use]
    pub fn waiting_for(mut self, others: impl IntoIterator<Item = Duration>) -> Self {
        self.0.fence = others.into_iter().fold(self.0.fence, Duration::max).min(LONGEST);
        self
    }

    /// These, of a destination that waits for former owners with such settings: the fence is at least the
    /// least fence of all settings joined ([`Settings::joined`]).
    #[must_use]
    pub fn waiting_for_settings(self, others: impl IntoIterator<Item = Settings>) -> Self {
        let joined = others
            .into_iter()
            .fold(self.0, |joined, other| joined.joined(&other));
        self.waiting_for([joined.needs()])
    }

    /// F: how long a destination waits after every witness shows it as the owner, by a clock that counts
    /// suspension. None where the source tolerates silence: no time is long enough then.
    #[must_use]
    pub fn fence(&self) -> Option<Duration> {
        match self.0.silence {
            Silence::Deactivate => Some(self.0.fence),
            Silence::Tolerate => None,
        }
    }
}
