//! The address of the server: behind the seed's edge, at the DNS name of the API.

use std::{io, net::SocketAddr, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use rustls::pki_types::ServerName;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::limits::{HANDSHAKE, LOOK_UPS, PROTOCOL};

/// Resolves the addresses of the edge. Called repeatedly, because the addresses change when the shoot moves.
pub type Lookup = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The route to the server.
#[derive(Clone)]
pub struct Way {
    /// The name by which the edge finds the shoot.
    pub host: String,
    /// Resolves the addresses of the name.
    pub lookup: Lookup,
}

/// A connection to the server.
pub(super) struct Connected {
    pub stream: TlsStream<TcpStream>,
    pub address: SocketAddr,
}

impl Way {
    /// By the DNS of the machine.
    #[must_use]
    pub fn by_dns(host: &str, port: u16) -> Self {
        let name = host.to_owned();
        Self {
            host: host.to_owned(),
            lookup: Arc::new(move || {
                let name = name.clone();
                async move { Ok(lookup_host((name, port)).await?.collect()) }.boxed()
            }),
        }
    }

    /// Resolves the current addresses.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        match timeout(HANDSHAKE, (self.lookup)()).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(format!("{} is not found: {error}", self.host)),
            Err(_) => Err(format!("{} is not found: DNS does not answer", self.host)),
        }
    }

    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        connector: &TlsConnector,
    ) -> Result<Connected, String> {
        let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let name = ServerName::try_from(self.host.clone()).map_err(|e| e.to_string())?;
        let stream = connector.connect(name, stream).await.map_err(|e| e.to_string())?;
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err("it does not speak the tunnel's protocol".into());
        }
        Ok(Connected { stream, address })
    }
}

/// How often in a row a name has led elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Doubt(u32);

impl Doubt {
    /// Takes the result of a lookup, and returns whether the name has left this address for good. A failed or
    /// empty lookup does not count.
    pub(crate) fn is_sure(&mut self, found: Result<&[SocketAddr], &String>, here: SocketAddr) -> bool {
        match found {
            Ok([]) | Err(_) => {}
            Ok(addresses) if addresses.contains(&here) => self.0 = 0,
            Ok(_) => self.0 += 1,
        }
        self.0 >= LOOK_UPS
    }
}
