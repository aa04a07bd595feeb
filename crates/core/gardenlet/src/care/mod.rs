//! The health of a shoot: five conditions, two further conditions where the seed checks owners, the
//! constraints `HibernationPossible` and `DataComplete`, and the label `shoot.gardener.cloud/status`. The
//! period is flag `--care-sync-period` (30 seconds), the time of `Progressing` flag `--condition-threshold`
//! (a minute).
//!
//! Promises: only the seed that hosts the shoot reports conditions, also while a move waits or runs. Parts
//! that the move has stopped are reported with reason `Moving`. During a deletion no condition is written. A
//! condition that was `True` is `Progressing` before the condition becomes `False`. Components
//! that this version does not deploy are reported as not deployed, not as healthy.
//!
//! | file | content |
//! |---|---|
//! | `controller` | checks each shoot once a period, and writes conditions and constraints |
//! | `reading` | reads the inputs, with `probe` for the API of the shoot |
//! | `inputs` | the objects that were read: the input of all decisions |
//! | `checks` | the five conditions, from the inputs |
//! | `components` | the ManagedResources of parts, as findings for conditions |
//! | `extensions` | conditions in extension objects, merged into the conditions of the Shoot |
//! | `observation` | the result of a check: status, reason, message, codes |
//! | `settle` | how an observation becomes a condition, with the time of `Progressing` |
//! | `moving` | the conditions while a move stops or starts the control plane |
//! | `ownership` | condition `OwnershipVerified` |
//! | `owner_checks` | condition `OwnerChecksComplete`, and the entry of `status.ownerChecks` |
//! | `data_loss` | constraint `DataComplete`: a volume of etcd was lost within an epoch |
//! | `webhooks` | constraint `HibernationPossible`; `webhook` judges a single webhook |
//! | `label` | the label `shoot.gardener.cloud/status` |

mod checks;
mod components;
mod controller;
mod data_loss;
mod extensions;
mod inputs;
mod label;
mod moving;
mod observation;
mod owner_checks;
mod ownership;
mod probe;
mod reading;
mod settle;
mod webhook;
mod webhooks;

pub use controller::run;
pub use data_loss::report_before_hand_over;
pub use label::status_label;
pub use moving::without_api_server;
pub use observation::Observation;
pub use settle::settle;
