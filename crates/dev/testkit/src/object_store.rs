//! An S3 server on a folder.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Longer than the server needs to bind the port on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A running S3 server. A bucket is a folder in [`ObjectStore::folder`], an object is a file in the bucket's
/// folder.
pub struct ObjectStore {
    /// Address for path-style requests.
    pub endpoint: String,
    /// Region of the buckets.
    pub region: &'static str,
    /// The only access key id.
    pub access_key_id: &'static str,
    /// The secret key of the access key id.
    pub secret_access_key: &'static str,
    server: Option<Server>,
    port: u16,
    folder: TempDir,
}

impl ObjectStore {
    /// Starts a server without buckets.
    pub async fn start() -> Result<Self> {
        let port = ports::free()?;
        let mut store = Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            region: "us-east-1",
            access_key_id: "test-key-id",
            secret_access_key: "test-secret-access-key",
            server: None,
            port,
            folder: tempfile::Builder::new().prefix("repot-s3-").tempdir()?,
        };
        std::fs::create_dir(store.folder())?;
        store.resume().await?;
        Ok(store)
    }

    /// Stops the server; the objects stay.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Starts the server again on the same address.
    pub async fn resume(&mut self) -> Result<()> {
        let (port, folder) = (self.port.to_string(), self.folder());
        let args = [
            "--host=127.0.0.1".to_owned(),
            format!("--port={port}"),
            format!("--access-key={}", self.access_key_id),
            format!("--secret-key={}", self.secret_access_key),
            folder.display().to_string(),
        ];
        let server = self
            .server
            .insert(Server::start("s3s-fs", "s3s-fs", self.folder.path(), args, &[])?);
        eventually("the object store is ready", READY_WITHIN, || {
            let ended = server.check_alive().err();
            let port = self.port;
            async move {
                match ended {
                    Some(ended) => Ok(Err(ended)),
                    None => tokio::net::TcpStream::connect(("127.0.0.1", port))
                        .await
                        .map(|_| Ok(())),
                }
            }
        })
        .await?
    }

    /// Makes an empty bucket.
    pub fn create_bucket(&self, name: &str) -> Result<()> {
        std::fs::create_dir_all(self.folder().join(name)).with_context(|| format!("bucket {name}"))
    }

    /// The folder of the buckets, to read and to damage objects.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("buckets")
    }
}
