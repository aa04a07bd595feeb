//! The seed's side: takes kube-apiserver's CONNECTs and asks agents to make the connections.

pub mod agents;
pub mod choose;
pub mod front;
pub mod metrics;
mod session;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{bounds::PROTOCOL, door::Door, tls::Identity};

use agents::Agents;
use metrics::Numbers;

/// Whom the two doors are for.
#[derive(Clone, Debug, clap::Args)]
pub struct Peers {
    /// Whom the certificate of kube-apiserver names.
    #[arg(long)]
    pub client_name: String,
    /// Whom the certificate of agents names.
    #[arg(long)]
    pub agent_name: String,
}

/// The server of one shoot.
pub struct Server {
    /// Its certificate and key.
    pub identity: Identity,
    /// Who may come.
    pub peers: Peers,
    /// What it counts.
    pub numbers: Numbers,
}

impl Server {
    /// Serves kube-apiserver at one listener and agents at the other, until `shutdown`.
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
