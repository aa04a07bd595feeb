//! Settings as users write them, in objects and as flags: durations in Go's notation. A missing value keeps
//! the present value.

use std::time::Duration;

use jiff::SignedDuration;

use crate::settings::{LONGEST, Settings, SettingsError, Terms};

/// The shortest duration of most fields.
const SHORTEST: Duration = Duration::from_millis(100);
/// The shortest bound of a question.
const SHORTEST_BOUND: Duration = Duration::from_millis(50);
/// The shortest duration of a field that may also be zero.
const SHORTEST_OR_NONE: Duration = Duration::from_millis(1);

/// A duration of the settings.
struct Field {
    /// Name of the field in an Etcd and in a Seed.
    name: &'static str,
    /// Name of the flag, without leading dashes.
    flag: &'static str,
    shortest: Duration,
    of: fn(&mut Settings) -> &mut Duration,
}

const FIELDS: [Field; 8] = [
    field("interval", "owner-check-interval", SHORTEST, |s| &mut s.interval),
    field("timeout", "owner-check-timeout", SHORTEST_BOUND, |s| {
        &mut s.timeout
    }),
    field("storeTimeout", "owner-check-store-timeout", SHORTEST_BOUND, |s| {
        &mut s.store_timeout
    }),
    field("validity", "owner-check-validity", SHORTEST, |s| &mut s.validity),
    field("requests", "owner-check-requests", SHORTEST, |s| &mut s.requests),
    field("propagation", "owner-check-propagation", SHORTEST_OR_NONE, |s| {
        &mut s.propagation
    }),
    field("dnsCacheTTL", "owner-check-caches", SHORTEST_OR_NONE, |s| {
        &mut s.dns_cache_ttl
    }),
    field("fence", "owner-check-fence", SHORTEST, |s| &mut s.fence),
];

const DRIFT: &str = "owner-check-drift";

const fn field(
    name: &'static str,
    flag: &'static str,
    shortest: Duration,
    of: fn(&mut Settings) -> &mut Duration,
) -> Field {
    Field {
        name,
        flag,
        shortest,
        of,
    }
}

/// A value is not a valid setting, or the settings do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// A single field is invalid.
    #[error("{field} {what}")]
    Field {
        /// Name of the field in an Etcd and in a Seed.
        field: &'static str,
        /// The value and the remedy.
        what: String,
    },
    /// The settings do not fit together.
    #[error("does not fit together: {0}")]
    Together(#[from] SettingsError),
}

impl Settings {
    /// These settings with the given values: durations by field, and the drift in parts per million.
    ///
    /// # Errors
    /// The field, the value, and the remedy. [`Terms::new`] finds settings that do not fit together.
    pub fn with_overrides<'a>(
        mut self,
        durations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        drift: Option<i32>,
    ) -> Result<Self, OverrideError> {
        for (name, text) in durations {
            if let Some((field, text)) = find_field(name).zip(text) {
                *(field.of)(&mut self) = field.read(text)?;
            }
        }
        if let Some(drift) = drift {
            self.drift = u32::try_from(drift).map_err(|_| OverrideError::Field {
                field: "drift",
                what: format!("is {drift}; write parts of a million, from 0 to 100000"),
            })?;
        }
        Ok(self)
    }

    /// The settings that differ from the defaults, as flags without dashes. `silence` is left out: only the
    /// process beside etcd has that setting.
    #[must_use]
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let (mut own, mut usual) = (*self, Self::default());
        let mut flags = Vec::new();
        for field in &FIELDS {
            let given = *(field.of)(&mut own);
            if given != *(field.of)(&mut usual) {
                flags.push((field.flag, text(given)));
            }
        }
        if own.drift != usual.drift {
            flags.push((DRIFT, own.drift.to_string()));
        }
        flags
    }
}

impl Terms {
    /// These terms with the given values, if all settings fit together. Every process that reads settings
    /// validates the settings here.
    ///
    /// # Errors
    /// As [`Settings::with_overrides`] and [`Terms::new`].
    pub fn with_overrides<'a>(
        self,
        durations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        drift: Option<i32>,
    ) -> Result<Self, OverrideError> {
        let settings = self.settings().with_overrides(durations, drift)?;
        Ok(Self::new(settings)?)
    }
}

/// The flag of a field, without dashes.
#[must_use]
pub fn flag_of(field: &str) -> Option<&'static str> {
    if field == "drift" {
        return Some(DRIFT);
    }
    find_field(field).map(|field| field.flag)
}

fn find_field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

impl Field {
    fn read(&self, text: &str) -> Result<Duration, OverrideError> {
        let may_be_none = self.shortest == SHORTEST_OR_NONE;
        let value = text.parse::<SignedDuration>().ok();
        value
            .and_then(|value| Duration::try_from(value).ok())
            .filter(|value| (self.shortest..=LONGEST).contains(value) || (may_be_none && value.is_zero()))
            .ok_or_else(|| {
                let (shortest, or) = (self.shortest, if may_be_none { ", or 0s" } else { "" });
                OverrideError::Field {
                    field: self.name,
                    what: format!("is {text:?}; write a duration from {shortest:?} to 1h, such as 5s{or}"),
                }
            })
    }
}

/// The exact duration in a single unit.
fn text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanos.is_multiple_of(unit) {
            return format!("{}{name}", nanos / unit);
        }
    }
    format!("{nanos}ns")
}
