//! Resources that providers and further extensions reconcile.

pub(crate) mod control_plane;
pub(crate) mod dns_records;
pub(crate) mod dynamic;
pub(crate) mod further_extensions;
pub(crate) mod infrastructure;
pub(crate) mod kinds;
pub mod resource;
pub(crate) mod shared_close_deadline;
pub(crate) mod subnet_isolation;
