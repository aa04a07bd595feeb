//! The controllers on a real API server, with a cloud that is kept in memory.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::large_futures
)]

mod cloud;
mod isolated;
mod judged;
mod launch;
mod leaving;
mod life;
mod off;
mod orphans;
mod outgoing;
mod refused;
mod requested;
mod rolling;
mod volumes;
mod world;

use std::future::Future;

use anyhow::{Result, ensure};
use api::crds::{Target, crds_of};
use futures::{FutureExt as _, future::join_all};
use kube::{Client, Config, config::KubeConfigOptions};
use runtime::{Connection, Permit};
use testkit::{ControlPlane, apply_crds};

/// Runs the scenarios concurrently, each in a separate namespace, because most scenarios wait most of the
/// time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_what_their_deployments_say_and_nothing_is_lost() -> Result<()> {
    let plane = ControlPlane::start("machines").await?;
    if std::env::var_os("RUST_LOG").is_some() {
        let _ = runtime::Process::new("test"); // logs of the controllers
    }
    let mut crds = crds_of(Target::Seed);
    crds.retain(|crd| crd.spec.group == "machine.sapcloud.io" || crd.spec.names.kind == "Worker");
    apply_crds(&plane.admin(), &crds).await?;
    let client = &connect(&plane).await?;
    let scenarios = vec![
        run_scenario("come and go", life::machines_come_and_go(client)).boxed_local(),
        run_scenario("restored", life::restored_machines_are_the_same_machines(client)).boxed_local(),
        run_scenario("surge", rolling::bounds_hold_with_a_surge(client)).boxed_local(),
        run_scenario("no surge", rolling::bounds_hold_without_a_surge(client)).boxed_local(),
        run_scenario("drain", async {
            leaving::pods_leave_first_and_budgets_are_honoured(client).await?;
            leaving::no_budget_holds_where_no_machine_is_wanted(client).await
        })
        .boxed_local(),
        run_scenario("stuck", async {
            leaving::a_budget_that_never_lets_go_is_told_and_waited_for_only_so_long(client).await?;
            leaving::a_webhook_without_backend_holds_no_machine_for_ever(client).await
        })
        .boxed_local(),
        run_scenario("never joins", async {
            judged::one_that_never_joins_is_told_and_replaced(client).await?;
            launch::an_ended_launch_is_reported_long_before_the_creation_timeout(client).await
        })
        .boxed_local(),
        run_scenario(
            "many ill",
            judged::many_unhealthy_ones_are_replaced_one_after_the_other(client),
        )
        .boxed_local(),
        run_scenario(
            "frozen",
            judged::nothing_is_judged_while_the_api_does_not_answer(client),
        )
        .boxed_local(),
        run_scenario("refused", refused::what_is_in_the_way_is_told(client)).boxed_local(),
        run_scenario(
            "lost right",
            refused::a_right_that_is_lost_stops_all_calls(client),
        )
        .boxed_local(),
        run_scenario("outgoing", async {
            outgoing::all_outgoing_nodes_are_marked_before_the_first_is_drained(client).await?;
            outgoing::a_refused_release_is_repeated_and_stops_no_other_work(client).await
        })
        .boxed_local(),
        run_scenario("requested", async {
            requested::an_annotation_of_the_node_deletes_its_machine(client).await?;
            requested::the_node_of_a_machine_that_never_knew_its_instance_goes_too(client).await
        })
        .boxed_local(),
        run_scenario(
            "volumes",
            volumes::an_instance_waits_for_its_volumes_and_not_for_ever(client),
        )
        .boxed_local(),
        run_scenario(
            "off",
            off::a_node_is_out_of_service_only_while_its_instance_is_off(client),
        )
        .boxed_local(),
        run_scenario("isolated", async {
            isolated::an_isolated_zone_gets_no_new_machine(client).await?;
            isolated::a_silent_api_keeps_no_instance_in_an_isolated_zone(client).await
        })
        .boxed_local(),
        run_scenario("orphans", async {
            orphans::nodes_and_instances_without_a_machine_are_reported_on_the_worker(client).await?;
            orphans::orphans_are_collected_only_when_it_is_sure_that_they_are(client).await
        })
        .boxed_local(),
    ];
    let outcomes = join_all(scenarios).await;
    let failures: Vec<_> = outcomes.into_iter().flatten().collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Connects as a process does. The usual client of kube repeats a refused eviction (429) for minutes.
async fn connect(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = plane.kubeconfig("test", &["system:masters"])?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Connection::new(config)?.client(&Permit::sole("a test")))
}

/// The failure of a scenario, if the scenario failed.
async fn run_scenario(name: &str, scenario: impl Future<Output = Result<()>>) -> Option<String> {
    let begun = std::time::Instant::now();
    let outcome = scenario.await;
    eprintln!(
        "{name}: {} after {:.1?}",
        if outcome.is_ok() { "well" } else { "WRONG" },
        begun.elapsed()
    );
    outcome.err().map(|error| format!("{name}: {error:#}"))
}
