//! The command line. Flags carry the names that etcd-druid's users know.

use crate::compression::Compression;
use crate::copy::SourceEnd;
use crate::etcd_flags::EtcdArgs;
use crate::flag_ranges::{number, number_or_all, period, period_or_zero};
use crate::follow::FollowArgs;
use crate::garbage::Policy;
use crate::owner::OwnerArgs;
use crate::restore::{Member, Tools};
use crate::schedule::Schedule;
use crate::store_flags::{SourceStoreArgs, StoreArgs};
use clap::{Args, Parser, Subcommand};
use permit::Permit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Snapshots, restore and copy of an etcd.
#[derive(Debug, Parser)]
#[command(name = "etcd-backup-restore", version)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take snapshots of a running etcd and serve the HTTP interface.
    Server(Box<ServerArgs>),
    /// Restore the data directory from the store if the directory needs a restore; run before etcd starts.
    Initialize(Box<InitializeArgs>),
    /// Give an etcd without backups revisions above all former ones; run before etcd starts.
    Prepare(Box<PrepareArgs>),
    /// Copy snapshots from one store to another.
    Copy(Box<CopyArgs>),
    /// Keep an etcd equal to a source etcd, revision by revision. Hidden: known gaps of the proof are open.
    #[command(hide = true)]
    Follow(Box<FollowArgs>),
}

/// `server`.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// etcd.
    #[command(flatten)]
    pub etcd: EtcdArgs,
    /// Address of the HTTP interface.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub listen_address: SocketAddr,
    /// Certificate of the HTTP interface; without this flag the interface is plain HTTP.
    #[arg(long, requires = "server_key")]
    pub server_cert: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, requires = "server_cert")]
    pub server_key: Option<PathBuf>,
    /// When full snapshots are due: cron with five fields, UTC.
    #[arg(long, value_parser = Schedule::parse, default_value = "0 */24 * * *")]
    pub schedule: Schedule,
    /// A full snapshot is taken at start where the newest is older than this.
    #[arg(long, value_parser = period("1m", "8784h"), default_value = "24h")]
    pub full_snapshot_window: Duration,
    /// Time between delta snapshots; 0 disables delta snapshots.
    #[arg(long, value_parser = period_or_zero("for none", "1s", "24h"), default_value = "5m")]
    pub delta_snapshot_period: Duration,
    /// Bytes of events after which a delta snapshot is stored early.
    #[arg(long, value_parser = number::<usize>(64 * 1024, 1024 * 1024 * 1024), default_value = "10485760")]
    pub delta_snapshot_memory_limit: usize,
    /// Compression of new snapshots.
    #[arg(long, value_enum, default_value = "gzip")]
    pub compression_policy: Compression,
    /// Retention policy of the garbage collection.
    #[arg(long, value_enum, default_value = "LimitBased")]
    pub garbage_collection_policy: Policy,
    /// Time between garbage collections.
    #[arg(long, value_parser = period("1s", "168h"), default_value = "12h")]
    pub garbage_collection_period: Duration,
    /// Full snapshots, each with its deltas, that LimitBased keeps.
    #[arg(long, value_parser = number::<usize>(1, 10_000), default_value = "7")]
    pub max_backups: usize,
    /// Epoch of the ownership of the shoot under which this process takes snapshots; a final snapshot counts
    /// for its epoch only.
    #[arg(long, value_parser = number::<i64>(1, i64::MAX), default_value = "1")]
    pub ownership_epoch: i64,
    /// etcd's data directory: once etcd serves, the process removes the replaced data directory beside it.
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
    /// The flags of the owner check.
    #[command(flatten)]
    pub owner: OwnerArgs,
}

/// The member of etcd that is about to start.
#[derive(Debug, Args)]
pub struct MemberArgs {
    /// etcd's data directory, below the mount point of its volume.
    #[arg(long)]
    pub data_dir: PathBuf,
    /// Name of the member.
    #[arg(long, default_value = "default")]
    pub name: String,
    /// All members, name=peer-url.
    #[arg(long, default_value = "default=http://localhost:2380")]
    pub initial_cluster: String,
    /// Token of the cluster.
    #[arg(long, default_value = "etcd-cluster")]
    pub initial_cluster_token: String,
    /// Peer URLs of this member.
    #[arg(long, default_value = "http://localhost:2380")]
    pub initial_advertise_peer_urls: String,
    /// Program that settles or begins the data before etcd starts; the release that will use the data.
    #[arg(long, default_value = "/usr/local/bin/etcd")]
    pub etcd_path: PathBuf,
    /// Program that checks and restores database files; the same release.
    #[arg(long, default_value = "/usr/local/bin/etcdutl")]
    pub etcdutl_path: PathBuf,
}

impl MemberArgs {
    /// The member that the data directory is for.
    #[must_use]
    pub fn member(&self) -> Member {
        Member {
            name: self.name.clone(),
            initial_cluster: self.initial_cluster.clone(),
            token: self.initial_cluster_token.clone(),
            peer_urls: self.initial_advertise_peer_urls.clone(),
        }
    }

    /// etcd's programs.
    #[must_use]
    pub fn tools(&self, permit: &Permit) -> Tools {
        Tools {
            etcd: self.etcd_path.clone(),
            etcdutl: self.etcdutl_path.clone(),
            permit: permit.clone(),
        }
    }
}

/// `prepare`.
#[derive(Debug, Args)]
pub struct PrepareArgs {
    /// The member.
    #[command(flatten)]
    pub member: MemberArgs,
    /// Epoch of the ownership of the shoot: the revisions of a later epoch are above all revisions of an
    /// earlier epoch.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..), default_value = "1")]
    pub ownership_epoch: i64,
    /// Largest database that the etcd that follows may have, in bytes.
    #[arg(long, default_value_t = 8 << 30)]
    pub embedded_etcd_quota_bytes: u64,
    /// The data may be lost, as Events may: etcd begins empty if the data of an earlier epoch cannot be
    /// continued.
    #[arg(long)]
    pub disposable_data: bool,
}

/// `initialize`.
#[derive(Debug, Args)]
pub struct InitializeArgs {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The member.
    #[command(flatten)]
    pub member: MemberArgs,
    /// Refuse to start empty: this etcd must have a past.
    #[arg(long)]
    pub require_snapshot: bool,
    /// Epoch of the ownership of the shoot: snapshots and data of a different epoch are not used.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..), default_value = "1")]
    pub ownership_epoch: i64,
    /// Clients reach the etcd that follows only through a gate. Without this flag etcd does not start if the
    /// epoch was sealed.
    #[arg(long)]
    pub behind_gate: bool,
    /// Largest database that the etcd that follows may have, in bytes.
    #[arg(long, default_value_t = 8 << 30)]
    pub embedded_etcd_quota_bytes: u64,
}

/// `copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The target.
    #[command(flatten)]
    pub target: StoreArgs,
    /// The source.
    #[command(flatten)]
    pub source: SourceStoreArgs,
    /// Wait until the source holds a final full snapshot.
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub wait_for_final_snapshot: bool,
    /// Continue without the final snapshot after this time; 0 waits for ever.
    #[arg(long, value_parser = period_or_zero("for ever", "1s", "24h"), default_value = "0")]
    pub wait_for_final_snapshot_timeout: Duration,
    /// Newest full snapshots, each with its deltas, to copy; -1 for all.
    #[arg(long, value_parser = number_or_all(10_000), default_value = "1", allow_negative_numbers = true)]
    pub max_backups_to_copy: i64,
    /// Leave out full snapshots older than this many days, but never the newest; -1 for no limit.
    #[arg(long, value_parser = number_or_all(36_500), default_value = "-1", allow_negative_numbers = true)]
    pub max_backup_age: i64,
    /// Delta snapshots to copy in parallel.
    #[arg(long, value_parser = number::<usize>(1, 100), default_value = "10")]
    pub max_parallel_copy_operations: usize,
    /// An empty source is a success.
    #[arg(long)]
    pub allow_empty_source: bool,
    /// Epoch of the ownership of the shoot that begins with the copied snapshots.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..), default_value = "1")]
    pub ownership_epoch: i64,
    /// Revision of etcd at which the source's epoch ended: a chain that was read and hashed must reach this
    /// revision, or the copy fails.
    #[arg(long, value_parser = number::<i64>(1, i64::MAX))]
    pub required_revision: Option<i64>,
    /// Name of the source's final snapshot.
    #[arg(long, requires = "required_revision")]
    pub required_snapshot: Option<String>,
    /// Hash of that snapshot as it is stored: sha256 in hex. An object with that name and a different hash
    /// does not count.
    #[arg(long, requires = "required_snapshot")]
    pub required_snapshot_sha256: Option<String>,
    /// Changes up to the required revision that may be lost.
    #[arg(long, requires = "required_revision", value_parser = number::<i64>(0, i64::MAX), default_value = "0")]
    pub accepted_loss: i64,
    /// Address at which `GET /progress` answers with the bytes that were copied, of the bytes to copy.
    /// Without this flag the process listens nowhere.
    #[arg(long)]
    pub listen_address: Option<SocketAddr>,
}

impl CopyArgs {
    /// The end of the source's epoch, where the flags name it.
    #[must_use]
    pub fn source_end(&self) -> Option<SourceEnd> {
        Some(SourceEnd {
            revision: self.required_revision?,
            snapshot: self.required_snapshot.clone(),
            sha256: self.required_snapshot_sha256.clone(),
            accepted_loss: self.accepted_loss,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(flag: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["etcd-backup-restore", "server", "--store-container=b", flag])
    }

    fn copy(flag: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["etcd-backup-restore", "copy", "--store-container=b", flag])
    }

    fn is_refused(parsed: Result<Cli, clap::Error>, flag: &str) {
        let error = parsed.expect_err(flag).to_string();
        let name = flag.split('=').next().unwrap_or_default();
        assert!(
            error.contains(name) && error.contains("write "),
            "{flag}: {error}"
        );
    }

    #[test]
    fn a_value_that_would_take_snapshots_without_end_or_none_is_refused() {
        for flag in [
            "--full-snapshot-window=0s",
            "--full-snapshot-window=-24h",
            "--full-snapshot-window=59s",
            "--full-snapshot-window=1000000h",
            "--delta-snapshot-period=300ms",
            "--delta-snapshot-period=-1s",
            "--delta-snapshot-period=25h",
            "--delta-snapshot-memory-limit=0",
            "--delta-snapshot-memory-limit=-1",
            "--delta-snapshot-memory-limit=1",
            "--delta-snapshot-memory-limit=99999999999999999999",
            "--garbage-collection-period=0",
            "--garbage-collection-period=0s",
            "--garbage-collection-period=-1h",
            "--garbage-collection-period=8760h",
            "--garbage-collection-period=soon",
            "--max-backups=0",
            "--max-backups=-1",
            "--max-backups=1000000",
            "--etcd-connection-timeout=0s",
            "--etcd-connection-timeout=24h",
            "--ownership-epoch=0",
            "--ownership-epoch=-1",
        ] {
            is_refused(server(flag), flag);
        }
        for flag in [
            "--max-backups-to-copy=0",
            "--max-backups-to-copy=-2",
            "--max-backup-age=0",
            "--max-backup-age=9223372036854775807",
            "--max-parallel-copy-operations=0",
            "--max-parallel-copy-operations=100000",
            "--wait-for-final-snapshot-timeout=-1s",
            "--required-revision=0",
            "--required-revision=-1",
            "--accepted-loss=-1",
        ] {
            is_refused(copy(flag), flag);
        }
    }

    #[test]
    fn usual_values_and_the_defaults_are_accepted() {
        for flag in [
            "--full-snapshot-window=24h",
            "--delta-snapshot-period=0",
            "--delta-snapshot-period=1s",
            "--delta-snapshot-memory-limit=104857600",
            "--garbage-collection-period=12h",
            "--max-backups=7",
            "--ownership-epoch=3",
        ] {
            assert!(server(flag).is_ok(), "{flag}");
        }
        for flag in ["--max-backups-to-copy=-1", "--wait-for-final-snapshot-timeout=0"] {
            assert!(copy(flag).is_ok(), "{flag}");
        }
    }
}
