//! Intervals of the check, validity of an answer, and the wait of a destination, checked against each other.
//!
//! docs/understand/ownership.md explains the numbers. Seeds may have different settings: a destination waits
//! for the least fence of the settings of all seeds joined ([`Terms::waiting_for_settings`]), and for the
//! longest fence that any seed has recorded ([`Terms::waiting_for`]).

use std::ops::Add;
use std::time::Duration;

use permit::UNNOTICED_PAUSE;

/// Number of tries at each server in a check. The rules for `interval` and `validity` in the definitions of
/// Seeds and Etcds have a summand for each try (`crates/dev/xtask/src/repeated_numbers.rs`).
pub(crate) const TRIES: u32 = 2;

/// Parts per million: the unit of [`Settings::drift`].
const MILLION: u32 = 1_000_000;

/// Upper bound of the drift: one part in ten, worse than any real clock.
const WORST_DRIFT: u32 = MILLION / 10;

/// Upper bound of every duration, so that sums cannot overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Ten years: validity of an answer where only a loss ends the permit ([`Silence::Tolerate`]).
const UNTIL_LOST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The default of `fence` in seconds, and the shortest fence that a Seed may set.
pub const SHORTEST_FENCE_SECONDS: u32 = 24;

/// The effect on a permit when both witnesses are silent for the validity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Silence {
    /// The permit ends, without grace; the next Owned brings a new permit (R17-47, R17-48).
    #[default]
    Deactivate,
    /// The permit stays valid until the record says Lost. Then no wait is a fence: only the final snapshot of
    /// the epoch counts, or a person's statement that the seed is off ([`Terms::fence`] is `None`).
    Tolerate,
}

impl Silence {
    /// The value as used in flags, objects and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deactivate => "Deactivate",
            Self::Tolerate => "Tolerate",
        }
    }
}

/// The intervals and bounds of the owner check, as a Seed may set these. All defaults are those of
/// docs/understand/ownership.md. A test compares the defaults with all copies, as in the definitions of Seeds
/// and Etcds (`crates/dev/xtask/src/repeated_numbers.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I: from the start of a check to the start of the next check.
    pub interval: Duration,
    /// Bound of a single try at all authorities; a check makes two tries. Longer than a round trip to the
    /// farthest authority.
    pub timeout: Duration,
    /// Bound of the question to the second witness, asked after the authorities gave no valid answer.
    pub store_timeout: Duration,
    /// V: validity of an answer, counted from the sending of the question.
    pub validity: Duration,
    /// H: maximum time that a request may be under way after the end of the permit under which the request
    /// was sent.
    pub requests: Duration,
    /// P: time for which an authority may still serve the former record to some clients (anycast, replicas
    /// behind one address). Counts from when the authority has served the new record to the destination.
    pub propagation: Duration,
    /// Time for which a cache on the path may answer in an authority's place with the AA bit set. Zero by
    /// default. Where such a cache is possible: the record's TTL plus the time for which stale answers are
    /// served.
    pub dns_cache_ttl: Duration,
    /// ρ: maximum rate error of a clock, in parts per million.
    pub drift: u32,
    /// Additional validity of a permit from a pause of the machine by the hypervisor that is too short to be
    /// noticed. Not a setting of a Seed: the bound follows from the interval at which the host's clock is
    /// read.
    pub pause: Duration,
    /// F: time that a destination waits after every witness shows the destination as the owner.
    pub fence: Duration,
    /// The effect of silence of both witnesses.
    pub silence: Silence,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(4),
            timeout: Duration::from_secs(1),
            store_timeout: Duration::from_secs(1),
            validity: Duration::from_secs(12),
            requests: Duration::from_secs(5),
            propagation: Duration::from_secs(2),
            dns_cache_ttl: Duration::ZERO,
            drift: 1000,
            pause: UNNOTICED_PAUSE,
            fence: Duration::from_secs(SHORTEST_FENCE_SECONDS.into()),
            silence: Silence::Deactivate,
        }
    }
}

/// Settings that do not fit together, named as the fields of the Seed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The duration is zero: a question has no time for its answer, or no pause follows before the next
    /// question.
    #[error("{0} must be longer than nothing")]
    Nothing(&'static str),
    /// The duration is longer than an hour.
    #[error("{name} is {given:?}; the longest is {LONGEST:?}")]
    TooLong {
        /// Name of the field.
        name: &'static str,
        /// The value.
        given: Duration,
    },
    /// The drift exceeds the upper bound.
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
    /// A single failed check would end a permit.
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
    /// A permit of the source could be valid when the destination begins.
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
    /// Q: the longest time that a check takes.
    #[must_use]
    pub fn check_takes(&self) -> Duration {
        self.timeout
            .saturating_mul(TRIES)
            .saturating_add(self.store_timeout)
    }

    /// The shortest fence that is safe with these settings: (1+ρ)·(P + dns_cache_ttl + V/(1−ρ) + H + pause),
    /// rounded up to a millisecond.
    #[must_use]
    pub fn least_fence(&self) -> Duration {
        let (million, drift) = (u128::from(MILLION), u128::from(self.drift.min(WORST_DRIFT)));
        // Nanoseconds times a million fit u128 many times over. Each division rounds up.
        let valid = (self.validity.as_nanos() * million).div_ceil(million - drift);
        let other = [self.propagation, self.dns_cache_ttl, self.requests, self.pause];
        let other: u128 = other.iter().map(Duration::as_nanos).sum();
        let nanos = ((valid + other) * (million + drift)).div_ceil(million);
        Duration::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Whether a destination that waits for `fence` may take over from processes with these settings.
    #[must_use]
    pub fn is_fenced_by(&self, fence: Duration) -> bool {
        self.silence == Silence::Deactivate && self.least_fence() <= fence
    }

    /// The time that a destination waits for processes with these settings, also where the settings do not
    /// fit together.
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
            dns_cache_ttl: self.dns_cache_ttl.max(other.dns_cache_ttl),
            drift: self.drift.max(other.drift),
            pause: self.pause.max(other.pause),
            fence: self.fence.max(other.fence),
            ..*self
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        let all = [
            ("interval", self.interval, true),
            ("timeout", self.timeout, true),
            ("storeTimeout", self.store_timeout, true),
            ("validity", self.validity, true),
            ("requests", self.requests, true),
            ("propagation", self.propagation, false),
            ("dnsCacheTTL", self.dns_cache_ttl, false),
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

    /// The checked settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0
    }

    /// Validity of an answer, counted from the sending of the question. `at_most`: the remaining validity at
    /// a witness that only relays an answer.
    #[must_use]
    pub fn good_for(&self, at_most: Option<Duration>) -> Duration {
        match self.0.silence {
            Silence::Deactivate => at_most.unwrap_or(self.0.validity).min(self.0.validity),
            Silence::Tolerate => UNTIL_LOST,
        }
    }

    /// Whether the fence has passed for a destination that saw itself at every witness at `shown`. Never
    /// before that moment; a restarted destination has no `shown`.
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

    /// These terms, for a destination that also waits for seeds with a longer fence.
    #[must_use]
    pub fn waiting_for(mut self, others: impl IntoIterator<Item = Duration>) -> Self {
        self.0.fence = others.into_iter().fold(self.0.fence, Duration::max).min(LONGEST);
        self
    }

    /// These terms, for a destination that waits for former owners with such settings: the fence is at least
    /// the least fence of all settings joined ([`Settings::joined`]).
    #[must_use]
    pub fn waiting_for_settings(self, others: impl IntoIterator<Item = Settings>) -> Self {
        let joined = others
            .into_iter()
            .fold(self.0, |joined, other| joined.joined(&other));
        self.waiting_for([joined.needs()])
    }

    /// F: time that a destination waits after every witness shows the destination as the owner, by a clock
    /// that counts suspension. `None` where the source tolerates silence: no time is long enough then.
    #[must_use]
    pub fn fence(&self) -> Option<Duration> {
        match self.0.silence {
            Silence::Deactivate => Some(self.0.fence),
            Silence::Tolerate => None,
        }
    }
}
