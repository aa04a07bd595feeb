//! Puts shoots to sleep and wakes them at the times of `spec.hibernation.schedules`, by setting
//! `spec.hibernation.enabled`.
//!
//! Promises: a time that has come is acted on once (`status.lastHibernationTriggerTime` says when), also when
//! this process was away at that moment, for two hours; of several that were missed only the last counts. In
//! between a user may say otherwise, and is obeyed until the next time comes. A schedule that cannot be
//! understood is told by an event, and the others are kept.

mod controller;
mod decision;
mod schedule;

pub use controller::run;
pub use decision::{Decision, decide};
pub use schedule::Schedule;
