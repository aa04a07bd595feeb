//! The changes of etcd since the last snapshot, received from a watch.

use crate::clock;
use crate::compression::Compression;
use crate::delta::{DeltaWriter, Entry, Event, KeyValue};
use crate::error::Result;
use crate::etcd::{Etcd, Watch, messages};
use crate::snapshot_name::Snapshot;
use std::collections::HashMap;

/// Number of leases whose TTL is cached; the TTL of further leases is requested again.
const LEASES: usize = 4096;

/// The changes of etcd since the last snapshot.
pub(super) struct Changes {
    pub(super) etcd: Etcd,
    pub(super) watch: Watch,
    pub(super) delta: DeltaWriter,
    pub(super) leases: HashMap<i64, i64>,
    /// Inside a watch response, or between the fragments of a response: a revision may be cut here.
    pub(super) inside: bool,
    pub(super) urgent: Option<i64>,
    /// A packed delta that is not stored yet. No later change may be stored before this delta.
    pub(super) packed_delta: Option<(Snapshot, Vec<u8>)>,
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
            packed_delta: None,
        })
    }

    /// Adds the events of a watch response.
    pub(super) async fn add(&mut self, answer: messages::WatchResponse) -> Result<()> {
        let time = clock::now().to_string();
        // Set even if this call fails or is dropped half-way: the collected events then end inside a
        // response.
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

    /// etcd forgets an expired lease, so its TTL is requested while the change is fresh.
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

    /// Whether the collected changes must be stored now.
    pub(super) fn is_due_at_once(&self, limit: usize) -> bool {
        let urgent = self
            .urgent
            .is_some_and(|revision| self.delta.reached() >= revision);
        !self.inside && !self.delta.is_empty() && (urgent || self.delta.len() >= limit)
    }

    /// The next answer of the watch, taken over.
    pub(super) async fn read(&mut self) -> Result<()> {
        let answer = self.watch.next().await?;
        self.add(answer).await
    }

    /// Whether all changes up to a revision were received, and no revision is cut in two.
    pub(super) fn has(&self, revision: i64) -> bool {
        !self.inside && self.delta.reached() >= revision
    }

    /// Packs the collected changes and begins the next delta, unless a packed delta waits to be stored, or a
    /// revision would be cut.
    pub(super) fn seal(&mut self, compression: Compression) -> Result<()> {
        if self.packed_delta.is_some() || self.inside || self.delta.is_empty() {
            return Ok(());
        }
        let next = DeltaWriter::new(compression, self.delta.reached() + 1)?;
        self.packed_delta = std::mem::replace(&mut self.delta, next).finish()?;
        Ok(())
    }
}
