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

use std::ops::Deref;

use anyhow::Result;
use api::crds::{Target, crds_of};
use kube::{Client, Config, config::KubeConfigOptions};
use runtime::client::{Connection, Permit};
use testkit::{ControlPlane, apply_crds};

/// The API server of all scenarios. Each scenario has a separate namespace and cloud.
struct Machines {
    client: Client,
    _plane: ControlPlane,
}

impl Machines {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start("machines").await?;
        if std::env::var_os("RUST_LOG").is_some() {
            let _ = runtime::process::Process::new("test"); // logs of the controllers
        }
        let mut crds = crds_of(Target::Seed);
        crds.retain(|crd| crd.spec.group == "machine.sapcloud.io" || crd.spec.names.kind == "Worker");
        apply_crds(&plane.admin(), &crds).await?;
        Ok(Self {
            client: connect(&plane).await?,
            _plane: plane,
        })
    }
}

impl Deref for Machines {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

// At the same time, because most scenarios wait most of the time.
testkit::scenarios! {
    mod machines for Machines = Machines::start();
    at_once:
    life::{machines_come_and_go, restored_machines_are_the_same_machines},
    rolling::{bounds_hold_with_a_surge, bounds_hold_without_a_surge},
    leaving::{
        pods_leave_first_and_budgets_are_honoured,
        a_budget_that_never_lets_go_is_told_and_waited_for_only_so_long,
        no_budget_holds_where_no_machine_is_wanted,
        a_webhook_without_backend_holds_no_machine_for_ever,
    },
    judged::{
        one_that_never_joins_is_told_and_replaced,
        many_unhealthy_ones_are_replaced_one_after_the_other,
        nothing_is_judged_while_the_api_does_not_answer,
    },
    refused::{what_is_in_the_way_is_told, a_right_that_is_lost_stops_all_calls},
    outgoing::{
        all_outgoing_nodes_are_marked_before_the_first_is_drained,
        a_refused_release_is_repeated_and_stops_no_other_work,
    },
    isolated::{
        an_isolated_zone_gets_no_new_machine,
        a_silent_api_keeps_no_instance_in_an_isolated_zone,
        a_refused_drain_keeps_no_instance_in_an_isolated_zone,
    },
    orphans::{
        nodes_and_instances_without_a_machine_are_reported_on_the_worker,
        orphans_are_collected_only_when_it_is_sure_that_they_are,
    },
    volumes::{an_instance_waits_for_its_volumes_and_not_for_ever},
    off::{a_node_is_out_of_service_only_while_its_instance_is_off},
    launch::{an_ended_launch_is_reported_long_before_the_creation_timeout},
    requested::{
        an_annotation_of_the_node_deletes_its_machine,
        the_node_of_a_machine_that_never_knew_its_instance_goes_too,
    };
}

/// Connects as a process does. The usual client of kube repeats a refused eviction (429) for minutes.
async fn connect(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = plane.kubeconfig("test", &["system:masters"])?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Connection::new(config)?.client(&Permit::sole("a test")))
}
