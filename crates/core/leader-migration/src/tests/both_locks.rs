//! Both locks on paused time: neither work begins or continues without the locks for that work.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lease::{Elector, Lock, LockTerms, Lost, Metrics, Timing};
use lease_server::Server;
use permit::Permit;
use rstest::rstest;
use tokio::time::{advance, timeout};
use tokio_util::sync::CancellationToken;

use crate::run_with_leader_migration;

const SECOND: Duration = Duration::from_secs(1);

fn elector(server: &Server, lock: &str) -> Elector {
    server.free(lock);
    let lock = Lock::new(server.client(), "ns", lock, "me");
    Elector::new(lock, Timing::default(), Metrics::default())
}

/// Stops the process for this duration: all clocks advance, and no task runs.
fn stop_for(duration: Duration) {
    let _ = advance(duration).now_or_never();
}

/// RK-33: also where the process was stopped between winning the main lock and the first step of the work.
#[tokio::test(start_paused = true)]
async fn a_main_lock_that_is_lost_before_its_work_begins_ends_everything() {
    let server = Server::default();
    let (main, shared) = (elector(&server, "main"), elector(&server, "shared"));
    let work = |_| {
        stop_for(60 * SECOND);
        async { panic!("it works without the lock") }
    };
    let running = run_with_leader_migration(&main, Some(&shared), CancellationToken::new(), work, |_| {
        pending()
    });
    let ended = timeout(600 * SECOND, running).await.unwrap();
    assert!(matches!(ended, Err(Lost::NotRenewed { lock, .. }) if lock == "ns/main"));
    assert_eq!(
        server.holder("shared").as_deref(),
        Some(""),
        "asked for without the main lock"
    );
}

/// The same for the migration lock.
#[tokio::test(start_paused = true)]
async fn a_migration_lock_that_is_lost_before_its_work_begins_ends_everything() {
    let server = Server::default();
    // The main lock has a longer deadline than this lock, so the main lock is still held.
    let timing = Timing::new(15 * SECOND, 4 * SECOND, 2 * SECOND).unwrap();
    server.free("shared");
    let lock = Lock::new(server.client(), "ns", "shared", "me");
    let (main, shared) = (
        elector(&server, "main"),
        Elector::new(lock, timing, Metrics::default()),
    );
    let work = |_| {
        stop_for(5 * SECOND);
        async { panic!("it works without the lock") }
    };
    let running = run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| pending(),
        work,
    );
    let ended = timeout(600 * SECOND, running).await.unwrap();
    assert!(
        matches!(&ended, Err(Lost::NotRenewed { lock, .. }) if lock == "ns/shared"),
        "{ended:?}"
    );
    assert_eq!(server.holder("main").as_deref(), Some(""));
}

/// The migration lock was won later, so its permit is valid for longer.
#[tokio::test(start_paused = true)]
async fn migrated_work_takes_no_step_when_the_time_of_the_main_lock_is_over() {
    let server = Server::default();
    server.slow("shared", SECOND);
    let (main, shared) = (elector(&server, "main"), elector(&server, "shared"));
    let steps = AtomicU32::new(0);
    let migrated = |held: Permit| {
        stop_for(9 * SECOND + SECOND / 2);
        assert!(!held.is_valid(), "the right is that of both locks");
        async {
            steps.fetch_add(1, Ordering::SeqCst);
            pending::<()>().await;
        }
    };
    let running = run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| pending(),
        migrated,
    );
    let ended = timeout(600 * SECOND, running).await.unwrap();
    assert!(matches!(ended, Err(Lost::NotRenewed { lock, .. }) if lock == "ns/main"));
    assert_eq!(steps.load(Ordering::SeqCst), 0);
}

/// An elector of the migration lock on these terms.
fn elector_on(server: &Server, identity: &str, terms: Option<LockTerms>) -> Elector {
    let lock = Lock::new(server.client(), "ns", "shared", identity);
    let lock = match terms {
        Some(terms) => lock.on_terms(terms),
        None => lock,
    };
    Elector::new(lock, Timing::default(), Metrics::default())
}

/// The terms of a process that runs `main` under the main lock, with these controllers under the migration
/// lock.
fn list(controllers: &[&str], waits: bool) -> LockTerms {
    LockTerms::new(controllers.join(","))
        .with_entries(controllers.iter().copied())
        .with_exclusive(["main"])
        .waiting(waits)
}

/// The result for a manager with the list `ours` while a different process holds the migration lock on
/// `theirs`; `None` if the manager waits.
async fn beside(theirs: Option<LockTerms>, ours: LockTerms) -> Option<Result<(), Lost>> {
    let server = Server::default();
    let main = elector(&server, "main");
    server.free("shared");
    let holder = elector_on(&server, "other", theirs);
    let shared = elector_on(&server, "me", Some(ours));
    let mut holding = Box::pin(holder.with_lease(CancellationToken::new(), |_| pending::<()>()));
    assert!(timeout(SECOND, &mut holding).await.is_err());
    let running = run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| pending(),
        |_| async { panic!("both hold the lock") },
    );
    let both = futures::future::select(Box::pin(running), holding);
    let ended = match timeout(120 * SECOND, both).await.ok()? {
        futures::future::Either::Left((ended, _)) => ended,
        futures::future::Either::Right((ended, _)) => panic!("the holder ended: {ended:?}"),
    };
    assert_eq!(
        server.holder("main").as_deref(),
        Some(""),
        "it goes on without the migration lock"
    );
    Some(ended)
}

/// The first manager has a controller under the migration lock that the second manager runs under its main
/// lock. That controller would run twice.
#[tokio::test(start_paused = true)]
async fn two_lists_of_controllers_under_one_lock_refuse_each_other() {
    let ended = beside(Some("two".into()), "one".into()).await;
    let Some(Err(Lost::Disagrees { holder, theirs, .. })) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!((holder.as_str(), theirs.as_str()), ("other", "two"));
}

/// RK-21, RK-25: Kubernetes' own managers write no list.
#[tokio::test(start_paused = true)]
async fn the_same_list_and_a_holder_without_one_are_waited_for() {
    assert_eq!(beside(Some("one".into()), "one".into()).await, None);
    assert_eq!(beside(None, "one".into()).await, None);
}

/// The author chooses the end of the process: a living holder of an earlier list ends the process.
#[rstest]
#[case::the_author_ends_the_process(&["a"], false)]
// The holder runs `main`, and so does this process under the main lock.
#[case::a_controller_would_run_twice(&["a", "main"], true)]
#[case::a_controller_would_run_twice_too(&["a", "main"], false)]
#[tokio::test(start_paused = true)]
async fn a_process_ends_beside_a_holder_of_a_different_list(#[case] theirs: &[&str], #[case] waits: bool) {
    let ended = beside(Some(list(theirs, waits)), list(&["a", "b"], waits)).await;
    let Some(Err(Lost::Disagrees { holder, .. })) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(holder, "other");
}

/// The holder runs `main`, and so would this process. The answer with the list comes late.
#[tokio::test(start_paused = true)]
async fn main_work_waits_for_the_first_read_of_the_migration_lock() {
    let server = Server::default();
    let main = elector(&server, "main");
    server.free("shared");
    let holder = elector_on(&server, "other", Some(list(&["a", "main"], true)));
    let shared = elector_on(&server, "me", Some(list(&["a"], true)));
    let mut holding = Box::pin(holder.with_lease(CancellationToken::new(), |_| pending::<()>()));
    assert!(timeout(SECOND, &mut holding).await.is_err());
    server.slow("shared", SECOND);
    let runs = AtomicU32::new(0);
    let running = run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| count_run(&runs),
        |_| async { panic!("both hold the lock") },
    );
    let both = futures::future::select(Box::pin(running), holding);
    let ended = timeout(60 * SECOND, both).await.unwrap();
    let futures::future::Either::Left((Err(Lost::Disagrees { .. }), _)) = ended else {
        panic!("the process has to end")
    };
    assert_eq!(runs.load(Ordering::SeqCst), 0, "`main` ran twice");
}

async fn count_run(runs: &AtomicU32) {
    runs.fetch_add(1, Ordering::SeqCst);
    pending::<()>().await;
}

/// A rollout adds `b`. The holder of the earlier list runs until the rollout of that manager.
#[tokio::test(start_paused = true)]
async fn a_rollout_that_adds_an_entry_completes() {
    let server = Server::default();
    let main = elector(&server, "main");
    server.free("shared");
    let holder = elector_on(&server, "other", Some(list(&["a"], true)));
    let shared = elector_on(&server, "me", Some(list(&["a", "b"], true)));
    let (main_runs, migrated_runs) = (AtomicU32::new(0), AtomicU32::new(0));
    let runs = || [&main_runs, &migrated_runs].map(|runs| runs.load(Ordering::SeqCst));
    let end_of_holder = CancellationToken::new();
    let mut holding = Box::pin(holder.with_lease(end_of_holder.clone(), |_| pending::<()>()));
    assert!(timeout(SECOND, &mut holding).await.is_err());
    let mut running = Box::pin(run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| count_run(&main_runs),
        |_| count_run(&migrated_runs),
    ));
    let both = async { tokio::join!(&mut running, &mut holding) };
    assert!(timeout(120 * SECOND, both).await.is_err());
    assert_eq!(runs(), [1, 0], "only the controllers of the main lock run");
    end_of_holder.cancel();
    let both = async { tokio::join!(&mut running, &mut holding) };
    assert!(timeout(60 * SECOND, both).await.is_err());
    assert_eq!(runs(), [1, 1]);
    assert_eq!(server.holder("shared").as_deref(), Some("me"));
}

/// The last holder of the earlier list was killed in a rollout that adds `b`. The lock runs out.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_dead_holder_of_an_earlier_list_is_taken_over(#[values(true, false)] waits: bool) {
    let server = Server::default();
    let main = elector(&server, "main");
    server.free("shared");
    let holder = elector_on(&server, "other", Some(list(&["a"], waits)));
    let shared = elector_on(&server, "me", Some(list(&["a", "b"], waits)));
    let mut holding = Box::pin(holder.with_lease(CancellationToken::new(), |_| pending::<()>()));
    assert!(timeout(SECOND, &mut holding).await.is_err());
    // From here on the future of the holder is not polled.
    let running = run_with_leader_migration(
        &main,
        Some(&shared),
        CancellationToken::new(),
        |_| pending(),
        |_| async {},
    );
    let ended = timeout(600 * SECOND, running).await.unwrap();
    assert_eq!(ended, Ok(()));
}
