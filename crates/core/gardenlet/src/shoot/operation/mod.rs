//! One operation on a shoot: which flow runs, the progress, and the report in the status of the Shoot.
//!
//! | file | content |
//! |---|---|
//! | `execution` | a single run of a flow: facts, graph, progress, outcome |
//! | `status` | the patches of the status of a Shoot: start, progress, success, failure, loss, hand-over |
//! | `first_status` | the first write of an operation, with the patch of `status` |
//! | `progress` | runs the flow, and writes the progress into the Shoot |
//! | `pace` | the expected time of each step, for the percentage of an operation |
//! | `failure` | the errors of a failed operation, and the error that decides about the next attempt |
//! | `report` | writes a report outside of a flow, on exactly the read version of the Shoot |
//! | `annotation` | the annotation `gardener.cloud/operation` |
//! | `confirmation` | the check that the user has confirmed a deletion |
//! | `domain` | the wait for the reservation of `spec.dns.domain` |
//! | `seed_choice` | taints and selectors of the own Seed, before the first write of a new Shoot |
//! | `backup_grace` | the grace period of the backups of a deleted shoot |
//! | `identity` | the identity of an operation in logs and Events |
//! | `metrics` | state and age of operations as metrics |
//! | `unwritable` | the time without writes of a planned move as a metric |

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
