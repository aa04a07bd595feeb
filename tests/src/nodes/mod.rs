//! Machines, their Nodes and what runs on them, as a move must leave them.

mod controller;
mod fleet;
mod herd;
mod images;
mod instances;
mod probe;
mod public;
mod taints;
mod web;
mod zonal;

pub use controller::Controller;
pub use fleet::Fleet;
pub use herd::Herd;
pub use images::pulled;
pub use instances::{Instances, hold, silence};
pub use probe::Probe;
pub use public::Public;
pub use taints::Taints;
pub use web::{Counts, Web};
pub use zonal::Zonal;
