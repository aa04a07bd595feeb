//! Reserves `spec.dns.domain` of each Shoot: a domain belongs to a single Shoot, and is neither above nor
//! below the domain of a second Shoot or a domain of a Seed.
//!
//! A policy cannot compare Shoots of different namespaces, so this controller decides, and records the
//! decision in `status.reservedDomain`. A seed takes a Shoot only with a reserved domain (policy
//! `shoot-ownership`), and the domain of a shoot on a seed does not change (policy `shoot-domain-change`). So
//! each later operation deploys a reserved domain without a wait. A shoot that a seed took before
//! reservations existed keeps its domain: the controller reserves the domain, and reports an overlap.
//! Guarantees: of two Shoots with one domain, the Shoot with the reservation keeps the domain, and else the
//! older Shoot gets the domain. A reservation ends with the Shoot. Decisions are made in sequence in the one
//! process that holds the lock, and each decision includes reservations that the cache does not show yet.
//! A write that a former holder of the lock sent is complete before the lock changes hands, because the
//! permit of the lock guards the request. The edge of a seed is the second barrier: the edge refuses an entry
//! of a different shoot.
//!
//! The index of all claims keeps a decision linear in the claims that overlap. A refused Shoot is decided
//! again after a change of the obstacle, and else after a pause of up to an hour.

mod claim;
mod controller;
mod decision;
mod index;
mod refusals;

pub use controller::run;
