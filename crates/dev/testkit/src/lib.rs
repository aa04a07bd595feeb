//! Development only: real processes on loopback for tests. This crate imitates no server that exists.
//!
//! - [`ControlPlane`]: etcd, kube-apiserver and kube-controller-manager; no kubelet, no scheduler.
//! - [`ObjectStore`]: an S3 server (`s3s-fs`) on a folder.
//! - [`Moto`]: EC2, simulated by the common program moto.
//! - [`OtelCollector`]: a collector of OpenTelemetry that prints each span.
//! - [`NameServer`]: an authoritative DNS server (knot) that accepts dynamic updates signed by TSIG.
//! - [`OwnerRecord`]: the owner record of a shoot, on such a server.
//! - [`Front`]: a proxy before an API server that makes each namespace a separate cluster.
//! - [`Relay`]: a proxy before an API server that records the requests of a process and can hold answers
//!   back.
//! - [`Namespace`]: a network namespace as a host with a separate network; needs root.
//! - [`PlayedKubelet`]: simulates only the kubelet's part of a pod's status, so that Deployments,
//!   StatefulSets and Jobs become ready.
//! - [`FakeGate`]: simulates only the answer of etcd-backup-restore to lists of certificates of preparations.
//!
//! [`eventually`], [`timeout`] and [`measured`] bound a wait, and report the time that the wait took.
//! [`scenarios!`] declares tests that share such servers. [`files_below`] finds pages and sources.
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
//! Promises
//! - A process ends when the value is dropped, and also when the test process dies for any reason.
//! - All servers listen only on loopback. Free ports are chosen, and data is in a temporary folder. Set
//!   `REPOT_TEST_LOGS` to a folder to keep the logs of all processes.
//! - A missing program is an error with instructions for the installation; no test is skipped.
//! - Clients belong to the async runtime of the test that created the clients. Do not share a
//!   [`ControlPlane`]'s clients between tests; create new clients with [`ControlPlane::client`].

mod chart;
mod chart_flags;
mod control_plane;
mod crds;
mod fake_gate;
mod folder;
mod front;
mod idle;
mod moto;
mod name_server;
mod namespace;
mod object;
mod object_store;
mod otel_collector;
mod owner_record;
mod pki;
mod played_kubelet;
mod ports;
mod process;
mod programs;
mod refusal;
mod relay;
mod scenarios;
mod shared_watch;
mod uncaptured;
mod wait;
mod wait_bound;

pub use chart::grant as grant_chart;
pub use chart_flags::{refused_bounds, unset_flags};
pub use control_plane::ControlPlane;
pub use crds::apply_crds;
pub use fake_gate::FakeGate;
pub use folder::files_below;
pub use front::Front;
pub use idle::{Idle, Peak, size};
pub use moto::Moto;
pub use name_server::NameServer;
pub use namespace::Namespace;
pub use object::{apply, free_lock};
pub use object_store::ObjectStore;
pub use otel_collector::{CollectedSpan, OtelCollector};
pub use owner_record::OwnerRecord;
pub use pki::{Authority, Identity};
pub use played_kubelet::{Fate, PlayedKubelet};
pub use ports::free as free_port;
pub use process::Server;
pub use programs::find as find_program;
pub use refusal::refuses_missing_migration_file;
pub use relay::{Asked, Relay};
pub use scenarios::{
    IntoOutcome, STACK, ScenarioOutcomes, ScenarioPlan, ScenarioSection, ScenarioTest, SectionOrder,
    TestResult, record_gap,
};
pub use shared_watch::controllers_synced;
pub use wait::eventually;
pub use wait_bound::{WaitBound, measured, timeout};
