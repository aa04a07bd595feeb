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

use world::World;

// In sequence: the Nodes, the list of instances and the ledger are of a single shoot.
testkit::scenarios! {
    mod controllers for World = World::start(), after each World::clean;
    in_sequence:
    cloud_node::{new_nodes_are_described, addresses_are_followed},
    cloud_node_lifecycle::{
        an_unusable_cloud_removes_no_node,
        only_nodes_whose_instance_is_gone_are_removed,
        stopped_instances_are_marked,
    },
    service::{services_have_addresses, an_unusable_cloud_keeps_services, clusters_share_the_ledger},
    node_ipam::{
        many_nodes_get_ranges_of_their_own,
        a_used_up_range_is_told,
        one_run_after_the_other_assigns_once,
    };
}
