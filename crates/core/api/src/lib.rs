//! The types of every resource of the suite, by API group, and the `CustomResourceDefinition`s made from
//! these types.
//!
//! Promises: this crate has no client and no asynchronous code; every file in `crds/` equals the type (`xtask
//! generate --check`). Group, version, kind, field names, printer columns and short names are the same as in
//! Gardener. Validation that needs no other object is CEL in the schema, so that the API server refuses a
//! wrong manifest with the name of the field. Fields that are accepted without an effect are listed in
//! [`gardencore::shoot::effects`].
//!
//! The garden cluster serves [`gardencore`] and [`security`]; a seed serves [`extensions`], [`druid`],
//! [`resources`] and [`machine`].

// Every column of a kind repeats `type_` and `json_path`: this lint takes all columns for a single list of
// attributes.
#![allow(clippy::duplicated_attributes)]

pub mod constants;
mod derive;
pub mod druid;
pub mod extensions;
pub mod gardencore;
pub mod leader_migration;
pub mod machine;
pub mod meta;
pub mod resources;
pub mod security;
pub mod text;

pub mod crds;
mod descriptions;
pub mod generated;
mod limits;
pub use crds::{Crd, Target, all_crds, crds_of};
