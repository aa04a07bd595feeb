//! `copy`: brings snapshots from one store to another.
//!
//! Object by object, streamed and verified before the target object appears; what is there already and sound is skipped,
//! so that a run that was killed goes on where it was. Names stay as they are, `.final` included, and so does the ownership
//! epoch of each object.
//!
//! A source that lets one wait for its final snapshot may be dead: what it has is copied meanwhile. What of it is not needed in the
//! end is left to the garbage collection.
//!
//! A copy for a later epoch looks at the history of the epoch before only, and records at its end which chain the new epoch
//! begins with. That is chosen once: whatever the source gets afterwards, a repeated copy brings exactly that chain.

use crate::chain::{self, Chain};
use crate::clock;
use crate::error::{Class, Error, Result};
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::{FIRST, Recorded, Store, check_stream, corrupt, reading};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashSet;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, MissedTickBehavior};

/// How often the source is asked for the final snapshot. Each wait adds to the seconds in which a shoot cannot be
/// written; a listing costs little beside that.
pub const POLL: Duration = Duration::from_secs(2);

/// What to copy.
pub struct Copy {
    /// Read only.
    pub source: Store,
    /// Written to.
    pub target: Store,
    /// Wait for the source's final snapshot first.
    pub wait_for_final: bool,
    /// Go on without it after this time; zero waits for ever. The source is looked at once more when no more than [`POLL`] of it is
    /// left, and what is there by then is all that is copied.
    pub wait_timeout: Duration,
    /// Newest chains to copy; `None` for all.
    pub max_chains: Option<usize>,
    /// Older chains are left out, but never the newest.
    pub max_age: Option<Duration>,
    /// Deltas on their way at the same time.
    pub parallel: usize,
    /// An empty source is not an error.
    pub allow_empty: bool,
}

/// What was done; printed as one line of JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether the source's final snapshot was seen.
    pub final_snapshot: bool,
    /// Whether the wait for it ended without it.
    pub wait_timed_out: bool,
    /// Objects copied by this run.
    pub copied: Vec<String>,
    /// Objects that were there already, verified.
    pub skipped: Vec<String>,
    /// Bytes copied.
    pub bytes: u64,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// When the newest snapshot of that chain was taken; nothing if its name does not say it.
    pub saved: Option<Timestamp>,
}

/// What of a [`Report`] others rely on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Whether the source's final snapshot was seen.
    pub final_snapshot: bool,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// When the newest snapshot of that chain was taken; nothing if its name does not say it.
    pub saved: Option<Timestamp>,
}

impl Report {
    /// What of these is not known to be in the target.
    fn missing(&self, objects: impl IntoIterator<Item = Snapshot>) -> Vec<Snapshot> {
        let there: HashSet<_> = self.copied.iter().chain(&self.skipped).collect();
        let missing = objects
            .into_iter()
            .filter(|one| !there.contains(&one.to_string()));
        missing.collect()
    }

    /// Short enough for what a container may say when it ends.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            final_snapshot: self.final_snapshot,
            last_revision: self.last_revision,
            saved: self.saved,
        }
    }
}

/// When the newest of them was taken. Nothing where its name says a time that can be none.
fn saved<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Option<Timestamp> {
    // The order of the chain is that of its revisions, whatever the clock did.
    snapshots.last()?.taken_on()
}

impl Copy {
    /// Does it.
    pub async fn run(&self) -> Result<Report> {
        let epoch = self.target.epoch();
        if let Some(recorded) = self.target.recorded(epoch).await? {
            return self.again(&recorded).await;
        }
        let origin = self.source.origin_of(epoch).await?;
        let mut report = Report::default();
        let listing = self.wait(origin, &mut report).await?;
        let last = chain::final_snapshot_of(origin, &listing);
        report.final_snapshot = last.is_some();
        // The final snapshot holds everything; older chains follow only where they are asked for.
        let chain = if let Some(last) = last {
            Chain {
                full: last.clone(),
                deltas: Vec::new(),
            }
        } else {
            let Some(newest) = chain::newest(&listing)? else {
                return self.nothing(report, origin);
            };
            newest
        };
        report.last_revision = chain.last_revision();
        report.saved = saved(chain.objects());
        let mut seen = HashSet::new();
        let objects: Vec<_> = chain
            .objects()
            .cloned()
            .chain(self.older(&listing, &chain.full))
            .filter(|o| seen.insert(o.to_string()))
            .collect();
        self.transfer(report.missing(objects), &mut report).await?;
        if epoch == FIRST {
            return Ok(report);
        }
        let chosen = Recorded::of(&chain, epoch, origin);
        let recorded = self.target.record(chosen.clone()).await?;
        if recorded != chosen {
            // Another copy was faster, and saw the source at another time.
            return self.again(&recorded).await;
        }
        tracing::info!(
            epoch,
            origin,
            revision = recorded.last_revision,
            "recorded what the epoch begins with"
        );
        Ok(report)
    }

    /// Brings the chain that was chosen before, whatever the source holds by now.
    async fn again(&self, recorded: &Recorded) -> Result<Report> {
        let named: Vec<_> = recorded
            .snapshots
            .iter()
            .filter_map(|name| Snapshot::parse(name))
            .collect();
        let mut report = Report {
            last_revision: recorded.last_revision,
            saved: saved(named.iter()),
            ..Report::default()
        };
        let there = self.target.everything().await?;
        let mut source = None;
        let mut objects = Vec::new();
        for name in &recorded.snapshots {
            let named = |s: &&Snapshot| s.to_string() == *name;
            if let Some(found) = there.iter().find(named) {
                objects.push(found.clone());
                continue;
            }
            let listing = match &mut source {
                Some(listing) => listing,
                none => none.insert(self.source.everything().await?),
            };
            let found = listing.iter().find(named).cloned().ok_or_else(|| {
                Error::new(
                    Class::SnapshotMissing,
                    format!(
                        "{name}, with which ownership epoch {} begins, is neither in the source nor in the target; put it back",
                        recorded.epoch
                    ),
                )
            })?;
            objects.push(found);
        }
        // It stands for the end alone, and for that of this epoch: a chain may begin with the end of an earlier one.
        report.final_snapshot = matches!(&objects[..], [one] if one.is_final && one.epoch == recorded.origin);
        self.transfer(objects, &mut report).await?;
        Ok(report)
    }

    fn nothing(&self, report: Report, origin: i64) -> Result<Report> {
        if self.allow_empty {
            return Ok(report);
        }
        Err(Error::new(
            Class::SnapshotMissing,
            format!(
                "the source holds no snapshot of ownership epoch {origin} below {}; bring one there, or pass \
                 --allow-empty-source if the data may be lost",
                self.source.prefix()
            ),
        ))
    }

    /// Waits for the final snapshot, and copies meanwhile what is there; gives the last listing.
    async fn wait(&self, origin: i64, report: &mut Report) -> Result<Vec<Snapshot>> {
        let begun = Instant::now();
        let mut polls = tokio::time::interval(POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_first = true;
        loop {
            polls.tick().await;
            // Before it is looked: what comes after that is not missed.
            let last = !self.wait_timeout.is_zero() && begun.elapsed() + POLL > self.wait_timeout;
            let listing = self.source.history(origin).await?;
            if !self.wait_for_final || chain::final_snapshot_of(origin, &listing).is_some() {
                return Ok(listing);
            }
            if last {
                tracing::warn!("the source has no final snapshot in time; copying what there is");
                report.wait_timed_out = true;
                return Ok(listing);
            }
            // One that has promised it has it within the first look or two, and then nothing else is needed.
            if !std::mem::take(&mut is_first)
                && let Err(error) = self.ahead(&listing, report).await
            {
                tracing::warn!(%error, "what the source has was not copied ahead; it is tried again at the end");
            }
        }
    }

    async fn ahead(&self, listing: &[Snapshot], report: &mut Report) -> Result<()> {
        let Some(chain) = chain::newest(listing)? else {
            return Ok(());
        };
        let missing = report.missing(chain.objects().cloned());
        self.transfer(missing, report).await
    }

    /// Objects of older chains within the limits, newest first.
    fn older(&self, listing: &[Snapshot], newest: &Snapshot) -> Vec<Snapshot> {
        let fulls = chain::fulls_newest_first(listing);
        let youngest_left_out = self.max_age.and_then(|age| i64::try_from(age.as_secs()).ok());
        let oldest = youngest_left_out.map_or(i64::MIN, |age| clock::now().as_second() - age);
        let more = self
            .max_chains
            .map_or(usize::MAX, |chains| chains.saturating_sub(1));
        let mut objects = Vec::new();
        let older = fulls
            .iter()
            .filter(|f| f.last_revision < newest.last_revision && f.created >= oldest);
        for &full in older.take(more) {
            let next = fulls.iter().rev().find(|f| f.last_revision > full.last_revision);
            let end = next.map_or(newest.last_revision, |n| n.last_revision);
            objects.push(full.clone());
            let continues = |s: &&Snapshot| s.last_revision > full.last_revision && s.start_revision <= end;
            objects.extend(
                listing
                    .iter()
                    .filter(|s| s.kind == Kind::Delta)
                    .filter(continues)
                    .cloned(),
            );
        }
        objects
    }

    /// Full snapshots one after the other, since each needs some MiB of memory; deltas side by side.
    async fn transfer(&self, objects: Vec<Snapshot>, report: &mut Report) -> Result<()> {
        let (fulls, deltas): (Vec<_>, Vec<_>) = objects.into_iter().partition(|o| o.kind == Kind::Full);
        let mut done = Vec::new();
        for full in fulls {
            done.push(self.one(full).await?);
        }
        let parallel = futures::stream::iter(deltas)
            .map(|delta| self.one(delta))
            .buffered(self.parallel.max(1));
        done.extend(parallel.try_collect::<Vec<_>>().await?);
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

    /// Copies one object; `None` where the target holds it already.
    async fn one(&self, snapshot: Snapshot) -> Result<(Snapshot, Option<u64>)> {
        if self.target.size(&snapshot).await? == Some(snapshot.size) {
            match self.target.read_verified(&snapshot, &mut tokio::io::sink()).await {
                Ok(_) => return Ok((snapshot, None)),
                Err(e) if e.class == Class::SnapshotCorrupt => {
                    tracing::warn!(%snapshot, "the target's object is broken; copying it again");
                }
                Err(e) => return Err(e),
            }
        }
        let bytes = self.stream(&snapshot).await?;
        tracing::info!(%snapshot, bytes, "copied and verified");
        Ok((snapshot, Some(bytes)))
    }

    async fn stream(&self, snapshot: &Snapshot) -> Result<u64> {
        let mut source = self.source.open(snapshot).await?;
        let mut upload = self.target.upload(snapshot)?;
        let (to_check, packed) = tokio::io::duplex(256 * 1024);
        let content = snapshot.compression.unpack(tokio::io::BufReader::new(packed));
        let mut nowhere = tokio::io::sink();
        let check = check_stream(snapshot, content, &mut nowhere);
        let send = async {
            let (mut to_check, mut buffer, mut length) = (Some(to_check), vec![0; 64 * 1024], 0);
            loop {
                let read = source
                    .read(&mut buffer)
                    .await
                    .map_err(|e| reading(snapshot, &e))?;
                if read == 0 {
                    return Ok(length);
                }
                length += read as u64;
                upload.write(&buffer[..read]).await?;
                // The checker stops at the end of the packed stream; its verdict counts, not that it hung up.
                if let Some(pipe) = &mut to_check
                    && pipe.write_all(&buffer[..read]).await.is_err()
                {
                    to_check = None;
                }
            }
        };
        match tokio::try_join!(send, check) {
            Ok((length, _)) if length == snapshot.size => upload.complete().await,
            Ok((length, _)) => {
                upload.abort().await;
                Err(corrupt(
                    snapshot,
                    &format!("{length} of its {} bytes could be read", snapshot.size),
                ))
            }
            Err(e) => {
                upload.abort().await;
                Err(e)
            }
        }
    }
}
