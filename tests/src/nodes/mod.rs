//! Machines, their Nodes and pods, and the state that a move must keep.

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
