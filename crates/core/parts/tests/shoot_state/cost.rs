//! `make bench`: time and memory for the collection, the reading and the restore of a large state on a
//! different seed.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use api::{
    Target,
    constants::operation::RESTORE,
    crds_of, extensions,
    gardencore::{LifecycleStrategy::AfterKubeAPIServer, Shoot},
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use parts::{Facts, FurtherExtensions, Namespace, Operation, Settings, ShootState};
use parts_fixture::{NAMESPACE, PROJECT, World};
use runtime::client::{Garden, Permit, Seed};
use serde_json::json;
use testkit::ControlPlane;

use super::{LARGE, MIB, OBJECTS, content, grow, shoot, state};

#[ignore = "a measurement"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_large_state_costs() -> Result<()> {
    let objects = u32::try_from(testkit::size("REPOT_STATE_OBJECTS", OBJECTS as usize)?)?;
    let world = Box::pin(shoot("shoot-state-cost")).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    let all = stream::iter(0..objects).map(|number| grow(&world, number, LARGE, 1));
    all.buffer_unordered(4).try_collect::<Vec<()>>().await?;
    let collected = Box::pin(measure_work(ShootState::persist(&facts))).await?;
    let chunks = state(&world).await?.spec.in_chunks.unwrap();
    let read = measure_work(async {
        let whole = ShootState::whole(&facts).await?.unwrap().extensions.len();
        assert!(whole >= objects as usize, "{whole}");
        Ok(())
    })
    .await?;
    let (plane, destination) = Box::pin(destination(&world, objects)).await?;
    let restoring = FurtherExtensions::deploy_in(&destination, AfterKubeAPIServer);
    let restored = Box::pin(measure_work(restoring)).await?;
    all_are_there(&plane, objects).await?;
    println!(
        "bench: | {} MiB, {objects} objects, {} chunks | {collected} | {read} | {restored} |",
        usize::try_from(chunks.size)? / MIB,
        chunks.chunks.len(),
    );
    Ok(())
}

/// Time and memory as cells of a table.
async fn measure_work(work: impl Future<Output = runtime::Result<()>>) -> Result<String> {
    let before = testkit::Peak::begin()?;
    let began = Instant::now();
    work.await?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(format!("{seconds:.1} s | {}", before.mib()?))
}

/// A different seed with a separate API server, and the shoot's facts there. All Extensions of the shoot have
/// to be restored.
async fn destination(world: &World, objects: u32) -> Result<(ControlPlane, Facts)> {
    let plane = ControlPlane::start("shoot-state-cost-destination").await?;
    testkit::apply_crds(&plane.admin(), &crds_of(Target::Seed)).await?;
    let named: Vec<_> = (0..objects).map(|number| json!({"type": name(number)})).collect();
    let shoots: Api<Shoot> = Api::namespaced(world.client(), PROJECT);
    let names_them = Patch::Merge(json!({"spec": {"extensions": named}}));
    let shoot = shoots.patch("web", &PatchParams::default(), &names_them).await?;
    let permit = Permit::sole("a test");
    let (garden, seed) = (
        Garden::new(world.client(), &permit),
        Seed::new(plane.admin(), &permit),
    );
    let (settings, operation) = (Arc::new(Settings::default()), Operation::Restore);
    let facts = Facts::new(garden, seed, settings, "seed-a", Arc::new(shoot), operation).await?;
    Namespace::deploy(&facts).await?;
    Ok((plane, facts))
}

/// Each Extension has the right state, and a request to restore.
async fn all_are_there(plane: &ControlPlane, objects: u32) -> Result<()> {
    let api: Api<extensions::Extension> = Api::namespaced(plane.admin(), NAMESPACE);
    for number in 0..objects {
        let found = api.get(&name(number)).await?;
        assert_eq!(found.annotations()["gardener.cloud/operation"], RESTORE);
        let state = found.status.and_then(|status| status.state).unwrap();
        assert!(state.0 == content(number, LARGE, 1), "{}", name(number));
    }
    Ok(())
}

fn name(number: u32) -> String {
    format!("e{number:03}")
}
