//! Tells of shoots that no seed will ever take: without a seed, or with one that is unknown or on its way
//! out.
//!
//! A gardenlet acts on the shoots of its own seed only, so nobody else would notice a seed name that is
//! mistyped. Promises: only a Shoot that no gardenlet has ever acted on is written to, and what is written
//! goes when its cause goes.

mod controller;
mod decision;

pub use controller::run;
pub use decision::{is_unplaced, obstacle};
