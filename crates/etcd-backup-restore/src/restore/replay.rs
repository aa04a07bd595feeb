//! Deltas on top of a full snapshot: a local etcd is given the same changes again, one transaction a revision.
//!
//! So revisions, creation revisions and versions come out as they were, and every resourceVersion that a client of the
//! Kubernetes API remembers stays valid. The count is checked after each transaction and at the end.

use super::data_dir;
use super::tools::{Member, Tools};
use crate::delta::{Entry, read_entries};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, EtcdConfig, messages as m};
use crate::integrity::TRAILER;
use crate::snapshot_name::Snapshot;
use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::mpsc;

/// Bound of the start of the local etcd, which reads the whole index into memory first.
const START: Duration = Duration::from_secs(120);
/// Bound of one transaction.
const CALL: Duration = Duration::from_secs(60);
/// Leases are renewed this often. It must be shorter than half of etcd's shortest lease of 2 s: one that expired here
/// would delete its keys and count a revision that never was.
const RENEW: Duration = Duration::from_millis(500);
/// A running local etcd; it ends with this.
struct Local {
    process: Child,
    client: Etcd,
}

impl Local {
    async fn start(tools: &Tools, data_dir: &Path, ports: &Ports) -> Result<Self> {
        let mut process = tools.start(data_dir, &ports.client, &ports.peer)?;
        let config = EtcdConfig::plain(ports.client.clone(), CALL);
        let ready = async {
            // Refused until it listens; the interval keeps the attempts apart.
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
        let failed = |what: String| Error::new(Class::Tool, format!("the local etcd for the replay {what}"));
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

    async fn stop(mut self) -> Result<()> {
        self.process
            .kill()
            .await
            .map_err(|e| Error::new(Class::Tool, format!("cannot stop the local etcd: {e}")))
    }
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

/// The revision of a data directory, its write-ahead log included. The directory is used up by this.
pub(super) async fn revision_of(tools: &Tools, data_dir: &Path) -> Result<i64> {
    let ports = Ports::free()?;
    let local = Local::start(tools, data_dir, &ports).await?;
    let revision = local.client.revision().await;
    local.stop().await?;
    revision
}

/// Applies deltas to a full snapshot and writes the grown database, with its hash, to `to`; gives its revision, which is
/// never below what the names promise.
pub(super) async fn replay(
    tools: &Tools,
    (full, file): (&Snapshot, &Path),
    deltas: &[(&Snapshot, PathBuf)],
    folder: &Path,
    to: &Path,
) -> Result<i64> {
    let (ports, data_dir) = (Ports::free()?, folder.join("replay"));
    tools
        .restore(file, &data_dir, &Member::alone(&ports.peer))
        .await?;
    let local = Local::start(tools, &data_dir, &ports).await?;
    let leases = Leases(Mutex::new(local.client.leases().await?.into_iter().collect()));
    let work = async {
        let mut applier = Applier::new(local.client.clone(), &leases).await?;
        reaches(applier.reached, full)?;
        for (delta, file) in deltas {
            applier.apply(delta, file).await?;
            reaches(applier.reached, delta)?;
        }
        save(&local.client, to).await?;
        Ok(applier.reached)
    };
    let worked = tokio::select! {
        worked = work => worked,
        Err(e) = keep_leases(&local.client, &leases) => Err(e),
    };
    local.stop().await?;
    data_dir::remove(&data_dir)?;
    worked
}

fn reaches(revision: i64, snapshot: &Snapshot) -> Result<()> {
    if revision >= snapshot.last_revision {
        return Ok(());
    }
    Err(crate::store::corrupt(
        snapshot,
        &format!("with it etcd is at revision {revision} only"),
    ))
}

/// The leases that the local etcd knows.
struct Leases(Mutex<HashSet<i64>>);

impl Leases {
    fn all(&self) -> Vec<i64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect()
    }

    fn knows(&self, id: i64) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&id)
    }

    fn add(&self, id: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }
}

async fn keep_leases(client: &Etcd, leases: &Leases) -> Result<()> {
    let mut ticks = tokio::time::interval(RENEW);
    loop {
        ticks.tick().await;
        let ids = leases.all();
        if !ids.is_empty() {
            client.keep_alive(ids).await?;
        }
    }
}

/// Takes the grown database over the wire: etcd commits what is pending first, and seals it with a hash.
async fn save(client: &Etcd, to: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::file("write", to, &e);
    let mut file = tokio::fs::File::create(to).await.map_err(failed)?;
    let mut pieces = client.snapshot().await?;
    while let Some(piece) = pieces
        .message()
        .await
        .map_err(|s| Error::new(Class::Tool, format!("the local etcd failed: {}", s.message())))?
    {
        file.write_all(&piece.blob).await.map_err(failed)?;
    }
    file.shutdown().await.map_err(failed)
}

struct Applier<'a> {
    client: Etcd,
    reached: i64,
    leases: &'a Leases,
    /// Changes of the revision that is being read.
    pending: Vec<Entry>,
}

impl<'a> Applier<'a> {
    async fn new(client: Etcd, leases: &'a Leases) -> Result<Self> {
        let reached = client.revision().await?;
        Ok(Self {
            client,
            reached,
            leases,
            pending: Vec::new(),
        })
    }

    /// Applies one verified file. It is read by a thread of its own, a few events ahead.
    async fn apply(&mut self, delta: &Snapshot, file: &Path) -> Result<()> {
        let (sender, mut entries) = mpsc::channel::<Entry>(16);
        let path = file.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            let opened = std::fs::File::open(&path).and_then(|f| Ok((f.metadata()?.len(), f)));
            let (length, file) = opened.map_err(|e| e.to_string())?;
            let content =
                BufReader::with_capacity(64 * 1024, file).take(length.saturating_sub(TRAILER as u64));
            let each = |entry| {
                sender
                    .blocking_send(entry)
                    .map_err(|_| "the replay ended".to_owned())
            };
            read_entries(content, each).map_err(|e| e.to_string())
        });
        let wrong = |what: &str| crate::store::corrupt(delta, what);
        let applied = async {
            while let Some(entry) = entries.recv().await {
                let revision = entry.event.kv.mod_revision;
                if self
                    .pending
                    .last()
                    .is_some_and(|last| last.event.kv.mod_revision != revision)
                {
                    self.commit().await.map_err(|what| what.within(delta))?;
                }
                if revision > self.reached {
                    self.pending.push(entry);
                }
            }
            self.commit().await.map_err(|what| what.within(delta))
        }
        .await;
        drop(entries);
        let read = reading
            .await
            .map_err(|e| Error::new(Class::Tool, format!("reading {delta} failed: {e}")))?;
        applied?;
        read.map_err(|what| wrong(&format!("its events cannot be read ({what})")))
    }

    async fn commit(&mut self) -> Result<(), Refused> {
        let Some(revision) = self.pending.first().map(|entry| entry.event.kv.mod_revision) else {
            return Ok(());
        };
        if revision != self.reached + 1 {
            return Err(Refused::Wrong(format!(
                "revision {revision} follows {}",
                self.reached
            )));
        }
        let mut operations = Vec::with_capacity(self.pending.len());
        for entry in std::mem::take(&mut self.pending) {
            let lease = self.lease(&entry).await.map_err(Refused::Failed)?;
            operations.push(operation(entry, lease)?);
        }
        let now = self.client.txn(operations).await.map_err(Refused::Failed)?;
        if now != revision {
            return Err(Refused::Wrong(format!(
                "replaying revision {revision} led to revision {now}"
            )));
        }
        self.reached = now;
        Ok(())
    }

    /// The lease to hang a key on: the one it had, if the full snapshot knows it or its time was written down.
    async fn lease(&self, entry: &Entry) -> Result<i64> {
        let lease = entry.event.kv.lease;
        if lease == 0 || self.leases.knows(lease) {
            return Ok(lease);
        }
        if entry.lease_ttl == 0 {
            // Better a key that stays than one that is lost.
            return Ok(0);
        }
        self.client.grant(lease, entry.lease_ttl).await?;
        self.leases.add(lease);
        Ok(lease)
    }
}

/// Why a revision could not be applied.
enum Refused {
    Wrong(String),
    Failed(Error),
}

impl Refused {
    fn within(self, delta: &Snapshot) -> Error {
        match self {
            Self::Wrong(what) => crate::store::corrupt(delta, &what),
            Self::Failed(e) => Error::new(Class::Tool, format!("replaying {delta}: {}", e.message)),
        }
    }
}

fn operation(entry: Entry, lease: i64) -> Result<m::RequestOp, Refused> {
    let Entry { event, .. } = entry;
    let key = event.kv.key.into();
    let operation = match event.kind {
        0 => m::Operation::Put(m::PutRequest {
            key,
            value: event.kv.value.into(),
            lease,
        }),
        1 => m::Operation::Delete(m::DeleteRangeRequest { key }),
        other => {
            return Err(Refused::Wrong(format!(
                "it holds a change of the unknown type {other}"
            )));
        }
    };
    Ok(m::RequestOp {
        operation: Some(operation),
    })
}
