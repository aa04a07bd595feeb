//! Development only: real processes on loopback for tests. Nothing here imitates a server that exists.
//!
//! | what | how |
//! |---|---|
//! | [`ControlPlane`] | etcd, kube-apiserver and kube-controller-manager; no kubelet, no scheduler |
//! | [`ObjectStore`] | an S3 server (`s3s-fs`) on a folder |
//! | [`Moto`] | EC2, played by a program that many use for that |
//! | [`NameServer`] | an authoritative DNS server (knot) that takes dynamic updates signed by TSIG |
//! | [`OwnerRecord`] | on such a server, who has a shoot |
//! | [`Front`] | stands before an API server: each of its namespaces is a cluster of its own |
//! | [`Relay`] | stands before an API server: what a process asked of it, and answers that are held back |
//! | [`Namespace`] | a network namespace: a host with a kernel's network of its own; needs root |
//! | [`PlayedKubelet`] | plays only the kubelet's part of a pod's status, so that Deployments, StatefulSets and Jobs get ready |
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testkit::{ControlPlane, PlayedKubelet, apply_crds};
//!
//! let [garden, seed_a, seed_b] = ControlPlane::start_all(["garden", "seed-a", "seed-b"]).await?;
//! # let crds = vec![];
//! apply_crds(&garden.admin(), &crds).await?;
//! let user = garden.client("gardener.cloud:system:seed:seed-a", &["gardener.cloud:system:seeds"]).await?;
//! let _pods = PlayedKubelet::start(&seed_a.admin());
//! # drop((user, seed_b)); Ok(())
//! # }
//! ```
//!
//! What this crate promises
//! - A process ends when its value is dropped, and also when the test process dies in any way.
//! - Nothing listens on anything but loopback; ports are chosen free; data lives in a temporary folder. Set
//!   `REPOT_TEST_LOGS` to a folder to keep the logs of all processes.
//! - A part that is missing is an error that says how to get it; no test is skipped.
//! - Clients belong to the async runtime of the test that made them. Do not share a [`ControlPlane`]'s
//!   clients between tests; make new ones with [`ControlPlane::client`].

mod chart;
mod control_plane;
mod crds;
mod front;
mod idle;
mod moto;
mod name_server;
mod namespace;
mod object;
mod object_store;
mod owner_record;
mod pki;
mod played_kubelet;
mod ports;
mod process;
mod programs;
mod refusal;
mod relay;
mod wait;

pub use chart::grant as grant_chart;
pub use control_plane::ControlPlane;
pub use crds::apply_crds;
pub use front::Front;
pub use idle::{Idle, Peak, size};
pub use moto::Moto;
pub use name_server::NameServer;
pub use namespace::Namespace;
pub use object::{apply, free_lock};
pub use object_store::ObjectStore;
pub use owner_record::OwnerRecord;
pub use pki::{Authority, Identity};
pub use played_kubelet::{Fate, PlayedKubelet};
pub use ports::free as free_port;
pub use process::Server;
pub use programs::find as find_program;
pub use refusal::refuses_missing_migration_file;
pub use relay::{Asked, Relay};
pub use wait::eventually;
