//! The life of seeds as the garden sees it.
//!
//! A gardenlet renews its seed's Lease. When it falls silent, this controller says so in the Seed's condition
//! `GardenletReady`; the gardenlet itself takes that back once it is heard again. Silence is measured by this
//! process's own monotonic clock, from when it last saw the Lease change: clocks of two machines are never
//! compared. After a second period of silence the health conditions of the seed's Shoots turn `Unknown` as
//! well.
//!
//! The condition `OwnerServersAgree` warns of Seeds that ask different DNS servers for the owner records of
//! one zone.

mod controller;
mod liveness;
mod namespace;
mod owner_servers;
mod shoot_conditions;

pub use controller::run;
pub use liveness::{Liveness, Observations};
pub use shoot_conditions::report_unknown;
