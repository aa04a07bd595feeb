//! Isolation of a zone of a shoot (GEP-21): the plan, the deadline of the closing, the record in the status
//! of the Shoot, and the steps inside the flows of the shoot.
//!
//! `interface` is the only module that `shoot` uses, as the hooks of each operation
//! (`shoot/operation_hooks.rs`).
//!
//! | file | purpose |
//! |---|---|
//! | `dry_run` | the report of a failover that changes no object |
//! | `survey`, `judgement`, `volumes` | facts about shoot and seed, whether a failover may begin, warnings |
//! | `change_limit` | limits the flows that changes of the annotation start |
//! | `steps` | the steps of flows that open and close zones |
//! | `budget`, `deadline` | the budget of a failover, and the controller of the deadline beside a flow |
//! | `watch`, `report` | a changed annotation during a flow, and the progress in the condition |
//! | `zone_status`, `events` | patches of the status, Events and metrics |
//! | `recheck` | when a Shoot is reconciled again for the sake of a zone |

mod budget;
mod change_limit;
mod deadline;
mod dry_run;
mod events;
pub(crate) mod interface;
mod judgement;
mod recheck;
mod report;
mod steps;
mod survey;
mod volumes;
mod watch;
mod zone_status;

pub use interface::content_at_start;
pub use steps::Zones;
