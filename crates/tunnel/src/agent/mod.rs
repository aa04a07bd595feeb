//! The shoot's side: keeps one connection to the seed's front, and makes the connections that it is asked
//! for.
//!
//! Where the seed is says the API's name, which is looked up before each attempt and while connected: after a
//! move the name leads elsewhere, and the agent goes there although the former seed may still be glad to keep
//! it (a seed that was cut off).

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

use crate::bounds::{FIRST_PAUSE, HANDSHAKE, LONGEST_PAUSE};

use service::Carrier;

pub use reach::Reach;
pub(crate) use way::Doubt;
pub use way::{Lookup, Way};

/// One agent.
pub struct Agent {
    /// Where the server is.
    pub way: Way,
    /// Shows who it is, and who the server has to be.
    pub connector: TlsConnector,
    /// Where it goes.
    pub reach: Reach,
    /// Address of its node.
    pub node: Option<IpAddr>,
    /// What it counts.
    pub numbers: Numbers,
}

/// The numbers of an agent.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Whether it is connected to the server: 0 or 1.
    pub connected: Gauge,
    /// Connections that it carries.
    pub streams: Gauge,
}

impl Numbers {
    /// Lets them be read.
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
        let (mut pause, mut told) = (FIRST_PAUSE, None::<String>);
        while !shutdown.is_cancelled() {
            let begun = Instant::now();
            let why = match self.connect().await {
                Ok(connected) => {
                    told = None;
                    self.numbers.connected.set(1);
                    let why = watch::serve(&carrier, &self.way, connected, &shutdown).await;
                    self.numbers.connected.set(0);
                    info!(why, "the connection has ended");
                    why
                }
                Err(why) => why,
            };
            // Once for each reason, not at each attempt: a move takes a while.
            if told.as_ref() != Some(&why) {
                warn!(why, "not connected");
                told = Some(why);
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

    /// A connection to the server, at the first of the name's addresses that has one.
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
