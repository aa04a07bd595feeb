//! EC2 and S3, simulated by moto. The state is in memory, separate for each region. Unlike the S3 server on
//! files, moto stores any key, versions and object locks.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Longer than Python needs to load moto on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Longer than moto needs to load EC2 on a busy machine.
const REGION_WITHIN: Duration = Duration::from_secs(90);

/// A running server.
pub struct Moto {
    /// Address for requests of all regions.
    pub endpoint: String,
    /// Port of the server, on loopback.
    pub port: u16,
    /// Held while a region is loaded.
    loading: Mutex<()>,
    _server: Server,
    _folder: TempDir,
}

impl Moto {
    /// Starts a server with the default resources of an account only.
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
            loading: Mutex::default(),
            _server: server,
            _folder: folder,
        })
    }

    /// Writes an object under exactly this key, or makes the bucket if the key is empty.
    ///
    /// # Errors
    /// Fails if the request does not succeed.
    pub async fn put_object(&self, bucket: &str, key: &str, content: &str) -> Result<()> {
        let mut path = format!("/{bucket}/");
        for byte in key.bytes() {
            write!(path, "%{byte:02X}")?;
        }
        self.s3("PUT", &path, "", content).await?;
        Ok(())
    }

    /// Creates a bucket with versions and object locks.
    ///
    /// # Errors
    /// Fails if the request does not succeed.
    pub async fn create_bucket_with_locks(&self, bucket: &str) -> Result<()> {
        let headers = "x-amz-bucket-object-lock-enabled: true\r\n";
        self.s3("PUT", &format!("/{bucket}/"), headers, "").await?;
        Ok(())
    }

    /// Writes an object whose version cannot be deleted.
    ///
    /// # Errors
    /// Fails if the request does not succeed.
    pub async fn put_locked_object(&self, bucket: &str, key: &str, content: &str) -> Result<()> {
        let headers = "x-amz-object-lock-mode: COMPLIANCE\r\nx-amz-object-lock-retain-until-date: 2099-01-01T00:00:00Z\r\n\
             x-amz-sdk-checksum-algorithm: CRC32\r\n";
        self.s3("PUT", &format!("/{bucket}/{key}"), headers, content)
            .await?;
        Ok(())
    }

    /// Loads EC2 and the default resources of a region. Otherwise the first request loads them, and on a busy
    /// machine lasts longer than a client waits for an answer (6 s of a processor for EC2).
    ///
    /// # Errors
    /// Fails if the request does not succeed within three minutes.
    pub async fn load_region(&self, region: &str) -> Result<()> {
        let _turn = self.loading.lock().await;
        let form = "Action=DescribeAvailabilityZones&Version=2016-11-15";
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        let service = format!("{region}/ec2");
        let answered = self.send(&service, "POST", "/", headers, form);
        crate::wait_bound::timeout(REGION_WITHIN, answered)
            .await
            .with_context(|| format!("moto does not load the region {region}"))??;
        Ok(())
    }

    /// Sends a request of S3 with more headers, a line each, as these bytes: clients rewrite paths. Returns
    /// the answer.
    ///
    /// # Errors
    /// Fails if the request does not succeed.
    pub async fn s3(&self, method: &str, path: &str, headers: &str, content: &str) -> Result<String> {
        self.send("us-east-1/s3", method, path, headers, content).await
    }

    /// Sends a request to a service, written as `<region>/<service>`.
    async fn send(
        &self,
        service: &str,
        method: &str,
        path: &str,
        headers: &str,
        content: &str,
    ) -> Result<String> {
        // moto learns the service from the header and does not check the signature.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\
             Authorization: AWS4-HMAC-SHA256 Credential=writer/20260101/{service}/aws4_request, SignedHeaders=host, \
             Signature=0\r\n\r\n{content}",
            self.port,
            content.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        ensure!(answer.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        Ok(answer)
    }
}
