//! The changes of etcd since the last snapshot, as a watch tells them.

use crate::clock;
use crate::compression::Compression;
use crate::delta::{DeltaWriter, Entry, Event, KeyValue};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, messages};
use crate::snapshot_name::Snapshot;
use std::collections::HashMap;
use tonic::Streaming;

/// Leases whose time is remembered; more are asked for again.
const LEASES: usize = 4096;

/// The changes of etcd since the last snapshot.
pub(super) struct Changes {
    pub(super) etcd: Etcd,
    pub(super) watch: Streaming<messages::WatchResponse>,
    pub(super) delta: DeltaWriter,
    pub(super) leases: HashMap<i64, i64>,
    /// Inside an answer, or one that came in fragments: a revision may be cut here.
    pub(super) inside: bool,
    pub(super) urgent: Option<i64>,
    /// A delta that is sealed and not stored yet. Nothing that comes after it may be stored before it.
    pub(super) sealed: Option<(Snapshot, Vec<u8>)>,
}

impl Changes {
    /// Watches from the revision after `reached` on.
    pub(super) async fn after(
        etcd: &Etcd,
        reached: i64,
        urgent: Option<i64>,
        compression: Compression,
    ) -> Result<Self> {
        let watch = etcd.watch(reached + 1).await?;
        let delta = DeltaWriter::new(compression, reached + 1)?;
        Ok(Self {
            etcd: etcd.clone(),
            watch,
            delta,
            leases: HashMap::new(),
            inside: false,
            urgent,
            sealed: None,
        })
    }

    /// Takes over one answer of the watch.
    pub(super) async fn add(&mut self, answer: Option<messages::WatchResponse>) -> Result<()> {
        let Some(answer) = answer else {
            return Err(Error::new(Class::Etcd, "etcd closed the watch"));
        };
        if answer.compact_revision > 0 {
            let what = format!("etcd has compacted up to revision {}", answer.compact_revision);
            return Err(Error::new(Class::Compacted, what));
        }
        if answer.canceled {
            return Err(Error::new(
                Class::Etcd,
                format!("etcd ended the watch: {}", answer.cancel_reason),
            ));
        }
        let time = clock::now().to_string();
        // Also where this fails or is dropped half way: what is collected then ends inside an answer.
        self.inside = true;
        for event in answer.events {
            let Some(kv) = event.kv else { continue };
            let lease_ttl = self.lease_ttl(kv.lease).await?;
            let kv = KeyValue {
                key: kv.key.into(),
                create_revision: kv.create_revision,
                mod_revision: kv.mod_revision,
                version: kv.version,
                value: kv.value.into(),
                lease: kv.lease,
            };
            let event = Event {
                kind: i64::from(event.kind),
                kv,
            };
            self.delta.push(&Entry {
                event,
                time: time.clone(),
                lease_ttl,
            })?;
        }
        self.inside = answer.fragment;
        Ok(())
    }

    /// A lease is gone from etcd's mind once it expired, so its time is asked for while the change is fresh.
    async fn lease_ttl(&mut self, lease: i64) -> Result<i64> {
        if lease == 0 {
            return Ok(0);
        }
        if let Some(ttl) = self.leases.get(&lease) {
            return Ok(*ttl);
        }
        if self.leases.len() >= LEASES {
            self.leases.clear();
        }
        let ttl = self.etcd.granted_ttl(lease).await?.unwrap_or_default();
        self.leases.insert(lease, ttl);
        Ok(ttl)
    }

    /// Whether it is time to store what was collected.
    pub(super) fn is_due_at_once(&self, limit: usize) -> bool {
        let urgent = self
            .urgent
            .is_some_and(|revision| self.delta.reached() >= revision);
        !self.inside && !self.delta.is_empty() && (urgent || self.delta.len() >= limit)
    }

    /// The next answer of the watch, taken over.
    pub(super) async fn read(&mut self) -> Result<()> {
        let answer = self.watch.message().await.map_err(|status| lost(&status))?;
        self.add(answer).await
    }

    /// Whether there is nothing up to a revision to wait for, and no revision is cut in two.
    pub(super) fn has(&self, revision: i64) -> bool {
        !self.inside && self.delta.reached() >= revision
    }

    /// Seals what was collected and begins the next delta, unless one waits to be stored, or a revision would
    /// be cut.
    pub(super) fn seal(&mut self, compression: Compression) -> Result<()> {
        if self.sealed.is_some() || self.inside || self.delta.is_empty() {
            return Ok(());
        }
        let next = DeltaWriter::new(compression, self.delta.reached() + 1)?;
        self.sealed = std::mem::replace(&mut self.delta, next).finish()?;
        Ok(())
    }
}

pub(super) fn lost(status: &tonic::Status) -> Error {
    Error::new(
        Class::Etcd,
        format!("the watch of etcd broke: {}", status.message()),
    )
}
