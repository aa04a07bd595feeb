//! Kills processes of the suite at random moments, on all seeds.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::{
    landscape::Landscape,
    lifecycle::{kill, kill_gardenlets},
    proof,
    shoot::UserShoot,
};

/// Longest pause before a kill, in milliseconds. Four pauses last about as long as a move without kills.
const PAUSE_AT_MOST: u64 = 7000;
/// Where provider-local runs.
const PROVIDER: (&str, &str) = (
    "extension-provider-local",
    "app.kubernetes.io/name=provider-local",
);
const MACHINE_CONTROLLER_MANAGER: &str = "role=machine-controller-manager";

/// Kills processes. The random choices can be repeated.
pub struct Hunter(fastrand::Rng);

impl Hunter {
    /// Uses the random seed `REPOT_SEED`, or a new random seed, and prints the value.
    ///
    /// # Errors
    /// `REPOT_SEED` is not a number.
    pub fn new() -> Result<Self> {
        let seed = match std::env::var("REPOT_SEED") {
            Ok(seed) => seed.parse().context("REPOT_SEED must be a number")?,
            Err(_) => fastrand::u64(..),
        };
        println!("kills at random moments; REPOT_SEED={seed} repeats them");
        Ok(Self(fastrand::Rng::with_seed(seed)))
    }

    /// Waits for a random time of `at_most` milliseconds.
    pub async fn lies_in_wait(&mut self, at_most: u64) {
        // A fixed sleep on purpose: the moment must be random, not tied to a condition.
        tokio::time::sleep(Duration::from_millis(self.0.u64(200..at_most))).await;
    }

    /// Kills so many times, each after a pause: the gardenlets, the providers, or the managers of the shoot's
    /// machines.
    ///
    /// # Errors
    /// The processes could not be killed, or gardenlets do not come back.
    pub async fn kills(&mut self, times: usize, landscape: &Landscape, shoot: &UserShoot) -> Result<()> {
        let id = proof::technical_id(shoot).await?;
        for _ in 0..times {
            self.lies_in_wait(PAUSE_AT_MOST).await;
            let status = shoot.get().await?.status.unwrap_or_default();
            let last = status.last_operation.context("the Shoot has no last operation")?;
            let victims = ["gardenlet", "provider-local", "machine-controller-manager"];
            let victim = victims[self.0.usize(..victims.len())];
            println!(
                "killing {victim}: {} {}%: {}",
                last.type_, last.progress, last.description
            );
            let (namespace, labels) = match victim {
                "gardenlet" => {
                    kill_gardenlets(landscape).await?;
                    continue;
                }
                "provider-local" => PROVIDER,
                _ => (id.as_str(), MACHINE_CONTROLLER_MANAGER),
            };
            for client in landscape.seeds.values() {
                kill(client, namespace, labels).await?;
            }
        }
        Ok(())
    }
}
