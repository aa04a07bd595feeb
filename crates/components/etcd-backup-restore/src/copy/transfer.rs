//! The transfer of each object: streamed, hashed, and in the target as a whole or not at all.

use super::Copy;
use super::evidence::Rejected;
use super::report::Report;
use crate::error::{Class, Error, Result};
use crate::integrity::Fingerprint;
use crate::snapshot_name::{Kind, Snapshot};
use crate::snapshotter::fingerprint;
use crate::store::{check_stream, corrupt, reading};
use futures::{StreamExt, TryStreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

impl Copy {
    /// Copies full snapshots in sequence, because each needs some MiB of memory; deltas in parallel. An error
    /// comes with its object.
    pub(super) async fn transfer(
        &self,
        objects: Vec<Snapshot>,
        report: &mut Report,
    ) -> Result<(), Box<Rejected>> {
        self.gauge.list(&objects);
        let done = self.bring_all(objects).await.inspect_err(|_| {
            self.gauge.drop_unfinished();
        })?;
        for (snapshot, copied) in done {
            match copied {
                Some(bytes) => {
                    report.bytes += bytes;
                    report.copied.push(snapshot.to_string());
                }
                None => report.skipped.push(snapshot.to_string()),
            }
        }
        Ok(())
    }

    async fn bring_all(&self, objects: Vec<Snapshot>) -> Result<Vec<(Snapshot, Option<u64>)>, Box<Rejected>> {
        let (fulls, deltas): (Vec<_>, Vec<_>) = objects.into_iter().partition(|o| o.kind == Kind::Full);
        let mut done = Vec::new();
        for full in fulls {
            done.push(self.one(full).await?);
        }
        let parallel = futures::stream::iter(deltas)
            .map(|delta| self.one(delta))
            .buffered(self.parallel.max(1));
        done.extend(parallel.try_collect::<Vec<_>>().await?);
        Ok(done)
    }

    /// Copies an object; `None` if the target already holds the object.
    async fn one(&self, snapshot: Snapshot) -> Result<(Snapshot, Option<u64>), Box<Rejected>> {
        match self.bring(&snapshot).await {
            Ok(copied) => {
                self.gauge.finish(&snapshot);
                Ok((snapshot, copied))
            }
            Err(error) => Err(Box::new((snapshot, error))),
        }
    }

    async fn bring(&self, snapshot: &Snapshot) -> Result<Option<u64>> {
        if self.target.size(snapshot).await? == Some(snapshot.size) {
            match self.is_sound(snapshot).await {
                Ok(()) => return Ok(None),
                Err(e) if e.class == Class::SnapshotCorrupt => {
                    tracing::warn!(%snapshot, "the target's object is broken; copying it again");
                }
                Err(e) => return Err(e),
            }
        }
        let bytes = self.stream(snapshot).await?;
        tracing::info!(%snapshot, bytes, "copied and verified");
        Ok(Some(bytes))
    }

    async fn is_sound(&self, snapshot: &Snapshot) -> Result<()> {
        self.target
            .read_verified(snapshot, &mut tokio::io::sink())
            .await?;
        if self.expected(snapshot).is_some() {
            let found = fingerprint(&self.target, snapshot).await?;
            self.check_hash(snapshot, &found)?;
        }
        Ok(())
    }

    fn expected(&self, snapshot: &Snapshot) -> Option<&str> {
        self.end.as_ref().and_then(|end| end.sha256_of(snapshot))
    }

    /// Refuses an object that has the name of the recorded final snapshot and a different hash.
    fn check_hash(&self, snapshot: &Snapshot, found: &str) -> Result<()> {
        match self.expected(snapshot) {
            Some(expected) if expected != found => Err(Error::new(
                Class::SnapshotCorrupt,
                format!("{snapshot} has the sha256 {found}, and the hand-over recorded {expected}"),
            )),
            _ => Ok(()),
        }
    }

    async fn stream(&self, snapshot: &Snapshot) -> Result<u64> {
        let (mut source, name) = (self.source.open(snapshot).await?, snapshot.to_string());
        let mut upload = self.target.upload(snapshot)?;
        let (to_check, packed) = tokio::io::duplex(256 * 1024);
        let content = snapshot.compression.unpack(tokio::io::BufReader::new(packed));
        let mut nowhere = tokio::io::sink();
        let check = check_stream(snapshot, content, &mut nowhere);
        let sending = async {
            let (mut to_check, mut buffer, mut length) = (Some(to_check), vec![0; 64 * 1024], 0);
            let mut hash = Fingerprint::default();
            loop {
                let read = source
                    .read(&mut buffer)
                    .await
                    .map_err(|e| reading(snapshot, &e))?;
                if read == 0 {
                    return Ok((length, hash.hex()));
                }
                length += read as u64;
                hash.update(&buffer[..read]);
                upload.write(&buffer[..read]).await?;
                self.gauge.add(&name, read as u64);
                // The checker stops reading at the end of the packed stream: its verdict counts, not the
                // closed pipe.
                if let Some(pipe) = &mut to_check
                    && pipe.write_all(&buffer[..read]).await.is_err()
                {
                    to_check = None;
                }
            }
        };
        let sent = tokio::try_join!(sending, check).and_then(|((length, hash), _)| {
            if length != snapshot.size {
                let what = format!("{length} of its {} bytes could be read", snapshot.size);
                return Err(corrupt(snapshot, &what));
            }
            self.check_hash(snapshot, &hash)
        });
        match sent {
            Ok(()) => upload.complete().await,
            Err(e) => {
                upload.abort().await;
                Err(e)
            }
        }
    }
}
