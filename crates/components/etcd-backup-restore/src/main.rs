//! etcd-backup-restore: the process. The work is in the library; here are flags, logs, signals and exit
//! codes.

use clap::Parser;
use etcd_backup_restore::cli::{Cli, Command, CopyArgs, InitializeArgs, PrepareArgs, ServerArgs};
use etcd_backup_restore::copy::{Copy, CopyGauge, serve_progress};
use etcd_backup_restore::error::{Class, Error, Result};
use etcd_backup_restore::etcd::EtcdConfig;
use etcd_backup_restore::follow::{FollowArgs, serve_status};
use etcd_backup_restore::log::{self, LogScope};
use etcd_backup_restore::owner::OwnershipController;
use etcd_backup_restore::restore::{self, Initialize, Prepare};
use etcd_backup_restore::server::{self, Behind, Tls};
use etcd_backup_restore::snapshotter::{Settings, Snapshotter};
use etcd_backup_restore::store::FIRST;
use futures::future::BoxFuture;
use permit::Permit;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The file from which the kubelet reads the termination message of a container; exists in a pod only.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// How long the process may take to store the collected changes after SIGTERM. Together with `LAST_ANSWERS`
/// this time must be shorter than the termination grace that etcd-druid gives the pod, 10 s.
const GRACE: Duration = Duration::from_secs(8);
/// How long pending HTTP responses may take after that.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::init(LogScope::of_command(&cli.command));
    // Two libraries bring a cryptography provider each; the process must select a provider.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a cryptography provider was set already");
    }
    match run_to_end(run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(class = error.class.as_str(), "{error}");
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Runs the process. The end does not wait for blocking tasks: a DNS lookup blocks its thread for up to a
/// minute if no server answers.
fn run_to_end(process: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(Class::Configuration, format!("cannot start the runtime: {e}")))?;
    let ended = runtime.block_on(process);
    runtime.shutdown_background();
    ended
}

/// Writes the termination message that `kubectl describe pod` shows.
fn report(line: &str) {
    if let Ok(mut log) = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(TERMINATION_LOG)
    {
        let _ = writeln!(log, "{line}");
    }
}

/// Ends on SIGTERM or SIGINT.
async fn told_to_stop() -> Result<()> {
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

/// Without the permit no work continues and no request leaves.
async fn run(command: Command) -> Result<()> {
    let permit =
        Permit::sole("the process beside an etcd, and those that prepare its data, act for that etcd alone");
    let done: BoxFuture<Result<()>> = match command {
        Command::Server(args) => Box::pin(serve(*args, &permit)),
        Command::Initialize(args) => Box::pin(or_stopped(initialize(*args, &permit))),
        Command::Prepare(args) => Box::pin(or_stopped(prepare(*args, &permit))),
        Command::Copy(args) => Box::pin(or_stopped(copy(*args, &permit))),
        Command::Follow(args) => Box::pin(or_stopped(follow(*args, &permit))),
    };
    permit.guard(done).await?
}

/// Uploads that are in progress when the process must stop never become visible.
async fn or_stopped(done: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        done = done => done,
        told = told_to_stop() => told,
    }
}

/// How snapshots are taken under a permit.
fn settings(args: &ServerArgs, permit: &Permit) -> Result<Settings> {
    Ok(Settings {
        etcd: args.etcd.config(permit),
        store: Arc::new(args.store.open(permit)?.of_epoch(args.ownership_epoch)),
        compression: args.compression_policy,
        schedule: args.schedule.clone(),
        full_window: args.full_snapshot_window,
        delta_period: args.delta_snapshot_period,
        delta_limit: args.delta_snapshot_memory_limit,
        policy: args.garbage_collection_policy,
        max_backups: args.max_backups,
        gc_period: args.garbage_collection_period,
    })
}

/// Returns the future that takes snapshots until stopped, and the state behind the HTTP interface.
fn snapshots(
    args: ServerArgs,
    permit: &Permit,
    stop: CancellationToken,
) -> Result<(BoxFuture<'static, Result<()>>, Behind)> {
    let check = args
        .owner
        .check(args.ownership_epoch, args.data_dir.as_deref(), &args.etcd)?;
    let Some(check) = check else {
        let (snapshotter, handle) = Snapshotter::new(settings(&args, permit)?);
        let behind = Behind {
            snapshotter: Arc::new(Mutex::new(handle)),
            owner: None,
            prepared: None,
        };
        let work = async move {
            Box::pin(snapshotter.run(stop)).await;
            Ok(())
        };
        return Ok((Box::pin(work), behind));
    };
    let store = args.store.open(permit)?.of_epoch(args.ownership_epoch);
    let under = Box::new(move |permit: &Permit| settings(&args, permit));
    let controller = OwnershipController::new(check, store, permit.clone(), under)?;
    let (snapshotter, status) = controller.view();
    let behind = Behind {
        snapshotter,
        owner: Some(status),
        prepared: Some(controller.prepared_clients()),
    };
    Ok((Box::pin(controller.run(stop)), behind))
}

async fn serve(args: ServerArgs, permit: &Permit) -> Result<()> {
    let (etcd, data_dir, address) = (
        args.etcd.config(permit),
        args.data_dir.clone(),
        args.listen_address,
    );
    let tls = args
        .server_cert
        .clone()
        .zip(args.server_key.clone())
        .map(|(cert, key)| Tls { cert, key });
    let (stop, connections) = (CancellationToken::new(), axum_server::Handle::new());
    let (snapshots, behind) = snapshots(args, permit, stop.clone())?;
    let served = server::serve(address, tls, server::routes(behind), connections.clone());
    tokio::pin!(served, snapshots);
    tokio::select! {
        served = &mut served => return served,
        ended = &mut snapshots => return ended,
        () = tidy(data_dir, etcd) => return Ok(()),
        told = told_to_stop() => told?,
    }
    // The collected changes are stored first, while requests are still answered.
    stop.cancel();
    tokio::select! {
        served = &mut served => return served,
        ended = tokio::time::timeout(GRACE, &mut snapshots) => if let Ok(ended) = ended {
            ended?;
        } else {
            tracing::warn!("the store did not take what was collected in time");
        },
    }
    connections.graceful_shutdown(Some(LAST_ANSWERS));
    served.await
}

/// Removes the replaced data directory as soon as etcd serves from the restored directory; never returns.
async fn tidy(data_dir: Option<PathBuf>, etcd: EtcdConfig) {
    if let Some(data_dir) = data_dir {
        restore::remove_replaced(&data_dir, &etcd).await;
    }
    std::future::pending::<()>().await;
}

async fn initialize(args: InitializeArgs, permit: &Permit) -> Result<()> {
    let initialize = Initialize {
        store: args.store.open(permit)?.of_epoch(args.ownership_epoch),
        tools: args.member.tools(permit),
        member: args.member.member(),
        data_dir: args.member.data_dir,
        require_snapshot: args.require_snapshot,
        behind_gate: args.behind_gate,
        quota: args.embedded_etcd_quota_bytes,
    };
    let done = initialize.run().await?;
    // etcd-druid reads the data with which an ownership epoch begins from this report.
    if let Ok(summary) = serde_json::to_string(&done.summary()) {
        report(&summary);
    }
    print(&done)
}

async fn prepare(args: PrepareArgs, permit: &Permit) -> Result<()> {
    let prepare = Prepare {
        tools: args.member.tools(permit),
        member: args.member.member(),
        data_dir: args.member.data_dir,
        epoch: args.ownership_epoch,
        quota: args.embedded_etcd_quota_bytes,
        disposable: args.disposable_data,
    };
    let done = prepare.run().await?;
    if let Ok(summary) = serde_json::to_string(&done) {
        report(&summary);
    }
    print(&done)
}

async fn copy(args: CopyArgs, permit: &Permit) -> Result<()> {
    const DAY: u64 = 24 * 60 * 60;
    let end = args.source_end();
    let source = args.source.open(permit)?;
    // The chain is judged by the end of the source's epoch, and the source may be dead.
    let is_judged = end.is_some() || args.ownership_epoch > FIRST;
    let source = if is_judged { source.leaving_aside() } else { source };
    let gauge = CopyGauge::default();
    let copy = Copy {
        gauge: gauge.clone(),
        end,
        source,
        target: args.target.open(permit)?.of_epoch(args.ownership_epoch),
        wait_for_final: args.wait_for_final_snapshot,
        wait_timeout: args.wait_for_final_snapshot_timeout,
        max_chains: usize::try_from(args.max_backups_to_copy).ok(),
        max_age: u64::try_from(args.max_backup_age)
            .ok()
            .map(|days| Duration::from_secs(days * DAY)),
        parallel: args.max_parallel_copy_operations,
        allow_empty: args.allow_empty_source,
    };
    let progress = async {
        match args.listen_address {
            Some(address) => serve_progress(address, gauge).await,
            None => std::future::pending().await,
        }
    };
    let done = tokio::select! {
        done = copy.run() => done?,
        never = progress => match never {},
    };
    // etcd-druid reads the data with which the copy begins from this report.
    if let Ok(summary) = serde_json::to_string(&done.summary()) {
        report(&summary);
    }
    print(&done)
}

async fn follow(args: FollowArgs, permit: &Permit) -> Result<()> {
    let address = args.listen_address;
    let follow = args.follow(permit)?;
    let served = async {
        match address {
            Some(address) => serve_status(address, follow.progress.clone()).await,
            None => std::future::pending().await,
        }
    };
    let done = tokio::select! {
        done = follow.run() => done?,
        never = served => match never {},
    };
    print(&done)
}

/// Prints a line of JSON with the result to standard output; all logs go to standard error.
fn print(report: &impl serde::Serialize) -> Result<()> {
    let line = serde_json::to_string(report).map_err(|e| Error::new(Class::Configuration, e.to_string()))?;
    writeln!(std::io::stdout(), "{line}")
        .map_err(|e| Error::new(Class::Configuration, format!("cannot write the report: {e}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_of_the_process_does_not_wait_for_a_lookup_that_hangs() {
        let (starts, started) = channel();
        let (answer, answered) = channel::<()>();
        let (returns, returned) = channel();
        let lookup = move || {
            starts.send(()).unwrap();
            // Bounded, so that a process that waits fails this test.
            let _ = answered.recv_timeout(Duration::from_secs(5));
            let _ = returns.send(());
        };
        let process = async move {
            drop(tokio::task::spawn_blocking(lookup));
            started.recv().unwrap();
            Ok(())
        };
        run_to_end(process).unwrap();
        assert!(returned.try_recv().is_err(), "the process waited for the lookup");
        drop(answer);
    }
}
