//! The local cloud, as those see it who make things in it and those who only look: a namespace of some
//! Kubernetes cluster that is the account, with a ConfigMap for each thing or list of things, and a DNS
//! server that takes signed updates.
//!
//! | ConfigMap | key | value | who writes |
//! |---|---|---|---|
//! | `<cluster>` | `id`, `nodesCIDR` | the network, see [`Network`] | [`Networks`] |
//! | `networks` | `<cluster>` | id and range of its network | [`Networks`], before the network is made |
//! | `instances.<cluster>` | name of the instance, which is the Node's | JSON, see [`Instance`] | made empty with the network, by [`Networks`]; then [`Compute`] |
//! | `load-balancers` | `<cluster>.<uid of the Service>` | JSON, see [`LoadBalancer`] | [`LoadBalancers`], of all clusters |
//! | `isolation.<cluster>` | several | the zone that is closed, see [`isolation`] | [`Isolation`], and each host its own key |
//! | `hosts` | name of the host | since when it is there | agents of hosts, each its own key |
//!
//! `<cluster>` is the shoot's technical id. Names of nodes are unique in a shoot only, hence one list of
//! instances a cluster. Addresses are unique in an account, hence one ledger of networks and one of load
//! balancers for all clusters.
//!
//! Of the instances each writer changes only the key of its own instance, so writers need not know of each
//! other. In a ledger a choice depends on what others chose, so it is written only in the version that was
//! read.
//!
//! **A list that is missing is not an empty list.** A namespace that is not the right one, an account without
//! rights and an API server that is away all give errors, and so does an entry that cannot be read: nothing
//! is concluded from them (I4).
//!
//! An instance itself is a Pod with a Secret, see [`Compute`], and what carries packets from a load
//! balancer's address to instances is a Service, see [`Traffic`].
//!
//! What leaves the process leaves it in two places: the client that [`Cloud::open`] makes, and
//! `dns::Server`'s one exchange.

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
