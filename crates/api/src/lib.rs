//! The types of every resource of the suite, by API group, and the `CustomResourceDefinition`s made from
//! them.
//!
//! Promises: no client and nothing asynchronous in here; every file in `crds/` equals its type
//! (`xtask generate --check`). Group, version, kind, field names, printer columns and short names are those
//! that users of Gardener know; validation that needs no other object is CEL in the schema, so that a wrong
//! manifest is refused at the door with the field's name. Fields that are accepted and do nothing yet are
//! listed in [`gardencore::shoot::effects`].
//!
//! The garden cluster serves [`gardencore`] and [`security`]; a seed serves [`extensions`], [`druid`],
//! [`resources`] and [`machine`].

// Every column of a kind repeats `type_` and `json_path`: for this lint they are one list of attributes.
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

pub mod crds;
pub mod generated;
mod limits;
pub use crds::{Crd, Target, all_crds, crds_of};
