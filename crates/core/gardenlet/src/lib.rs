//! The agent of a seed.
//!
//! | part | acts on | promises |
//! |---|---|---|
//! | [`shoot`] | Shoot | the flow of each operation; only the responsible seed acts |
//! | [`seed`] | the gardenlet's Seed | registered; Lease renewed while both APIs answer; true conditions |
//! | [`shoot_state`] | ShootState | the garden holds the state for a different seed seconds after a change |
//! | [`care`] | Shoot | the health conditions, with reason `Moving` for parts that a move has stopped |
//! | [`zone_isolation`] | Shoot | a sick zone is closed and opened, as the annotation requests |
//! | [`move_trace`] | | traces of moves for a collector |
//! | [`controller_installation`] | ControllerInstallation | extensions from charts, removed when unused |
//! | [`backup_controllers`] | BackupBucket, BackupEntry | a separate crate, since a provider can run it too |
//!
//! `controllers` starts the controllers with the shared input of `context`. `shoots` has the shared watch of
//! Shoots, `config` the flags, `certificate` the validity of the credentials, `node` the kept part of a Node,
//! and `name_list` shared texts.

pub mod care;
pub mod certificate;
pub mod config;
pub mod context;
pub mod controller_installation;
pub mod controllers;
pub mod move_trace;
mod name_list;
mod node;
pub mod seed;
pub mod shoot;
pub mod shoot_state;
pub mod shoots;
pub mod zone_isolation;

pub use config::Config;
pub use context::{Context, MANAGER};
