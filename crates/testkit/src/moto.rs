//! EC2, played by moto: what it keeps is in its memory, apart for each region.

use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Longer than Python needs to load it on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running server.
pub struct Moto {
    /// Address for requests of all regions.
    pub endpoint: String,
    /// Where it listens, on loopback.
    pub port: u16,
    _server: Server,
    _folder: TempDir,
}

impl Moto {
    /// Starts a server that has nothing but what every account has.
    pub async fn start() -> Result<Self> {
        let port = ports::free()?;
        let folder = tempfile::Builder::new().prefix("repot-moto-").tempdir()?;
        let args = ["-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned);
        let mut server = Server::start("moto", "moto", folder.path(), args, &[])?;
        eventually("moto is ready", READY_WITHIN, || {
            let ended = server.check_alive().err();
            async move {
                match ended {
                    Some(ended) => Ok(Err(ended)),
                    None => tokio::net::TcpStream::connect(("127.0.0.1", port))
                        .await
                        .map(|_| Ok(())),
                }
            }
        })
        .await??;
        Ok(Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            port,
            _server: server,
            _folder: folder,
        })
    }
}
