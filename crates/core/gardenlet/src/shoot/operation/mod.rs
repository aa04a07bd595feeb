//! One operation on a shoot: which flow runs, the progress, and the report in the status of the Shoot.

pub(crate) mod annotation;
pub(crate) mod backup_grace;
pub(crate) mod confirmation;
pub(crate) mod domain;
pub(crate) mod execution;
pub(crate) mod failure;
pub(crate) mod first_status;
pub(crate) mod identity;
pub(crate) mod metrics;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod seed_choice;
pub mod status;
mod unwritable;
