//! The duration of a single move, and of each of many concurrent moves. The duration counts from the begin of
//! each move, because a setting bounds the moves to a seed (`--concurrent-migrations`).
//!
//! `make bench` runs the measurement. Kubelets are simulated, so no pod is started. The figures cover the
//! processes of this project, the API servers, the object store and the name server, all on one machine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::gardencore::Shoot;
use api::meta::{LastOperationState as State, LastOperationType as Type};
use futures::future::try_join_all;
use tokio::time::Instant;

use super::journey::{Journey, Stage};
use super::mortals::Mortals;
use super::rules::{host, last};
use super::witness::Witness;
use crate::rights;
use crate::world::World;

const A: &str = "seed-a";
const B: &str = "seed-b";

/// A single move, then `count` concurrent moves with `at_a_time` of them under way, and a single move again.
/// The two single moves show the further load of the machine.
pub async fn measure(world: &Arc<World>, count: usize, at_a_time: usize) -> Result<()> {
    let bound = [format!("--concurrent-migrations={at_a_time}")];
    let stage = Stage {
        world,
        mortals: Mortals::start(world, rights::manager(&world.garden).await?, &bound)?,
        witness: Witness::watch(world),
    };
    stage.is_set().await?;
    let journeys: Vec<_> = (0..count + 2).map(|_| Journey::new(&stage)).collect();
    try_join_all(journeys.iter().map(Journey::begin)).await?;
    let [first, last, many @ ..] = journeys.as_slice() else {
        return Ok(());
    };
    let before = first.moves().await?;
    let begun = Instant::now();
    let mut each = try_join_all(many.iter().map(Journey::moves)).await?;
    let all = begun.elapsed();
    let after = last.moves().await?;
    each.sort_unstable();
    let (median, longest) = (each[each.len() / 2], each[each.len() - 1]);
    let alone = (before + after) / 2;
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let ratio = |time: Duration| format!("{:.1}", time.as_secs_f64() / alone.as_secs_f64());
    println!(
        "bench: | {count} moves wanted at once, {at_a_time} on their way at a time | {}, {} | {} | {} | {} | {} | {} |",
        seconds(before),
        seconds(after),
        seconds(median),
        seconds(longest),
        seconds(all),
        ratio(median),
        ratio(longest)
    );
    let broken = stage.witness.broken();
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

impl Journey<'_> {
    /// Moves from the first seed to the second, and returns the duration from the begin of the move.
    async fn moves(&self) -> Result<Duration> {
        self.send_to(B).await?;
        let leaves = |shoot: &Shoot| host(shoot) != A || matches!(last(shoot), Some((Type::Migrate, ..)));
        self.until("it begins to leave", leaves).await?;
        let begun = Instant::now();
        let restored = |shoot: &Shoot| {
            let operation = last(shoot).map(|(type_, state, _)| (type_, state));
            host(shoot) == B
                && matches!(
                    operation,
                    Some((Type::Restore | Type::Reconcile, State::Succeeded))
                )
        };
        self.until("it is restored", restored).await?;
        Ok(begun.elapsed())
    }
}
