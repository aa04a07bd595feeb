//! An etcd on the loopback interface that a restore runs, and that ends with the restore.

use super::tools::{Fsync, Member, Tools};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, EtcdConfig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use tokio::process::Child;

/// Timeout of the start of the local etcd, which reads the whole index into memory first.
const START: Duration = Duration::from_secs(120);
/// Timeout of a call: longer than the defragmentation of the largest database takes.
const CALL: Duration = Duration::from_secs(600);
/// Timeout of the shutdown, in which etcd writes its data to the disk.
const STOP: Duration = Duration::from_secs(120);

/// A running local etcd; dropping this value ends the etcd.
pub(super) struct Local {
    process: Child,
    pub(super) client: Etcd,
}

impl Local {
    /// Starts etcd as the member, regardless of the member's real address.
    pub(super) async fn start(tools: &Tools, data_dir: &Path, member: &Member, fsync: Fsync) -> Result<Self> {
        let ports = Ports::free()?;
        let mut process = tools.start(data_dir, member, (&ports.client, &ports.peer), fsync)?;
        let config = EtcdConfig::plain(ports.client.clone(), CALL, tools.permit.clone());
        let ready = async {
            // Connections are refused until etcd listens; the interval separates the attempts.
            let mut attempts = tokio::time::interval(Duration::from_millis(50));
            loop {
                attempts.tick().await;
                if let Ok(client) = config.connect().await
                    && client.revision().await.is_ok()
                {
                    return client;
                }
            }
        };
        let failed = |what: String| Error::new(Class::Tool, format!("the local etcd {what}"));
        let client = tokio::select! {
            client = ready => client,
            ended = process.wait() => {
                let how = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
                return Err(failed(format!("ended at once ({how}); its log says why")));
            }
            () = tokio::time::sleep(START) => return Err(failed(format!("did not start within {START:?}"))),
        };
        Ok(Self { process, client })
    }

    /// Shuts etcd down in order: its files then hold all its data.
    pub(super) async fn stop(self) -> Result<()> {
        let Self { mut process, client } = self;
        // etcd otherwise waits for its clients to close.
        drop(client);
        let failed = |what: String| {
            Error::new(
                Class::Tool,
                format!("the local etcd did not end in order: {what}"),
            )
        };
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let Some(id) = id else {
            return Err(failed("it ended by itself; its log says why".to_owned()));
        };
        kill(Pid::from_raw(id), Signal::SIGTERM).map_err(|e| failed(e.to_string()))?;
        match tokio::time::timeout(STOP, process.wait()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(failed(e.to_string())),
            Err(_) => Err(failed(format!("it was still there after {STOP:?}"))),
        }
    }
}

/// The revision of a data directory, its write-ahead log included. The local etcd changes the directory, so
/// the caller must not use the directory afterwards.
pub(super) async fn revision_of(tools: &Tools, data_dir: &Path) -> Result<i64> {
    let local = Local::start(tools, data_dir, &Member::unknown(), Fsync::Off).await?;
    let revision = local.client.revision().await;
    local.stop().await?;
    revision
}

/// Two free ports of the loopback interface.
struct Ports {
    client: String,
    peer: String,
}

impl Ports {
    fn free() -> Result<Self> {
        let failed =
            |e: std::io::Error| Error::new(Class::Tool, format!("no free port for the local etcd: {e}"));
        let listeners = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
        let mut urls = Vec::new();
        for listener in &listeners {
            let listener = listener
                .as_ref()
                .map_err(|e| failed(std::io::Error::new(e.kind(), e.to_string())))?;
            urls.push(format!("http://{}", listener.local_addr().map_err(failed)?));
        }
        let peer = urls.pop().unwrap_or_default();
        Ok(Self {
            client: urls.pop().unwrap_or_default(),
            peer,
        })
    }
}
