//! Keeps the ShootStates of this seed's shoots up to date. So the garden holds all data that would be lost
//! with a dead seed (R7-42).
//!
//! Changes trigger the controller: changes of extension objects, of machines, and of carried Secrets, with
//! watches of metadata only. Changes are gathered for some seconds (`debounce`). Then the controller reads
//! the namespace of the shoot and writes the ShootState if the content is new (`parts::ShootState::sync`).
//!
//! Promises:
//! - Only shoots that this seed owns are written.
//! - The keys of a new shoot are written before the shoot has data (R7-40), and the complete state without a
//!   delay when the creation has succeeded.
//! - The controller never writes during a move, a restore or a deletion: these flows write the ShootState.
//! - The age is reported as constraint `ShootStateUpToDate` of the Shoot and as metric
//!   `shoot_state_synced_timestamp_seconds`.
//!
//! | file | content |
//! |---|---|
//! | `changes` | the watches: the changes that wake the controller |
//! | `debounce` | when changes are written. The times are flags (`config.rs`, `ShootStateFlags`) |
//! | `duty` | the shoots with a ShootState to keep, the stage of a shoot, and the reported constraint |
//! | `controller` | writes, and reports the age |
//! | `gauge` | the age as a metric |

mod changes;
mod controller;
mod debounce;
mod duty;
mod gauge;

pub use controller::run;
