//! The API server shared by most tests, and shared checks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::client::{Body, ClientBuilder};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use lease::{Elector, Lock, Metrics, Timing};
use permit::Permit;
use testkit::{ControlPlane, eventually};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;

/// Longer than any successful step takes.
pub const LONG: Duration = Duration::from_secs(30);

/// Time between two reads or renewals: short, so that a test takes seconds.
const RETRY: Duration = Duration::from_millis(400);

static PLANE: OnceLock<OnceCell<ControlPlane>> = OnceLock::new();

/// Started once and used by all tests that do not stop the API server. The processes end with the test
/// process.
pub async fn plane() -> &'static ControlPlane {
    let start = || async { ControlPlane::start("election").await.unwrap() };
    PLANE.get_or_init(OnceCell::new).get_or_init(start).await
}

/// A client of an administrator; each test creates a separate client.
pub async fn admin() -> Client {
    plane().await.client("tester", &["system:masters"]).await.unwrap()
}

/// The configuration of an administrator of this name, for a client with a custom builder.
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
    Timing::new(ms(3000), ms(2000), RETRY).unwrap()
}

/// Reads and renewals as often as with [`short`], and a lease that survives when the machine stands still for
/// some seconds.
pub fn lasting() -> Timing {
    let ms = Duration::from_millis;
    Timing::new(ms(10_000), ms(8000), RETRY).unwrap()
}

/// A candidate for the lock `name`.
pub fn elector(client: &Client, name: &str, identity: &str) -> Elector {
    timed(client, name, identity, lasting())
}

/// The same for a lock with an existing Lease (see [`free`]), and with a lease that survives a long stall of
/// the machine.
pub fn steady(client: &Client, name: &str, identity: &str) -> Elector {
    let [lease, renew] = [60, 50].map(Duration::from_secs);
    timed(client, name, identity, Timing::new(lease, renew, RETRY).unwrap())
}

fn timed(client: &Client, name: &str, identity: &str, timing: Timing) -> Elector {
    let lock = Lock::new(client.clone(), "default", name, identity);
    Elector::new(lock, timing, Metrics::default())
}

/// Waits until a renewal counts that was sent after this moment: the second renewal, as the first may be
/// under way.
pub async fn renewed(held: &Permit) {
    for _ in 0..2 {
        let before = held.valid_until();
        let later = eventually("a renewal counts", LONG, async || {
            if held.valid_until() > before + RETRY / 2 {
                Ok(())
            } else {
                Err("none does")
            }
        });
        later.await.unwrap();
    }
}

/// A client for a candidate of a held lock, and a token that is cancelled once the candidate has seen the
/// holder. The candidate sends a second request (a watch, or a second read) only after the answer to the
/// first read.
pub fn latecomer(config: Config) -> (Client, CancellationToken) {
    let (asked, seen) = (AtomicU32::new(0), CancellationToken::new());
    let (asked, tell) = (Arc::new(asked), seen.clone());
    let noticing = MapRequestLayer::new(move |request: http::Request<Body>| {
        if asked.fetch_add(1, Ordering::SeqCst) == 1 {
            tell.cancel();
        }
        request
    });
    let builder = ClientBuilder::try_from(config).unwrap();
    (builder.with_layer(&noticing).build(), seen)
}

/// The spec of the Lease `name`.
pub async fn spec(client: &Client, name: &str) -> LeaseSpec {
    leases(client).get(name).await.unwrap().spec.unwrap()
}

/// Creates a released Lease: no candidate has to wait as for a deleted Lease.
pub async fn free(client: &Client, name: &str) {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(String::new()),
        ..LeaseSpec::default()
    });
    leases(client)
        .create(&kube::api::PostParams::default(), &lease)
        .await
        .unwrap();
}

pub fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "default")
}
