//! The contract, proven for actuators that keep the contract, and failed for each kind of violation. Two
//! seeds with real API servers for all cases.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod example;
mod hanging;
mod isolated;
mod kinds;
mod machines;
#[path = "../played/machines.rs"]
mod played_machines;
mod pods_first;
mod reports;
mod restored;
#[path = "../played/shoot_objects.rs"]
mod shoot_objects;
mod told;
mod toy;
mod world;
mod wrong;
mod zones;

use anyhow::Result;
use testkit::PlayedKubelet;
use world::Seeds;

/// Stack size of a thread in bytes: all cases are a single future, and a build without optimisation needs
/// more than the default 2 MiB.
const STACK: usize = 32 * 1024 * 1024;

/// R7-04, R7-30, R7-31, R7-34: state is kept and found again in the destination seed, and no actuator acts in
/// the seed that released the shoot.
#[test]
fn who_keeps_the_contract_passes_and_who_does_not_fails_with_a_sentence() -> Result<()> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let threads = threads
        .worker_threads(2)
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    let work = move || threads.block_on(Box::pin(all_cases()));
    let done = std::thread::Builder::new().stack_size(STACK).spawn(work)?;
    done.join().map_err(|_| anyhow::anyhow!("a case panicked"))?
}

async fn all_cases() -> Result<()> {
    let seeds = Seeds::start().await?;
    // Seeds without nodes have no kubelet that reports on pods.
    let _pods = [&seeds.a, &seeds.b].map(PlayedKubelet::start);
    let outcomes = tokio::join!(
        named("the right toy", toy::keeps_it(&seeds)),
        named("wrong toys", wrong::each_fails(&seeds)),
        named("the example", example::keeps_it(&seeds)),
        named("machines", machines::keep_it(&seeds)),
        named("kinds", kinds::each_runs_through_the_protocol(&seeds)),
        named("reports", reports::tell_what_is_wrong(&seeds)),
        named("isolated", isolated::zones_are_left_and_filled_again(&seeds)),
        named("left", async {
            let (hanging, pods_first) = tokio::join!(
                hanging::zones_are_left_in_their_budget(&seeds),
                pods_first::pods_leave_before_capacity_is_awaited(&seeds),
            );
            hanging.map_err(|error| error.context("hanging"))?;
            pods_first.map_err(|error| error.context("pods first"))
        }),
        named("restored", restored::are_all_there_before_anybody_acts(&seeds)),
        named("told", told::what_keeps_machines_is_told(&seeds)),
        named("zones", zones::are_closed_by_the_contract(&seeds)),
        named("zones and machines", zones::wait_for_their_machines(&seeds)),
    );
    let outcomes: [Result<(), String>; 12] = outcomes.into();
    let failures: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    Ok(())
}

async fn named(name: &str, work: impl Future<Output = Result<()>>) -> Result<(), String> {
    let begin = std::time::Instant::now();
    let done = work.await.map_err(|error| format!("{name}: {error:#}"));
    println!("{name}: {:?}", begin.elapsed());
    done
}
