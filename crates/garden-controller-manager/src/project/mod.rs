//! Projects: each has a namespace, and its phase says whether it can be used.
//!
//! Promises: a namespace has one project and a project one namespace; one that was there before is taken only
//! if an operator labelled it for the project; one is deleted only if it was made for this very project, and
//! when no shoot and no backup of one is left in it.

mod controller;
mod namespace;

pub use controller::run;
pub use namespace::{MADE_FOR, Verdict, desired_namespace, name_of, obstacle, verdict};
