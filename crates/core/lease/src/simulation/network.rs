//! The simulated network to the API server: slow and unreliable.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::future::pending;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::service_fn;

use super::world::World;
use lease_server::Server;

/// A write arrives within this time, or never. Less than the difference of lease duration and renew deadline,
/// because that difference covers the write.
const LONGEST_WRITE: u64 = 800;
/// A read, and any answer, may take until long after the sender's time-out.
const LONGEST: u64 = 6000;

/// A single network for all processes.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) server: Server,
    world: World,
    random: Arc<Mutex<Rng>>,
    /// Requests that have left the sender.
    under_way: Arc<Mutex<JoinSet<()>>>,
}

/// The fate of a request.
struct Fate {
    there: Option<Duration>,
    back: Option<Duration>,
}

impl Network {
    pub(super) fn new(world: World, seed: u64) -> Self {
        Self {
            server: Server::default(),
            world,
            random: Arc::new(Mutex::new(Rng::with_seed(seed))),
            under_way: Arc::default(),
        }
    }

    pub(super) fn client(&self) -> Client {
        let network = self.clone();
        let service = service_fn(move |request| {
            let network = network.clone();
            async move { Ok::<_, std::io::Error>(network.send(request).await) }
        });
        #[allow(clippy::disallowed_methods)] // the client leads to no server
        Client::new(service, "ns")
    }

    /// A sent request continues, even if the sender is dropped.
    async fn send(&self, request: Request<Body>) -> Response<Body> {
        let hold = hold_of(&request);
        let mut fate = self.fate(request.method());
        if hold.is_some() {
            // Writes of work are slow more often, so that a missing wait shows.
            let late = self.random.lock().unwrap().u64(..LONGEST_WRITE);
            fate.there = fate.there.map(|_| Duration::from_millis(late));
        }
        let (answered, answer) = oneshot::channel();
        let network = self.clone();
        self.under_way.lock().unwrap().spawn(async move {
            let Some(there) = fate.there else { return };
            sleep(there).await;
            if let Some(hold) = hold {
                network.world.carried_out(hold);
            }
            let response = network.server.answer(request).await;
            let Some(back) = fate.back else { return };
            sleep(back).await;
            // The sender may have stopped waiting.
            let _ = answered.send(response);
        });
        match answer.await {
            Ok(response) => response,
            Err(_) => pending().await,
        }
    }

    fn fate(&self, method: &Method) -> Fate {
        let mut random = self.random.lock().unwrap();
        let longest = if method.is_safe() { LONGEST } else { LONGEST_WRITE };
        let is_lost = |random: &mut Rng| random.u8(..100) < 4;
        Fate {
            there: (!is_lost(&mut random)).then(|| delay(&mut random, longest)),
            back: (!is_lost(&mut random)).then(|| delay(&mut random, LONGEST)),
        }
    }
}

/// Mostly quick.
fn delay(random: &mut Rng, longest: u64) -> Duration {
    Duration::from_millis(match random.u8(..10) {
        0..6 => random.u64(1..10),
        6..9 => random.u64(..longest / 4),
        _ => random.u64(..longest),
    })
}

/// The hold to which a write of work belongs.
fn hold_of(request: &Request<Body>) -> Option<usize> {
    let (_, name) = request.uri().path().rsplit_once("/configmaps/hold-")?;
    name.parse().ok()
}
