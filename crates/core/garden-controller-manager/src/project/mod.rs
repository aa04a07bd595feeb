//! Projects: each has a namespace, and its phase states whether the project can be used.
//!
//! Guarantees: a namespace has a single project and a project a single namespace. A namespace that existed
//! before is taken only if an operator labelled it for the project. A namespace is deleted only if it was
//! created for this very project, and contains no shoot and no backup of a shoot. Pods of a project meet the
//! Pod Security Standard `restricted`, and the ResourceQuota can refuse all Pods.

mod controller;
mod namespace;
mod quota;

pub use controller::run;
pub use namespace::{MADE_FOR, Verdict, desired_namespace, name_of, obstacle, pod_restriction, verdict};
