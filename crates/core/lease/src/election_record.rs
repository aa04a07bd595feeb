//! The election record: the `spec` of a Lease, field by field as client-go reads and writes the record.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::Timing;

/// `leaseDurationSeconds` of a released record, as client-go writes the field. If a client does not
/// understand the empty holder, the lock is free after a second. (The API does not accept zero.)
const RELEASED_SECONDS: i32 = 1;

/// The content of a Lease. Two records are equal when all fields are equal: a change of any field is a sign
/// of life of the holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ElectionRecord {
    /// The holder of the lock; `None` when the lock is free. (In the API a free lock has the empty string.)
    pub holder: Option<String>,
    /// The time without a change, in seconds, after which a candidate may take the lock.
    pub lease_seconds: Option<i32>,
    /// When this holder got the lock, by the holder's wall clock. For people: no process computes with this
    /// time.
    pub acquired: Option<Timestamp>,
    /// When the lock was last renewed, by the holder's wall clock. For people; candidates only check *that*
    /// the value changes.
    pub renewed: Option<Timestamp>,
    /// Number of hand-overs of the lock. A record with a single holder so far has 0.
    pub transitions: i32,
}

impl ElectionRecord {
    /// Reads a Lease; a Lease without a spec is free.
    #[must_use]
    pub fn read(spec: Option<&LeaseSpec>) -> Self {
        let Some(spec) = spec else { return Self::default() };
        Self {
            holder: spec.holder_identity.clone().filter(|holder| !holder.is_empty()),
            lease_seconds: spec.lease_duration_seconds,
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// The spec for the API.
    #[must_use]
    pub fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone().unwrap_or_default()),
            lease_duration_seconds: self.lease_seconds,
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            // Only for coordinated election, which this lock does not take part in; client-go drops both
            // fields too.
            preferred_holder: None,
            strategy: None,
        }
    }

    /// The record of a lock without a Lease.
    #[must_use]
    pub fn created(me: &str, timing: &Timing, wall: Timestamp) -> Self {
        Self {
            holder: Some(me.to_owned()),
            lease_seconds: Some(timing.lease_seconds()),
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: 0,
        }
    }

    /// The record of a lock that was free or lost its holder: one more transition.
    #[must_use]
    pub fn taken_over(&self, me: &str, timing: &Timing, wall: Timestamp) -> Self {
        Self {
            transitions: self.transitions.saturating_add(1),
            ..Self::created(me, timing, wall)
        }
    }

    /// The record of a renewed lock. `renewTime` always differs in whole seconds, because client-go reads
    /// only whole seconds. With a wall clock that stands still, a write would otherwise change no field, and
    /// candidates would take the holder for dead. So the second of two renewals in a second gets a time one
    /// second ahead. While the clock is behind the record, each renewal adds a second: two alternating values
    /// could look the same at every read of a candidate. A clock that was set back by more than the lease
    /// duration is followed.
    #[must_use]
    pub fn renewed(&self, me: &str, timing: &Timing, wall: Timestamp) -> Self {
        let longest = i64::from(timing.lease_seconds());
        let renewed = self.renewed.map_or(wall, |before| {
            let after = match before.as_second() - wall.as_second() {
                0 => wall,
                ahead if (1..=longest).contains(&ahead) => before,
                _ => return wall,
            };
            after.checked_add(SignedDuration::from_secs(1)).unwrap_or(wall)
        });
        Self {
            acquired: self.acquired.or(Some(wall)),
            renewed: Some(renewed),
            transitions: self.transitions,
            ..Self::created(me, timing, wall)
        }
    }

    /// The record of a released lock.
    #[must_use]
    pub fn released(&self, wall: Timestamp) -> Self {
        Self {
            holder: None,
            lease_seconds: Some(RELEASED_SECONDS),
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: self.transitions,
        }
    }
}
