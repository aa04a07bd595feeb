//! How a shoot is: five conditions, two more where the seed checks owners, and the label
//! `shoot.gardener.cloud/status`, worked out every 30 seconds.
//!
//! Promises: only the seed that hosts the shoot tells, also while a move waits or runs: what the move has
//! stopped is reported with reason `Moving`. Nothing is told while a shoot is deleted. A condition that held
//! is `Progressing` for a minute before it is `False`. What is not deployed in this version is said to be not
//! deployed, not to be healthy.

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
pub use label::status_label;
pub use moving::without_api_server;
pub use observation::Observation;
pub use settle::settle;
