//! The flags of `follow`.

use super::{Follow, FollowProgress, WindowLimits};
use crate::error::Result;
use crate::etcd::EtcdConfig;
use crate::etcd_flags::EtcdArgs;
use crate::flag_ranges::{number, period};
use crate::store_flags::SourceStoreArgs;
use clap::Args;
use permit::Permit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `follow`.
#[derive(Debug, Args)]
pub struct FollowArgs {
    /// The etcd that follows. No other client may write to this etcd.
    #[command(flatten)]
    pub etcd: EtcdArgs,
    /// The store with the snapshots of the source.
    #[command(flatten)]
    pub source_store: SourceStoreArgs,
    /// Client URLs of the source's etcd, or of the gate in front of that etcd.
    #[arg(long, value_delimiter = ',', required = true)]
    pub source_endpoints: Vec<String>,
    /// CA of the source's server certificate.
    #[arg(long)]
    pub source_cacert: Option<PathBuf>,
    /// Client certificate for the source.
    #[arg(long, requires = "source_key")]
    pub source_cert: Option<PathBuf>,
    /// Key of the client certificate for the source.
    #[arg(long, requires = "source_cert")]
    pub source_key: Option<PathBuf>,
    /// Name to expect in the source's server certificate, if the name differs from the host of the URL.
    #[arg(long)]
    pub source_etcd_server_name: Option<String>,
    /// Epoch of the ownership of the shoot at the source; deltas of this epoch are read.
    #[arg(long, value_parser = number::<i64>(1, i64::MAX), default_value = "1")]
    pub source_ownership_epoch: i64,
    /// Folder in which a delta is checked before its changes are used.
    #[arg(long)]
    pub scratch_dir: PathBuf,
    /// Transactions under way at the local etcd; more transactions share a sync of the disk.
    #[arg(long, value_parser = number::<usize>(1, 1024), default_value = "128")]
    pub max_transactions: usize,
    /// Earlier revisions that a transaction holds at most besides its own revision, so that an earlier
    /// transaction may come late. 0 sends each change once, and waits where etcd changes the order.
    #[arg(long, value_parser = number::<usize>(0, 32), default_value = "8")]
    pub max_alternatives: usize,
    /// Bytes of a transaction that holds more than its own revision.
    #[arg(long, value_parser = number::<usize>(0, 1 << 20), default_value = "32768")]
    pub max_alternative_bytes: usize,
    /// Bytes of changes in memory that the local etcd has not taken.
    #[arg(long, value_parser = number::<usize>(64 * 1024, 1 << 30), default_value = "16777216")]
    pub max_buffered_bytes: usize,
    /// Revisions that are read through a watch; a follower that is further behind reads delta snapshots.
    #[arg(long, value_parser = number::<i64>(1, 1_000_000), default_value = "10000")]
    pub max_watched_revisions: i64,
    /// Largest database of the source that etcd hashes, to compare the history before the follower began. The
    /// hash blocks the writes of the source, for seconds with gigabytes.
    #[arg(long, value_parser = number::<u64>(1 << 20, 1 << 40), default_value = "2147483648")]
    pub max_hashed_bytes: u64,
    /// Longest wait for a delta snapshot that continues the local etcd.
    #[arg(long, value_parser = period("1s", "48h"), default_value = "30m")]
    pub delta_timeout: Duration,
    /// Time between two checks of the source's compaction and leases.
    #[arg(long, value_parser = period("1s", "1h"), default_value = "1m")]
    pub maintenance_period: Duration,
    /// Revision at which the process ends with success; without this flag the process ends on SIGTERM.
    #[arg(long, value_parser = number::<i64>(1, i64::MAX))]
    pub until_revision: Option<i64>,
    /// Address of `GET /follow` and `GET /metrics`. Without this flag the process listens nowhere.
    #[arg(long)]
    pub listen_address: Option<SocketAddr>,
}

impl FollowArgs {
    /// The follower.
    pub fn follow(self, permit: &Permit) -> Result<Follow> {
        let source = EtcdConfig {
            endpoints: self.source_endpoints,
            cacert: self.source_cacert,
            cert: self.source_cert,
            key: self.source_key,
            server_name: self.source_etcd_server_name,
            timeout: self.etcd.etcd_connection_timeout,
            permit: permit.clone(),
        };
        let store = self.source_store.open(permit)?;
        Ok(Follow {
            local: self.etcd.config(permit),
            source,
            store: store.of_epoch(self.source_ownership_epoch),
            scratch_dir: self.scratch_dir,
            limits: WindowLimits {
                transactions: self.max_transactions,
                alternatives: self.max_alternatives,
                transaction_bytes: self.max_alternative_bytes,
                bytes: self.max_buffered_bytes,
            },
            max_watched: self.max_watched_revisions,
            max_hashed: self.max_hashed_bytes,
            delta_timeout: self.delta_timeout,
            maintenance_period: self.maintenance_period,
            until: self.until_revision,
            progress: FollowProgress::default(),
        })
    }
}
