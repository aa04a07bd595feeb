//! The etcds of a shoot: backups, the start of an epoch from a copy, and the end of an epoch.
//!
//! | file | content |
//! |---|---|
//! | `etcds` | etcd-main and etcd-events |
//! | `ready` | the wait for an Etcd |
//! | `owner` | the owner check of etcd-main, and conclusions from an etcd that refuses clients |
//! | `backups` | the final snapshot |
//! | `backup_entry` | the BackupEntry of the shoot, and the source BackupEntry |
//! | `source_bucket` | the bucket from which a shoot is restored |
//! | `copy` | the copy of backups from that bucket; `planned_copy`: checks an incomplete copy |
//! | `copied` | proofs about the backups, from the step that proves to the step that records |
//! | `ended` | the etcd-main of an ended epoch, when the seed gets the shoot again |
//! | `epoch_start_report` | the loss of an epoch that begins with data of the same seed |
//! | `prepared_entry` | the BackupEntry of a preparation |
//! | `prepared_clients` | the certificates of a preparation that the gate in front of etcd-main admits |
//! | `sidecar` | requests to etcd-backup-restore |

pub(crate) mod backup_entry;
pub(crate) mod backups;
pub(crate) mod copied;
pub(crate) mod copy;
pub(crate) mod ended;
pub(crate) mod epoch_start_report;
pub(crate) mod etcds;
pub(crate) mod owner;
pub(crate) mod planned_copy;
pub(crate) mod prepared_clients;
pub(crate) mod prepared_entry;
pub(crate) mod ready;
pub(crate) mod sidecar;
pub(crate) mod source_bucket;
