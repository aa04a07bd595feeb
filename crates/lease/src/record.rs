//! The election record: the `spec` of a Lease, field by field as client-go reads and writes it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::Timing;

/// `leaseDurationSeconds` of a released record, as client-go writes it: should the empty holder not be
/// understood, the lock is free after a second. (The API does not accept zero.)
const RELEASED_SECONDS: i32 = 1;

/// What a Lease says. Two records are equal when all fields are: a change of any is a sign of life of the
/// holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who holds the lock; `None` when it is free. (On the wire free is the empty string.)
    pub holder: Option<String>,
    /// How long others must see no change before they may take it, in seconds.
    pub lease_seconds: Option<i32>,
    /// When this holder got it, by the holder's wall clock. For people: nobody computes with it.
    pub acquired: Option<Timestamp>,
    /// When it was last renewed, by the holder's wall clock. For people; others only see *that* it changes.
    pub renewed: Option<Timestamp>,
    /// How often the lock changed hands. A record that was never changed by another has 0.
    pub transitions: i32,
}

impl Record {
    /// Reads a Lease; one without a spec is free.
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

    /// The fields for the wire.
    #[must_use]
    pub fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone().unwrap_or_default()),
            lease_duration_seconds: self.lease_seconds,
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            // Only for coordinated election, which this lock does not take part in; client-go drops them too.
            preferred_holder: None,
            strategy: None,
        }
    }

    /// The record of a lock that did not exist.
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

    /// The record of a lock that was free or whose holder is gone: one more transition.
    #[must_use]
    pub fn taken_over(&self, me: &str, timing: &Timing, wall: Timestamp) -> Self {
        Self {
            transitions: self.transitions.saturating_add(1),
            ..Self::created(me, timing, wall)
        }
    }

    /// The record of a lock that is held on. It always differs from the one before, in whole seconds, as
    /// client-go reads no more of it: a wall clock that stands still would otherwise make a write that
    /// changes nothing, which others take for a dead holder. So of two renewals in one second the second one
    /// is a second ahead, and while the clock is behind that, each is a second ahead of the one before: two
    /// values that take turns could be the same at every look of a candidate. A clock that was put back by
    /// more than the lease duration is followed.
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

    /// The record of a lock that is given back.
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
