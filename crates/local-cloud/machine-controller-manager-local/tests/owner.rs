//! Machines are created for the owner of the shoot alone (R17-43, R17-60..62): a real manager, API server,
//! and name server. The test sets the answers of the process beside etcd.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

#[path = "world/manager.rs"]
mod managers;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{Target, crds_of, machine::Machine};
use kube::{Api, api::ListParams};
use managers::{manager, pool, shoot};
use testkit::{ControlPlane, OwnerRecord, PlayedKubelet, Server, eventually};
use world::{CLUSTER, account};

const OVER: Duration = OwnerRecord::OUTLASTS_AN_ANSWER;
/// Longer than a manager needs to begin anew on a busy machine.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

struct World {
    plane: ControlPlane,
    record: OwnerRecord,
    machines: Api<Machine>,
    folder: tempfile::TempDir,
    _pods: PlayedKubelet,
}

impl World {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start("owner").await?;
        let client = plane.admin();
        testkit::apply_crds(&client, &crds_of(Target::Seed)).await?;
        let credentials = account(&plane).await?;
        shoot(&plane, &credentials).await?;
        Ok(Self {
            machines: Api::namespaced(client.clone(), CLUSTER),
            record: OwnerRecord::start().await?,
            folder: tempfile::tempdir()?,
            _pods: PlayedKubelet::start(&client),
            plane,
        })
    }

    /// Requests this number of machines, and waits until all machines have an instance.
    async fn made(&self, by: &mut Server, count: usize) -> Result<()> {
        pool(&self.plane.admin(), count).await?;
        let made = eventually("machines are made", BEGINS_WITHIN, || async {
            let all = self.machines.list(&ListParams::default()).await;
            let all = all.map_err(|error| error.to_string())?;
            let has_one = |machine: &&Machine| machine.spec.provider_id.is_some();
            let made = all.iter().filter(has_one).count();
            (made == count)
                .then_some(())
                .ok_or_else(|| format!("{made} of {count}"))
        });
        let made = made.await;
        by.check_alive()?;
        made.with_context(|| by.log_tail())
    }

    /// Requests this number of machines, and checks that no manager creates a machine.
    async fn nobody_makes(&self, wanted: usize) -> Result<()> {
        let before = self.machines.list(&ListParams::default()).await?.items.len();
        pool(&self.plane.admin(), wanted).await?;
        // The absence of a change can only be observed after a wait.
        tokio::time::sleep(OVER).await;
        let after = self.machines.list(&ListParams::default()).await?.items.len();
        ensure!(
            after == before,
            "{after} machines are there, and {before} were before"
        );
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_made_for_who_has_the_shoot() -> Result<()> {
    let mut world = World::start().await?;
    let mut of_epoch_3 = manager(&world.plane, world.folder.path(), world.record.flags("seed-a", 3))?;
    // The owner record is not written yet.
    world.nobody_makes(1).await?;
    world.record.says("seed-a", 3).await?;
    world.made(&mut of_epoch_3, 1).await?;

    // Both witnesses are silent: the manager does not act until a witness names the owner again (R17-47,
    // R17-48).
    world.record.falls_silent();
    tokio::time::sleep(OVER).await;
    world.nobody_makes(2).await?;
    world.record.says_again("seed-a", 3).await?;
    world.made(&mut of_epoch_3, 2).await?;

    // Another seed owns the shoot (R17-49): the manager never acts again in this epoch, even after a later
    // answer.
    world.record.says("seed-b", 4).await?;
    tokio::time::sleep(OVER).await;
    world.nobody_makes(3).await?;
    world.record.says("seed-a", 3).await?;
    world.nobody_makes(4).await?;

    // The shoot comes back in a new epoch, for a new process.
    world.record.says("seed-a", 5).await?;
    drop(of_epoch_3);
    let mut of_epoch_5 = manager(&world.plane, world.folder.path(), world.record.flags("seed-a", 5))?;
    world.made(&mut of_epoch_5, 4).await
}
