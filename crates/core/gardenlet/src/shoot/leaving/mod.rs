//! The clean-up in a seed that has handed over or lost a shoot, and in a seed whose Shoot is deleted.

pub(crate) mod leave;
pub(crate) mod left_behind;
pub(crate) mod orphans;
pub(crate) mod unopened;
