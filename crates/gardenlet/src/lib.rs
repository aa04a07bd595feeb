//! The agent of a seed.
//!
//! | part | acts on | promises |
//! |---|---|---|
//! | [`shoot`] | Shoot | the four flows; only the responsible seed acts |
//! | [`seed`] | the gardenlet's own Seed | it is registered, its Lease is renewed while both APIs answer, its conditions are true |
//! | [`shoot_state`] | ShootState | the garden holds what the shoot would need on another seed, some seconds after it changed |
//! | [`care`] | Shoot | the five conditions, never while a move is being prepared |
//! | [`controller_installation`] | ControllerInstallation | extensions are installed from their charts, and taken away when nothing needs them |
//! | [`backup_controllers`] | BackupBucket, BackupEntry | a crate of its own, since a provider can run it too |

pub mod care;
pub mod config;
pub mod context;
pub mod controller_installation;
pub mod controllers;
mod node;
pub mod seed;
pub mod shoot;
pub mod shoot_state;
mod words;

pub use config::Config;
pub use context::{Context, MANAGER};
