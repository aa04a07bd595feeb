//! Hibernates and wakes shoots at the times of `spec.hibernation.schedules`, by setting
//! `spec.hibernation.enabled`. Policy `garden-controller-manager-shoot` permits this write only for a Shoot
//! with schedules, and refuses most changes of annotations. So a further trigger needs a change of the
//! policy.
//!
//! Guarantees: each time takes effect once (`status.lastHibernationTriggerTime` records the time). That holds
//! also if this process was down at that moment, for two hours; of several missed times only the last takes
//! effect. A user may change the hibernation in between, and the change stays until the next time comes. An
//! invalid schedule is reported by an Event, and all other schedules stay in effect.

mod controller;
mod decision;
mod schedule;

pub use controller::run;
pub use decision::{Decision, decide};
pub use schedule::Schedule;
