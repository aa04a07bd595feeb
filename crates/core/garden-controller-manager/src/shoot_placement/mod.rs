//! Reports shoots that no seed will ever take: without a seed, with an unknown or deleted seed, or with a
//! seed that taints or selectors exclude.
//!
//! A gardenlet acts on the shoots of its own seed only, so no gardenlet would notice a mistyped seed name.
//! Controller `shoot-domain` reports a refused domain in the same fields (`status_of_refused_domain`).
//! Guarantees: the controller writes only to a Shoot that no gardenlet has ever acted on, and removes its
//! report when the cause is gone.

mod controller;
mod decision;

pub use controller::run;
pub(crate) use decision::status_of_refused_domain;
pub use decision::{is_unplaced, obstacle};
