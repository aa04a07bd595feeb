//! etcd-backup-restore: the process. The work is in the library; here are flags, logs, signals and exit codes.

use clap::Parser;
use etcd_backup_restore::cli::{Cli, Command, CopyArgs, InitializeArgs, ServerArgs};
use etcd_backup_restore::copy::Copy;
use etcd_backup_restore::error::{Class, Error, Result};
use etcd_backup_restore::restore::{Initialize, Member, Tools};
use etcd_backup_restore::server::{self, Tls};
use etcd_backup_restore::snapshotter::{Settings, Snapshotter};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Where the kubelet takes the reason of a failed container from; it exists in a pod only.
const TERMINATION_LOG: &str = "/dev/termination-log";

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    // Two libraries bring a cryptography provider each; one has to be named.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a cryptography provider was set already");
    }
    let done = tokio::select! {
        done = run(cli.command) => done,
        stopped = stop() => stopped,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(class = error.class.word(), "{error}");
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Leaves the sentence where `kubectl describe pod` shows it.
fn report(error: &Error) {
    if let Ok(mut log) = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(TERMINATION_LOG)
    {
        let _ = writeln!(log, "{error}");
    }
}

/// Ends on SIGTERM or SIGINT. Uploads that are on their way never become visible then.
async fn stop() -> Result<()> {
    let listen = |kind| {
        signal(kind).map_err(|e| Error::new(Class::Configuration, format!("cannot listen to signals: {e}")))
    };
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    Ok(())
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Server(args) => serve(*args).await,
        Command::Initialize(args) => initialize(*args).await,
        Command::Copy(args) => copy(*args).await,
    }
}

async fn serve(args: ServerArgs) -> Result<()> {
    let settings = Settings {
        etcd: args.etcd.config(),
        store: args.store.open()?,
        compression: args.compression_policy,
        schedule: args.schedule,
        full_window: args.full_snapshot_window,
        delta_period: args.delta_snapshot_period,
        delta_limit: args.delta_snapshot_memory_limit,
        policy: args.garbage_collection_policy,
        max_backups: args.max_backups,
        gc_period: args.garbage_collection_period,
    };
    let tls = args
        .server_cert
        .zip(args.server_key)
        .map(|(cert, key)| Tls { cert, key });
    let (snapshotter, handle) = Snapshotter::new(settings);
    tokio::select! {
        served = server::serve(args.listen_address, tls, server::routes(handle)) => served,
        () = snapshotter.run() => Ok(()),
    }
}

async fn initialize(args: InitializeArgs) -> Result<()> {
    let initialize = Initialize {
        data_dir: args.data_dir,
        store: args.store.open()?,
        tools: Tools {
            etcd: args.etcd_path,
            etcdutl: args.etcdutl_path,
        },
        member: Member {
            name: args.name,
            initial_cluster: args.initial_cluster,
            token: args.initial_cluster_token,
            peer_urls: args.initial_advertise_peer_urls,
        },
        require_snapshot: args.require_snapshot,
    };
    print(&initialize.run().await?)
}

async fn copy(args: CopyArgs) -> Result<()> {
    const DAY: u64 = 24 * 60 * 60;
    let copy = Copy {
        source: args.source.open()?,
        target: args.target.open()?,
        wait_for_final: args.wait_for_final_snapshot,
        wait_timeout: args.wait_for_final_snapshot_timeout,
        max_chains: usize::try_from(args.max_backups_to_copy).ok(),
        max_age: u64::try_from(args.max_backup_age)
            .ok()
            .map(|days| Duration::from_secs(days * DAY)),
        parallel: args.max_parallel_copy_operations,
        allow_empty: args.allow_empty_source,
    };
    print(&copy.run().await?)
}

/// One line of JSON on standard output says what was done; everything else goes to standard error.
fn print(report: &impl serde::Serialize) -> Result<()> {
    let line = serde_json::to_string(report).map_err(|e| Error::new(Class::Configuration, e.to_string()))?;
    writeln!(std::io::stdout(), "{line}")
        .map_err(|e| Error::new(Class::Configuration, format!("cannot write the report: {e}")))
}
