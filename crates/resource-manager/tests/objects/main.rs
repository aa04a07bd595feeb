//! ManagedResources on real API servers, of a seed and of a shoot. In the seed the controller has only the
//! rights of the chart.
//!
//! All shoots of these scenarios are the same API server; each shoot has a namespace there and in the seed.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod annotations;
mod away;
mod filled;
mod keeping;
mod life;
mod owner;
mod refused;
mod silent;
mod world;

use anyhow::Result;
use api::{Target, crds_of};
use clap::Parser;
use futures::FutureExt;
use resource_manager::flags::Flags;
use runtime::{Permit, Process, Seed};
use testkit::{ControlPlane, PlayedKubelet, apply_crds};
use tokio::task::JoinSet;

use world::World;

/// The account of the controller.
const ACCOUNT: &str = "system:serviceaccount:garden:resource-manager";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_managed_resources() -> Result<()> {
    let [seed, shoot] = ControlPlane::start_all(["seed", "shoot"]).await?;
    apply_crds(&seed.admin(), &crds_of(Target::Seed)).await?;
    testkit::grant_chart(&seed.admin(), "resource-manager", ACCOUNT).await?;
    let _pods = PlayedKubelet::start(&shoot.admin());
    let client = seed
        .client(ACCOUNT, &["system:serviceaccounts", "system:authenticated"])
        .await?;
    let flags = Flags::parse_from(["resource-manager"]);
    let mut process = Process::new("resource-manager");
    let manager = resource_manager::run(
        Seed::new(client, &Permit::sole("a test")),
        flags,
        process.metrics.clone(),
        process.shutdown.clone(),
    );
    process.part("managed-resource", manager);
    let stop = process.shutdown.clone();
    let mut running = JoinSet::new();
    running.spawn(process.run());

    let world = World::new(
        seed.admin(),
        shoot.admin(),
        &shoot.kubeconfig("resource-manager", &["system:masters"])?,
    )?;
    // In parallel: a scenario that waits must not block another scenario.
    tokio::try_join!(
        life::in_the_shoot(&world).boxed(),
        life::in_the_seed(&world).boxed(),
        keeping::objects_are_kept(&world).boxed(),
        keeping::objects_are_kept_half_way(&world).boxed(),
        annotations::of_objects(&world).boxed(),
        annotations::of_immutable_objects(&world).boxed(),
        annotations::of_deletion(&world).boxed(),
        annotations::of_managed_resources(&world).boxed(),
        refused::wrong_manifests(&world).boxed(),
        refused::another_s_object(&world).boxed(),
        away::a_shoot_that_is_away(&world).boxed(),
        away::a_shoot_without_a_way(&world).boxed(),
        filled::a_shoot_that_its_users_have_filled(&world).boxed(),
        owner::a_shoot_that_is_lost(&world).boxed(),
        owner::a_shoot_that_has_left(&world).boxed(),
        owner::a_shoot_of_which_nobody_says_whose_it_is(&world).boxed(),
        silent::shoots_of_which_nobody_says_whose_they_are(&world).boxed(),
    )?;
    stop.cancel();
    running.join_next().await.unwrap()??;
    Ok(())
}
