//! Fail at every task, run every task twice: the shoot flows on real API servers.
//!
//! One garden and two seeds run as processes, with the real controllers of the gardenlet (backups), etcd-druid and
//! provider-local, a real DNS server and a real object store. Not real is what would run in pods: a pod only gets the
//! status that a kubelet would report, and two answers that pods would give are given by [`pods`].
//!
//! Every case has a Shoot of its own, so cases run side by side. In each, one task fails after its work, the flow
//! is run again, and the task is run twice. `REPOT_DRILL_FAULTS=all` makes a case of each fault by itself, also fails before each task and
//! drops each flow while a task runs; `REPOT_DRILL_FLOWS=Migrate,Restore` runs only these flows (and `HandOver`);
//! `REPOT_DRILL_WIDTH` says how many cases run at a time.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod evidence;
mod garden;
mod hand_over;
mod pods;
mod refusal;
mod scenario;
mod seed;
mod world;

use flow::drill::{self, Fault};

use scenario::{Drilled, ShootScenario};
use world::World;

/// Cases at a time. A case mostly waits (for the namespace controller, five seconds at least); more than this only makes
/// single cases slower on two cores.
const WIDTH: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn every_task_of_every_flow_may_fail_and_may_run_twice() {
    let faults: &[Fault] = match std::env::var("REPOT_DRILL_FAULTS").as_deref() {
        Ok("all") => &Fault::ALL,
        _ => &[Fault::FailThenTwice],
    };
    let width = std::env::var("REPOT_DRILL_WIDTH")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(WIDTH);
    let only = std::env::var("REPOT_DRILL_FLOWS").unwrap_or_default();
    let mut flows = vec![
        Drilled::Create,
        Drilled::Migrate,
        Drilled::Restore,
        Drilled::Delete,
        Drilled::ForceDelete,
    ];
    flows.retain(|flow| only.is_empty() || only.split(',').any(|name| name == format!("{flow:?}")));
    let world = World::start().await.unwrap();
    let mut failed = Vec::new();
    for drilled in flows {
        let begin = tokio::time::Instant::now();
        match drill::spread(width, faults, || ShootScenario::new(&world, drilled)).await {
            Ok(done) => println!(
                "{drilled:?}: {} cases at {} tasks passed in {} s",
                done.cases,
                done.tasks.len(),
                begin.elapsed().as_secs()
            ),
            Err(failures) => {
                println!("{drilled:?}: {failures}");
                failed.push(format!("{drilled:?}: {failures}"));
            }
        }
    }
    if only.is_empty() || only.contains("HandOver") {
        let begin = tokio::time::Instant::now();
        match Box::pin(hand_over::check(&world)).await {
            Ok(()) => println!("HandOver: passed in {} s", begin.elapsed().as_secs()),
            Err(why) => failed.push(format!("HandOver: {why:#}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
