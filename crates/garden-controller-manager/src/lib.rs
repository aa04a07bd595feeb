//! The controllers that look at the whole garden: projects, the life of seeds, and whether a move may begin.
//!
//! | part | acts on | promises |
//! |---|---|---|
//! | [`project`] | Project | a namespace with the right labels; none is taken away while shoots or their backups are in it |
//! | [`seed`] | Seed | a seed whose gardenlet is silent is `GardenletReady=Unknown` within the monitor period |
//! | [`shoot_migration`] | Shoot | the constraint `ReadyForMigration` says whether a move may begin, and what to do if not (I8) |
//! | [`shoot_placement`] | Shoot | a Shoot that no seed will ever take says so |
//! | [`shoot_state`] | ShootState | what a move carries is not lost before the move is over |

pub mod config;
pub mod context;
pub mod controllers;
pub mod project;
pub mod seed;
pub mod shoot_migration;
pub mod shoot_placement;
pub mod shoot_state;

pub use config::Config;
pub use context::{Context, MANAGER};
