//! Fail at every task, run every task twice: the shoot flows on real API servers.
//!
//! One garden and two seeds run as processes. Real are the controllers of the gardenlet (backups), etcd-druid
//! and provider-local, the DNS server and the object store. Only the processes in pods are not real. A pod
//! only gets the status that a kubelet would report, and [`pods`] gives two answers that pods would give.
//!
//! Each flow has a separate Shoot, so flows run concurrently. A flow fails after each task, is run again each
//! time, and finally runs each task twice. Variables select the cases:
//! - `REPOT_DRILL_FAULTS=each` gives each task a separate Shoot.
//! - `REPOT_DRILL_FAULTS=all` makes a case of each fault, also fails before each task, and drops each flow
//!   while a task runs.
//! - `REPOT_DRILL_FLOWS=Migrate,Restore` runs only these flows. `HandOver` and `Crash` are accepted too.
//!   `Crash` only runs when named: the process that takes a shoot over ends after each task.
//! - `REPOT_DRILL_WIDTH` is the number of concurrent cases.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod evidence;
mod foreign;
mod garden;
mod garden_controllers;
mod guest;
mod hand_over;
mod journeys;
mod machines;
mod move_trace;
mod objects;
mod on_aws;
mod owner;
mod pods;
mod refusal;
mod rights;
mod scenario;
mod seed;
mod sidecar;
mod subject;
mod world;
mod zones;

use std::sync::Arc;

use flow_drill::{self as drill, DrillError, Fault, Summary};
use futures::{StreamExt, stream};

use scenario::{Drilled, ShootScenario};
use world::World;

/// Concurrent cases. A case mostly waits (for the namespace controller, five seconds at least); a higher
/// number only slows single cases down on two cores.
const WIDTH: usize = 24;

/// [`evidence`] checks the conditions at the end. For a moved shoot:
/// - A single record names the owner (R17-10), as the object that a provider has reconciled (R17-11).
/// - A planned move has removed the record (R17-50).
/// - A restoration needs no migration before (R17-20).
/// - The copy of the backups has left no object (R17-29, R17-30).
#[test]
fn every_task_of_every_flow_may_fail_and_may_run_twice() {
    on_large_stacks(every_task_of_every_flow);
}

async fn every_task_of_every_flow() {
    let faults: &[Fault] = match std::env::var("REPOT_DRILL_FAULTS").as_deref() {
        Ok("all") => &Fault::ALL,
        Ok("each") => &[Fault::FailThenTwice],
        Ok(other) if !other.is_empty() => panic!("REPOT_DRILL_FAULTS is {other:?}: say each, or all"),
        _ => &[],
    };
    let width = std::env::var("REPOT_DRILL_WIDTH")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(WIDTH);
    let only = std::env::var("REPOT_DRILL_FLOWS").unwrap_or_default();
    for name in only.split(',').filter(|name| !name.is_empty()) {
        let is_flow = Drilled::ALL.iter().any(|flow| format!("{flow:?}") == name);
        assert!(
            is_flow || ["HandOver", "Crash"].contains(&name),
            "REPOT_DRILL_FLOWS names no flow: {name:?}"
        );
    }
    let flows: Vec<_> = Drilled::ALL
        .into_iter()
        .filter(|flow| flow.is_wanted(&only))
        .collect();
    let world = World::for_flows().await.unwrap();
    let world = &world;
    // If each flow has a single Shoot, all flows run concurrently; if each task has a Shoot, the flows run in
    // sequence.
    let at_a_time = if faults.is_empty() { flows.len().max(1) } else { 1 };
    let drilled = stream::iter(flows.into_iter().map(|drilled| async move {
        let begin = tokio::time::Instant::now();
        let scenario = || ShootScenario::new(world, drilled);
        let done = if faults.is_empty() {
            let alone = |failure| drill::Failures(vec![failure]);
            let done = if drilled.is_of_zones() {
                Box::pin(of_zones(world, drilled)).await
            } else {
                Box::pin(drill::in_one_world(scenario)).await
            };
            done.map_err(alone)
        } else {
            Box::pin(drill::spread(width, faults, scenario)).await
        };
        let failures = match done {
            Ok(done) => {
                let (cases, tasks) = (done.cases, done.tasks.len());
                let seconds = begin.elapsed().as_secs();
                println!("{drilled:?}: {cases} cases at {tasks} tasks passed in {seconds} s");
                return None;
            }
            Err(failures) => failures,
        };
        println!("{drilled:?}: {failures}");
        Some(format!("{drilled:?}: {failures}"))
    }));
    let drilled = drilled
        .buffer_unordered(at_a_time)
        .filter_map(std::future::ready)
        .collect::<Vec<_>>();
    let handed_over = async {
        if !only.is_empty() && !only.contains("HandOver") {
            return None;
        }
        let begin = tokio::time::Instant::now();
        let why = Box::pin(hand_over::check(world)).await.err();
        if why.is_none() {
            println!("HandOver: passed in {} s", begin.elapsed().as_secs());
        }
        why.map(|why| format!("HandOver: {why:#}"))
    };
    let (mut failed, handed_over, crashed) =
        futures::join!(drilled, Box::pin(handed_over), Box::pin(crashed(world, &only)));
    failed.extend(handed_over.into_iter().chain(crashed));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Isolated zones that are taken back (RZ-10..14, RZ-20..22, RZ-30..35): the flow fails after each task, and
/// the gardenlet ends after each task. A shoot that moves is run twice. In the first run the user takes the
/// zone back on the way, in the second run the zone stays isolated. In both runs the move carries the zone
/// unchanged, and the next reconciliation executes the request.
async fn of_zones(world: &World, drilled: Drilled) -> Result<Summary, DrillError> {
    let fails = drill::in_one_world(|| ShootScenario::asking_no_more(world, drilled));
    let ends = drill::end_after_each(|| ShootScenario::new(world, drilled));
    let (failed, ended) = futures::try_join!(Box::pin(fails), Box::pin(ends))?;
    Ok(Summary {
        cases: failed.cases + ended.cases,
        tasks: failed.tasks,
    })
}

/// The destination ends after each task, with all work under way, and takes the shoot over regardless.
/// Returns the failure; `None` if `only` does not name the case.
async fn crashed(world: &World, only: &str) -> Option<String> {
    if !only.contains("Crash") {
        return None;
    }
    let begin = tokio::time::Instant::now();
    let takeover = || ShootScenario::new(world, Drilled::TakeOver);
    match Box::pin(drill::end_after_each(takeover)).await {
        Ok(done) => {
            let seconds = begin.elapsed().as_secs();
            println!(
                "Crash: {} ends after {} tasks passed in {seconds} s",
                done.cases,
                done.tasks.len()
            );
            None
        }
        Err(why) => Some(format!("Crash: {why}")),
    }
}

/// Stack of a thread, as in the processes that are under test here (see `runtime::process::Process`), and as
/// much again for the test.
const STACK: usize = 16 * 1024 * 1024;

#[ignore = "five minutes of two processors; make e2e-all plays them"]
#[test]
fn journeys_are_edited_called_off_and_deleted_on_their_way_while_processes_die() {
    by_lot("Journeys", |lot| async move {
        let world = Arc::new(World::for_journeys().await?);
        journeys::check(&world, lot).await
    });
}

#[ignore = "minutes of two processors; make e2e-all plays it"]
#[test]
fn a_shoot_on_aws_moves_while_a_zone_of_it_is_cut_off() {
    by_lot("A shoot on AWS", on_aws::check);
}

#[test]
fn a_collector_receives_one_trace_of_a_move_over_both_seeds() {
    with_large_stacks(async {
        Box::pin(move_trace::check()).await.unwrap();
    });
}

#[ignore = "a measurement of some minutes"]
#[test]
fn many_moves_at_once() {
    let count = testkit::size("REPOT_MOVES", 10).unwrap();
    let begin = testkit::size("REPOT_MOVES_AT_A_TIME", 2).unwrap();
    with_large_stacks(async move {
        let world = Arc::new(World::for_journeys().await.unwrap());
        journeys::together::measure(&world, count, begin).await.unwrap();
    });
}

/// Runs a case with random moments: the moments of a former run, or new moments.
fn by_lot<F>(what: &'static str, play: impl FnOnce(u64) -> F)
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let former = std::env::var("REPOT_SEED").ok();
    let former = former.and_then(|text| text.parse().ok());
    let lot = former.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("{what}: REPOT_SEED={lot}");
    let played = play(lot);
    with_large_stacks(async move {
        let begin = tokio::time::Instant::now();
        if let Err(why) = played.await {
            panic!("{what} with REPOT_SEED={lot}: {why:#}");
        }
        println!("{what}: passed in {} s", begin.elapsed().as_secs());
    });
}

fn with_large_stacks(work: impl Future<Output = ()> + Send + 'static) {
    on_large_stacks(|| work);
}

fn on_large_stacks<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) {
    let run = move || {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let threads = threads.enable_all().thread_stack_size(STACK).build().unwrap();
        threads.block_on(work());
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}
