//! Journeys of Shoots through dispatch, controllers and recorded status. Two whole gardenlets and
//! garden-controller-manager, each with separate rights under the policies of a garden, act on each Shoot in
//! all roles. Users edit, cancel and delete midway, and all three processes are killed at random moments all
//! the while (A6, B7, B11, B12).
//!
//! | module | content |
//! |---|---|
//! | `plots` | the course of a Shoot |
//! | `journey` | the actions of a user on a Shoot, and the waits |
//! | `mortals` | the processes that die on the way |
//! | `witness` | observes every version of every Shoot, and the running processes by seed |
//! | `traces` | the objects of a Shoot in a seed that could act for the Shoot |
//! | `rules` | the conditions between two consecutive versions of a Shoot |
//! | `outcome` | the conditions at the end |
//! | `together` | the duration of concurrent moves |
//!
//! `REPOT_SEED` repeats the random moments of a former run; `REPOT_PLOTS=Renewed,Misled` runs only these
//! plots.

pub mod journey;
pub mod mortals;
pub mod outcome;
mod plots;
mod rules;
pub mod together;
mod traces;
pub mod witness;

use std::sync::Arc;

use anyhow::{Result, ensure};
use api::gardencore::Shoot;
use fastrand::Rng;
use futures::future::join_all;
use kube::Api;
use kube::api::ListParams;
use testkit::eventually;

use crate::garden::PROJECT;
use crate::rights;
use crate::world::World;
use journey::{Journey, Stage};
use mortals::Mortals;
use plots::Plot;
use witness::{SEEN_WITHIN, Witness};

/// Runs all plots concurrently. `lot`: the seed of the random moments.
pub async fn check(world: &Arc<World>, lot: u64) -> Result<()> {
    let mut random = Rng::with_seed(lot);
    let stage = Stage {
        world,
        mortals: Mortals::start(world, rights::manager(&world.garden).await?, &[])?,
        witness: Witness::watch(world),
    };
    stage.is_set().await?;
    let mut deaths = random.fork();
    let only = std::env::var("REPOT_PLOTS").unwrap_or_default();
    let plots = Plot::all(&mut random);
    let plots = plots.into_iter().filter(|plot| plot.is_wanted(&only));
    let plays = plots.map(|plot| {
        let journey = Journey::new(&stage);
        async move { (plot, journey.name.clone(), Box::pin(plot.play(journey)).await) }
    });
    let plays = join_all(plays);
    let played = tokio::select! {
        played = plays => played,
        never = stage.mortals.die_now_and_then(&mut deaths) => match never {},
    };
    let mut failed: Vec<String> = Vec::new();
    for (plot, name, outcome) in played {
        if let Err(why) = outcome {
            let story = stage.witness.story(&name);
            failed.push(format!("{plot:?} with Shoot {name}: {why:#}\n{story}"));
        }
    }
    // A witness that missed a hand-over proves nothing.
    let shoots: Api<Shoot> = Api::namespaced(world.garden(), PROJECT);
    let living = shoots.list(&ListParams::default()).await?;
    let known: i64 = living.iter().map(|shoot| rules::epoch(shoot) - 1).sum();
    let seen = eventually("all hand-overs are seen", SEEN_WITHIN, || async {
        let seen = stage.witness.hand_overs();
        if i64::from(seen) < known {
            Err(format!("{seen} of {known}"))
        } else {
            Ok(seen)
        }
    });
    let seen = seen.await?;
    failed.extend(stage.witness.broken());
    let killed = stage.mortals.killed();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    ensure!(killed > 1, "hardly any process was killed on the way: {killed}");
    println!("Journeys: {killed} processes were killed, {seen} hand-overs seen");
    Ok(())
}
