//! The agent in the shoot: keeps a connection to the server through the seed's edge, and dials the targets
//! that the server requests.
//!
//! The DNS name of the API leads to the edge of the shoot's seed. The agent resolves the name before each
//! attempt and while connected. After a move the name leads to the destination, and the agent reconnects
//! there. This also holds where the former seed would keep the connection (a seed that was cut off).
//!
//! All times are in [`crate::limits`]: the back-off between two attempts is `FIRST_PAUSE`, doubled up to
//! `LONGEST_PAUSE`.

pub mod reach;
mod service;
mod watch;
mod way;

use std::{net::IpAddr, sync::Arc, time::Duration};

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::limits::{FIRST_PAUSE, HANDSHAKE, LONGEST_PAUSE};

use service::Carrier;

pub use reach::Reach;
pub(crate) use way::Doubt;
pub use way::{Lookup, Way};

/// An agent.
pub struct Agent {
    /// Where the server is.
    pub way: Way,
    /// The agent's certificate, and the expected certificate name of the server.
    pub connector: TlsConnector,
    /// The allowed targets.
    pub reach: Reach,
    /// Address of the agent's node.
    pub node: Option<IpAddr>,
    /// The metrics of the agent.
    pub numbers: Numbers,
}

/// The numbers of an agent.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Whether the agent is connected to the server: 0 or 1.
    pub connected: Gauge,
    /// Open connections through the agent.
    pub streams: Gauge,
}

impl Numbers {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let connected = "Whether the agent is connected to the server in the seed";
        registry.register("repot_tunnel_connected", connected, self.connected.clone());
        let streams = "Connections of the API server that are open through this agent";
        registry.register("repot_tunnel_streams", streams, self.streams.clone());
    }
}

impl Agent {
    /// Keeps the connection until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let carrier = Arc::new(Carrier {
            reach: self.reach.clone(),
            node: self.node,
            open: self.numbers.streams.clone(),
        });
        let (mut pause, mut logged) = (FIRST_PAUSE, None::<String>);
        while !shutdown.is_cancelled() {
            let begun = Instant::now();
            let why = match self.connect().await {
                Ok(connected) => {
                    logged = None;
                    self.numbers.connected.set(1);
                    let why = watch::serve(&carrier, &self.way, connected, &shutdown).await;
                    self.numbers.connected.set(0);
                    info!(why, "the connection has ended");
                    why
                }
                Err(why) => why,
            };
            // Once for each reason, not at each attempt: a move takes a while.
            if logged.as_ref() != Some(&why) {
                warn!(why, "not connected");
                logged = Some(why);
            }
            if begun.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(between(pause)) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Connects to the server, at the first reachable address of the name.
    async fn connect(&self) -> Result<way::Connected, String> {
        let addresses = self.way.addresses().await?;
        let mut why = format!("{} leads nowhere", self.way.host);
        for address in addresses {
            match timeout(HANDSHAKE, self.way.connect(address, &self.connector)).await {
                Ok(Ok(connected)) => {
                    info!(%address, "connected");
                    return Ok(connected);
                }
                Ok(Err(error)) => why = format!("{} at {address}: {error}", self.way.host),
                Err(_) => why = format!("{} at {address} does not answer", self.way.host),
            }
        }
        Err(why)
    }
}

/// Half to all of a pause: agents that lost the server together do not come back together.
fn between(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}
