//! The etcds of a shoot: backups, the start of an epoch from a copy, and the end of an epoch.

pub(crate) mod backup_entry;
pub(crate) mod backups;
pub(crate) mod copied;
pub(crate) mod copy;
pub(crate) mod ended;
pub(crate) mod epoch_start_report;
pub(crate) mod etcds;
pub(crate) mod owner;
pub(crate) mod planned_copy;
pub(crate) mod ready;
pub(crate) mod sidecar;
pub(crate) mod source_bucket;
