//! `druid.gardener.cloud/v1alpha1`: etcd clusters, served by seeds.

mod backup;
pub mod effects;
mod etcd;
mod etcd_config;
mod etcd_copy_backups_task;
mod etcd_status;

pub use backup::*;
pub use etcd::{CompactionMode, Etcd, EtcdSpec, SchedulingConstraints, SharedConfig};
pub use etcd_config::*;
pub use etcd_copy_backups_task::*;
pub use etcd_status::*;
