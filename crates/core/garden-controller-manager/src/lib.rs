//! The controllers that look at the whole garden: projects, the life of seeds, and whether a move may begin.
//!
//! | part | acts on | promises |
//! |---|---|---|
//! | [`backup_entry_placement`] | Shoot | the backups of a shoot follow it to its new seed, and never go before it |
//! | [`controller_registration`] | Seed | it gets the extensions that its shoots need, and loses them when nothing needs them |
//! | [`project`] | Project | a namespace with the right labels; none is taken away while shoots or their backups are in it |
//! | [`seed`] | Seed | a seed whose gardenlet is silent is `GardenletReady=Unknown` within the monitor period |
//! | [`shoot_hibernation`] | Shoot | it falls asleep and wakes up at the times of its schedules |
//! | [`shoot_kubeconfig`] | Shoot | the Secret for its kubeconfig, which no seed may make |
//! | [`shoot_migration`] | Shoot | whether a move may begin, what to do if not (I8), whereto, and with which specification |
//! | [`shoot_placement`] | Shoot | a Shoot that no seed will ever take says so |
//! | [`shoot_takeover`] | Shoot | a shoot whose seed is dead is given to the one that is wanted, on consent and never beside a live one |
//! | [`shoot_zone_expiry`] | Shoot | a zone that was cut off until a time is taken back when that has come |
//! | [`shoot_state`] | Shoot, ShootState | what a move carries is not lost before the move is over, and gone after it |

pub mod backup_entries;
pub mod backup_entry_placement;
mod changes;
pub mod config;
pub mod context;
pub mod controller_registration;
pub mod controllers;
pub mod project;
pub mod seed;
pub mod shoot_domain;
pub mod shoot_hibernation;
pub mod shoot_kubeconfig;
pub mod shoot_migration;
pub mod shoot_placement;
pub mod shoot_state;
pub mod shoot_takeover;
pub mod shoot_version;
pub mod shoot_zone_expiry;
pub mod shoots;

pub use config::Config;
pub use context::{Context, MANAGER};
