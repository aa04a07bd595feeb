//! The local cloud, for writers and for readers. The account is a namespace of some Kubernetes cluster, with
//! a ConfigMap for each resource or list of resources. In addition, there is a DNS server that accepts signed
//! updates.
//!
//! The ConfigMaps:
//! - `<cluster>`: the network of a cluster, with the keys `id` and `nodesCIDR`, see [`Network`]. Writer:
//!   [`Networks`].
//! - `networks`: id and range of the network by `<cluster>`. Writer: [`Networks`], before the network is
//!   created.
//! - `instances.<cluster>`: JSON by the instance's name, equal to the Node's name, see [`Instance`].
//!   [`Networks`] creates the list empty together with the network; afterwards [`Compute`] writes.
//! - `load-balancers`: JSON by `<cluster>.<uid of the Service>`, see [`LoadBalancer`]. Writers:
//!   [`LoadBalancers`] of all clusters.
//! - `isolation.<cluster>`: the closed zone, with several keys, see [`isolation`]. Writers: [`Isolation`],
//!   and each host for the host's own key.
//! - `hosts`: the time of registration by the host's name. Writers: agents of hosts, each for the host's own
//!   key.
//!
//! `<cluster>` is the shoot's technical id. Names of nodes are unique only within a shoot, hence a list of
//! instances per cluster. Addresses are unique within an account, hence a single ledger of networks and a
//! single ledger of load balancers for all clusters.
//!
//! Each writer of the list of instances changes only the key of the writer's own instance, so writers never
//! conflict. In a ledger, a choice depends on earlier choices, so a write needs the resourceVersion that was
//! read.
//!
//! **A missing list is not an empty list.** A wrong namespace, an account without rights, an unreachable API
//! server and an invalid entry are errors. No conclusion follows from an error (I4).
//!
//! An instance is a Pod with a Secret, see [`Compute`]. A Service carries packets from a load balancer's
//! address to instances, see [`Traffic`].
//!
//! Requests leave the process in two places: the client that [`Cloud::open`] creates, and the exchange of
//! `dns::Server`.

mod account;
mod cloud;
mod compute;
pub mod dns;
mod instances;
pub mod isolation;
mod ledger;
mod load_balancers;
mod networks;
mod pod;
mod provider_id;
mod provider_spec;
pub mod range;
mod traffic;
pub mod zones;

pub use account::{Account, Source};
pub use cloud::{Cloud, Wrap, instances};
pub use compute::Compute;
pub use instances::{Address, Instance, Instances, Inventory, State};
pub use isolation::{Closed, Host, Isolation};
pub use load_balancers::{LEDGER, LoadBalancer, LoadBalancers};
pub use networks::{Network, Networks, Request};
pub use pod::Launch;
pub use provider_id::ProviderId;
pub use provider_spec::ProviderSpec;
pub use traffic::{Port, Traffic};
