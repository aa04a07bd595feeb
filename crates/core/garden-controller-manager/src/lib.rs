//! The controllers that look at the whole garden: projects, the life of seeds, and whether a move may begin.
//!
//! | module | acts on | promises |
//! |---|---|---|
//! | [`backup_entry_placement`] | Shoot | the backups of a shoot follow the shoot, and never go first |
//! | [`controller_registration`] | Seed | a seed has the extensions that its shoots need |
//! | [`project`] | Project | a namespace with the labels, for as long as shoots or backups are inside |
//! | [`seed`] | Seed | a silent seed is `GardenletReady=Unknown`; condition `OwnerServersAgree` |
//! | [`shoot_domain`] | Shoot | the domain of a shoot belongs to a single Shoot |
//! | [`shoot_hibernation`] | Shoot | a shoot sleeps and wakes up at the times of its schedules |
//! | [`shoot_kubeconfig`] | Shoot | the Secret for the kubeconfig, which no seed may create |
//! | [`shoot_migration`] | Shoot | whether a move may begin (I8), with which destination and specification |
//! | [`shoot_placement`] | Shoot | a Shoot that no seed will ever take has a report |
//! | [`shoot_preparation`] | Shoot | a seed may prepare for a shoot of a different seed; off by default |
//! | [`shoot_state`] | Shoot, ShootState | the state that a move carries lives until the end of the move |
//! | [`shoot_takeover`] | Shoot | the takeover from a dead seed, on consent, and never beside a live seed |
//! | [`shoot_version`] | Shoot | an incomplete version of Kubernetes is completed |
//! | [`shoot_zone_expiry`] | Shoot | the isolation of a zone ends at its time |
//!
//! `controllers` starts the controllers with the shared input of `context`. `shoots` and `backup_entries`
//! have the shared watches, `changes` the keys that a change concerns, `slot_claims` the order of shoots that
//! wait for a slot, and `config` the flags.

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
pub mod shoot_preparation;
pub mod shoot_state;
pub mod shoot_takeover;
pub mod shoot_version;
pub mod shoot_zone_expiry;
pub mod shoots;
mod slot_claims;

pub use config::Config;
pub use context::{Context, MANAGER};
