//! The API server that most tests share, and what they look at.

use std::sync::OnceLock;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use lease::{Elector, Lock, Metrics, Timing};
use testkit::ControlPlane;
use tokio::sync::OnceCell;

static PLANE: OnceLock<OnceCell<ControlPlane>> = OnceLock::new();

/// Started once and used by all tests that do not stop it. Its processes end with the test process.
pub async fn plane() -> &'static ControlPlane {
    let start = || async { ControlPlane::start("election").await.unwrap() };
    PLANE.get_or_init(OnceCell::new).get_or_init(start).await
}

/// A client of an administrator; each test has its own.
pub async fn admin() -> Client {
    plane().await.client("tester", &["system:masters"]).await.unwrap()
}

/// How to reach it as an administrator of this name, for a client that is built otherwise.
pub async fn config(user: &str) -> Config {
    let kubeconfig = plane().await.kubeconfig(user, &["system:masters"]).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap()
}

/// Short, so that a test takes seconds; long enough for a machine that is busy with other tests.
pub fn short() -> Timing {
    let ms = Duration::from_millis;
    Timing::new(ms(3000), ms(2000), ms(400)).unwrap()
}

/// A candidate for the lock `name`.
pub fn elector(client: &Client, name: &str, identity: &str) -> Elector {
    let lock = Lock::new(client.clone(), "default", name, identity);
    Elector::new(lock, short(), Metrics::default())
}

/// The Lease `name`.
pub async fn spec(client: &Client, name: &str) -> LeaseSpec {
    leases(client).get(name).await.unwrap().spec.unwrap()
}

pub fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "default")
}
