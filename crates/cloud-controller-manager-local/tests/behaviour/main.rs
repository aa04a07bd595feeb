//! Each controller on a real API server, with a real account in the cloud.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::large_futures
)]

mod cloud_node;
mod cloud_node_lifecycle;
mod node_ipam;
mod service;
#[path = "../world/mod.rs"]
mod world;

use std::future::Future;

use anyhow::Result;
use world::World;

/// A single test environment for all scenarios, in sequence: the start takes most of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_keep_the_shoot_and_the_cloud_together() -> Result<()> {
    let world = &World::start().await?;
    let outcomes = [
        run_scenario(
            world,
            "new nodes are described",
            cloud_node::new_nodes_are_described(world),
        )
        .await,
        run_scenario(
            world,
            "addresses are followed",
            cloud_node::addresses_are_followed(world),
        )
        .await,
        run_scenario(
            world,
            "an unusable cloud removes no node",
            cloud_node_lifecycle::an_unusable_cloud_removes_no_node(world),
        )
        .await,
        run_scenario(
            world,
            "only nodes whose instance is gone are removed",
            cloud_node_lifecycle::only_nodes_whose_instance_is_gone_are_removed(world),
        )
        .await,
        run_scenario(
            world,
            "stopped instances are marked",
            cloud_node_lifecycle::stopped_instances_are_marked(world),
        )
        .await,
        run_scenario(
            world,
            "services have addresses",
            service::services_have_addresses(world),
        )
        .await,
        run_scenario(
            world,
            "an unusable cloud keeps services",
            service::an_unusable_cloud_keeps_services(world),
        )
        .await,
        run_scenario(
            world,
            "clusters share the ledger",
            service::clusters_share_the_ledger(world),
        )
        .await,
        run_scenario(
            world,
            "many nodes",
            node_ipam::many_nodes_get_ranges_of_their_own(world),
        )
        .await,
        run_scenario(
            world,
            "a used up range",
            node_ipam::a_used_up_range_is_told(world),
        )
        .await,
        run_scenario(
            world,
            "one run after the other",
            node_ipam::one_run_after_the_other_assigns_once(world),
        )
        .await,
    ];
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    Ok(())
}

async fn run_scenario(
    world: &World,
    what: &str,
    scenario: impl Future<Output = Result<()>>,
) -> Result<(), String> {
    let begun = tokio::time::Instant::now();
    let mut outcome = scenario.await.map_err(|e| format!("{what}: {e:#}"));
    println!(
        "{what}: {} after {:?}",
        if outcome.is_ok() { "ok" } else { "FAILED" },
        begun.elapsed()
    );
    // The next scenario begins in a clean test environment, regardless of the result of this scenario.
    let cleaned = async {
        world.good_credentials()?;
        world.no_list().await?;
        world.no_nodes().await
    };
    if let Err(error) = cleaned.await {
        outcome = outcome.and(Err(format!("{what}: cleaning up: {error:#}")));
    }
    outcome
}
