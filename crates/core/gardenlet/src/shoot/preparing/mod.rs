//! The preparation for a shoot that a different seed serves (role `Incoming` with a grant), and the keys for
//! the destination of a shoot that this seed serves.
//!
//! | file | content |
//! |---|---|
//! | `controller` | runs the flow and reports condition `Prepared`, or issues the keys in the source |
//! | `key_waits` | the waits for the keys of the source and for the BackupEntry |
//! | `listed` | the shoots for which the gate in front of etcd may admit a destination |
//! | `removal` | removes a prepared namespace when the grant has ended, also without the Shoot |
//! | `report` | condition `Prepared` |

mod controller;
mod key_waits;
mod listed;
pub(crate) mod removal;
mod report;

pub(crate) use controller::run;
