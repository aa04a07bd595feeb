//! The seed's side: accepts CONNECT requests of kube-apiserver and asks agents to open the connections.

pub mod agents;
pub mod choose;
pub mod front;
pub mod metrics;
mod session;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{door::Door, limits::PROTOCOL, tls::Identity};

use agents::Agents;
use metrics::Numbers;

/// The names of the peers that the two listeners admit.
#[derive(Clone, Debug, clap::Args)]
pub struct Peers {
    /// Common name in the certificate of kube-apiserver.
    #[arg(long)]
    pub client_name: String,
    /// Common name in the certificate of agents.
    #[arg(long)]
    pub agent_name: String,
}

/// The server of a shoot.
pub struct Server {
    /// The certificate and key of the server.
    pub identity: Identity,
    /// The names of the admitted peers.
    pub peers: Peers,
    /// The metrics of the server.
    pub numbers: Numbers,
}

impl Server {
    /// Serves kube-apiserver at `clients` and agents at `agents`, until `shutdown`.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub async fn run(
        self,
        clients: TcpListener,
        agents: TcpListener,
        shutdown: CancellationToken,
    ) -> Result<(), String> {
        let known = Arc::new(Agents::new(self.numbers));
        let for_agents = Door {
            listener: agents,
            acceptor: self.identity.acceptor(Some(PROTOCOL))?,
            named: self.peers.agent_name,
            protocol: Some(PROTOCOL),
        };
        let for_clients = Door {
            listener: clients,
            acceptor: self.identity.acceptor(None)?,
            named: self.peers.client_name,
            protocol: None,
        };
        let register = Arc::clone(&known);
        tokio::join!(
            for_agents.serve(shutdown.clone(), move |stream, from| {
                session::keep(Arc::clone(&register), stream, from)
            }),
            for_clients.serve(shutdown, move |stream, _| front::serve(
                Arc::clone(&known),
                stream
            )),
        );
        Ok(())
    }
}
