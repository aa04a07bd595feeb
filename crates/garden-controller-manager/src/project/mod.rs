//! Projects: each has a namespace, and its phase says whether it can be used.
//!
//! Promises: a namespace that belongs to something else is never taken; a project's namespace is deleted only when no
//! shoot and no backup of one is left in it.

mod controller;
mod namespace;

pub use controller::run;
pub use namespace::{Verdict, desired_namespace, name_of, verdict};
