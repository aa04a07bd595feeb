//! The end of a hold, on paused time: requests under way, and the release of the lock.

#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction, clippy::panic)]

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use permit::Permit;
use rstest::rstest;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{Elector, Ended, Lock, Lost, Metrics, Timing};
use lease_server::Server;

const SECOND: Duration = Duration::from_secs(1);

fn elector(server: &Server) -> Elector {
    server.free("lock");
    let lock = Lock::new(server.client(), "ns", "lock", "me");
    Elector::new(lock, Timing::default(), Metrics::default())
}

async fn write(held: &Permit, server: &Server, name: &str) -> kube::Result<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(server.client_under(held), "ns");
    let patch = Patch::Merge(json!({"metadata": {"name": name}}));
    maps.patch(name, &PatchParams::default(), &patch).await
}

/// The behaviour of the work towards a write under way at the end.
#[derive(Clone, Copy)]
enum Care {
    /// The work waits until dropped.
    WaitsOn,
    /// The work drops the write, as the runner of controllers does.
    LetsGo,
    /// The work starts a task for the write. The task is aborted when the work is dropped, as kube's
    /// controllers do.
    Aborts,
}

/// Runs work that writes `slow` from the first moment on, and ends the work half a second later. Returns the
/// kind of the end, and the time between request and end.
async fn end_while_writing(server: &Server, care: Care) -> (Ended<()>, Duration) {
    let elector = elector(server);
    let end = CancellationToken::new();
    let writing = async |held: Permit| {
        let writing = async { drop(write(&held, server, "slow").await) };
        match care {
            Care::WaitsOn => writing.await,
            Care::LetsGo => drop(end.run_until_cancelled(writing).await),
            Care::Aborts => {
                let (held, server) = (held.clone(), server.clone());
                let mut tasks = JoinSet::new();
                tasks.spawn(async move { drop(write(&held, &server, "slow").await) });
                tasks.join_next().await;
            }
        }
        // A later write of the work must not arrive.
        let _ = write(&held, server, "late").await;
        pending::<()>().await;
    };
    let ending = async {
        sleep(SECOND / 2).await;
        end.cancel();
        Instant::now()
    };
    let working = async { (elector.with_lease(end.clone(), writing).await, Instant::now()) };
    let ((outcome, ended), cancelled) = futures::join!(working, ending);
    (outcome.unwrap(), ended - cancelled)
}

#[rstest]
#[case(Care::WaitsOn)]
#[case(Care::LetsGo)]
#[case(Care::Aborts)]
#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_answered_before_the_lock_is_given_back(#[case] care: Care) {
    let server = Server::default();
    server.slow("slow", SECOND);
    let (outcome, took) = end_while_writing(&server, care).await;
    assert_eq!(outcome, Ended::Shutdown);
    assert_eq!(server.events(), ["slow asked", "slow answered", "lock released"]);
    assert!(took <= SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_renewed_while_a_write_is_finished() {
    let server = Server::default();
    let elector = elector(&server);
    server.slow("slow", 5 * SECOND / 2);
    let (end, before) = (CancellationToken::new(), AtomicU64::new(0));
    let work = async |held: Permit| {
        let ending = async {
            sleep(SECOND / 10).await;
            before.store(server.version(), Ordering::SeqCst);
            end.cancel();
        };
        let _ = futures::join!(write(&held, &server, "slow"), ending);
    };
    let outcome = timeout(60 * SECOND, elector.with_lease(end.clone(), work))
        .await
        .unwrap();
    assert_eq!(outcome, Ok(Ended::Shutdown));
    assert_eq!(server.events(), ["slow asked", "slow answered", "lock released"]);
    let writes = server.version() - before.load(Ordering::SeqCst);
    assert!(writes >= 2, "one is the release, so there was no renewal");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_in_time_leaves_the_lock_to_run_out() {
    let server = Server::default();
    server.slow("slow", 3600 * SECOND);
    let (outcome, took) = end_while_writing(&server, Care::WaitsOn).await;
    assert_eq!(outcome, Ended::Shutdown);
    assert_eq!(server.events(), ["slow asked"]);
    assert_eq!(server.holder("lock").as_deref(), Some("me"));
    assert!(took < 4 * SECOND, "{took:?}");
}

/// Deleting a Lease does not stop the holder: a new candidate cannot know whether there was a Lease before.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_finds_no_lease_waits_for_a_holder_to_make_it_again() {
    let server = Server::default();
    let lock = Lock::new(server.client(), "ns", "lock", "me");
    let elector = Elector::new(lock, Timing::default(), Metrics::default());
    let start = Instant::now();
    let work = async |_| start.elapsed();
    let waited = match elector.with_lease(CancellationToken::new(), work).await {
        Ok(Ended::Done(waited)) => waited,
        other => panic!("{other:?}"),
    };
    let timing = Timing::default();
    assert!(waited >= timing.lease_duration, "{waited:?}");
    assert!(
        waited <= timing.lease_duration + timing.retry_period,
        "{waited:?}"
    );
}

/// A read changes no state, however long the read lasts.
#[tokio::test(start_paused = true)]
async fn reads_and_watches_do_not_delay_the_end() {
    let server = Server::default();
    let elector = elector(&server);
    server.slow("configmaps", 3600 * SECOND);
    let end = CancellationToken::new();
    let reading = async |held: Permit| {
        let maps: Api<ConfigMap> = Api::namespaced(server.client_under(&held), "ns");
        let params = WatchParams::default();
        let all = ListParams::default();
        let _ = futures::join!(maps.list(&all), maps.watch(&params, "0"));
    };
    let ending = async {
        sleep(SECOND).await;
        end.cancel();
        Instant::now()
    };
    let working = async { (elector.with_lease(end.clone(), reading).await, Instant::now()) };
    let ((outcome, ended), cancelled) = futures::join!(working, ending);
    assert_eq!(outcome, Ok(Ended::Shutdown));
    assert_eq!(ended, cancelled);
    assert_eq!(server.events(), ["configmaps asked", "lock released"]);
}

/// The API server is reachable again at the very moment, and would accept a release.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_lost_is_not_given_back() {
    let server = Server::default();
    let elector = elector(&server);
    let work = async |held: Permit| {
        server.refuse_until(held.valid_until());
        server.slow("slow", 3600 * SECOND);
        let _ = write(&held, &server, "slow").await;
    };
    let lost = elector.with_lease(CancellationToken::new(), work);
    let lost = timeout(60 * SECOND, lost).await.unwrap();
    assert!(matches!(lost, Err(Lost::NotRenewed { .. })), "{lost:?}");
    sleep(60 * SECOND).await;
    assert_eq!(server.events(), ["slow asked"]);
    assert_eq!(server.holder("lock").as_deref(), Some("me"));
}

/// Stops the process for this duration: all clocks advance, and no task runs.
fn stop_for(duration: Duration) {
    let _ = advance(duration).now_or_never();
}

/// A clean end is requested while the process is stopped: the lock has expired when the process resumes.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_lost_is_not_given_back_at_a_clean_end_either() {
    let server = Server::default();
    let elector = elector(&server);
    let end = CancellationToken::new();
    let work = async |_| {
        sleep(SECOND).await;
        stop_for(60 * SECOND);
        end.cancel();
        pending::<()>().await;
    };
    let lost = elector.with_lease(end.clone(), work);
    let lost = timeout(600 * SECOND, lost).await.unwrap();
    assert!(matches!(lost, Err(Lost::NotRenewed { .. })), "{lost:?}");
    assert_eq!(server.holder("lock").as_deref(), Some("me"));
}

/// The task that holds the lock is not scheduled, so the task can neither renew nor end; another task can
/// report that.
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_stuck_is_told_until_its_lock_ends() {
    let server = Server::default();
    server.free("lock");
    let lock = Lock::new(server.client(), "ns", "lock", "me");
    let metrics = Metrics::default();
    let elector = Elector::new(lock, Timing::default(), metrics.clone());
    let working = elector.with_lease(CancellationToken::new(), |_| pending::<()>());
    let mut working = Box::pin(working);
    assert!(timeout(60 * SECOND, &mut working).await.is_err(), "it is lost");
    assert_eq!(metrics.overdue(), None, "it was renewed");
    // The last renewal may have been two seconds ago.
    advance(32 * SECOND).await;
    assert_eq!(metrics.overdue(), None);
    advance(4 * SECOND).await;
    assert!(
        metrics
            .overdue()
            .unwrap()
            .contains("the lock lock should have been renewed")
    );
    drop(working);
    assert_eq!(metrics.overdue(), None);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_waits_for_the_lock_is_ready_while_it_can_read_the_lock() {
    let server = Server::default();
    server.free("lock");
    let (first, second) = (Metrics::default(), Metrics::default());
    let elector = |identity: &str, metrics: &Metrics| {
        let lock = Lock::new(server.client(), "ns", "lock", identity);
        Elector::new(lock, Timing::default(), metrics.clone())
    };
    let (leader, waits) = (elector("first", &first), elector("second", &second));
    let mut running = Box::pin(leader.with_lease(CancellationToken::new(), |_| pending::<()>()));
    let mut waiting = Box::pin(waits.with_lease(CancellationToken::new(), |_| pending::<()>()));
    let both = async { tokio::join!(&mut running, &mut waiting) };
    assert!(timeout(60 * SECOND, both).await.is_err());
    assert_eq!((first.is_active("lock"), second.is_active("lock")), (true, false));
    assert_eq!((first.unread(), second.unread()), (None, None));
    // The waiting replica is not polled, so no read happens.
    sleep(16 * SECOND).await;
    let why = second.unread().unwrap();
    assert!(
        why.starts_with("the lock lock could not be read or renewed for 1"),
        "{why}"
    );
    let _ = timeout(3 * SECOND, &mut waiting).await;
    assert_eq!(second.unread(), None);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_never_read_the_lock_is_not_ready() {
    let server = Server::default();
    server.slow("lock", 100 * SECOND);
    let metrics = Metrics::default();
    let lock = Lock::new(server.client(), "ns", "lock", "me");
    let elector = Elector::new(lock, Timing::default(), metrics.clone());
    let work = elector.with_lease(CancellationToken::new(), |_| pending::<()>());
    let _ = timeout(SECOND, work).await;
    assert_eq!(
        metrics.unread().as_deref(),
        Some("the lock lock has not been read yet")
    );
}
