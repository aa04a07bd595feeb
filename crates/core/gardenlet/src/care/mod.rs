//! The health of a shoot: five conditions, two further conditions where the seed checks owners, and the label
//! `shoot.gardener.cloud/status`, computed every 30 seconds.
//!
//! Promises: only the seed that hosts the shoot reports conditions, also while a move waits or runs. Parts
//! that the move has stopped are reported with reason `Moving`. During a deletion no condition is written. A
//! condition that was `True` is `Progressing` for a minute before the condition becomes `False`. Components
//! that this version does not deploy are reported as not deployed, not as healthy.

mod checks;
mod components;
mod controller;
mod data_loss;
mod extensions;
mod label;
mod moving;
mod observation;
mod observed;
mod owner_checks;
mod ownership;
mod probe;
mod seen;
mod settle;
mod webhook;
mod webhooks;

pub use controller::run;
pub use data_loss::report_before_hand_over;
pub use label::status_label;
pub use moving::without_api_server;
pub use observation::Observation;
pub use settle::settle;
