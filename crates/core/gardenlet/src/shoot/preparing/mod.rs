//! The preparation for a shoot that a different seed serves (role `Incoming` with a grant).
//!
//! | file | content |
//! |---|---|
//! | `controller` | runs the flow while a grant is valid, and reports condition `Prepared` |
//! | `removal` | removes a prepared namespace when the grant has ended, also without the Shoot |
//! | `report` | condition `Prepared` |

mod controller;
pub(crate) mod removal;
mod report;

pub(crate) use controller::run;
