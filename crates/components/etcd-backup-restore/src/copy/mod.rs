//! `copy`: copies snapshots from a source store to a target store.
//!
//! Each object is streamed and verified before the target object appears. The copy skips an object that the
//! target already holds intact, so a killed run resumes where the run ended. Object names stay the same,
//! `.final` and the ownership epoch of each object included.
//!
//! With `wait_for_final` the copy waits for the final snapshot of the source. The source may be dead, so the
//! copy transfers the objects that exist meanwhile. Objects that turn out to be unneeded are left to garbage
//! collection.
//!
//! A chain is complete under two conditions. This process has read and hashed each of its objects, and the
//! chain reaches the revision at which the source's epoch was sealed. The hand-over of a planned move records
//! that revision ([`SourceEnd`]): a copy that does not reach it fails. A source that lost the shoot notes the
//! revision in its bucket ([`crate::seal_note`]), and records the final snapshot that follows the seal. A
//! takeover begins with the longest sound chain, and reports whether the chain is complete.
//!
//! A copy for a later epoch reads only the history of the epoch before. The copy records at its end the chain
//! with which the new epoch begins. That choice is final: a repeated copy transfers exactly the recorded
//! chain, even if the source has gained objects since then.

mod evidence;
mod gauge;
#[cfg(test)]
mod model;
mod report;
mod storing;
mod transfer;

pub use evidence::SourceEnd;
pub(crate) use evidence::{StatedEnd, missing_changes};
pub use gauge::{CopiedBytes, CopyGauge, serve_progress};
pub use report::Report;

use crate::chain::{self, Chain};
use crate::clock;
use crate::error::{Class, Error, Result};
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::{FIRST, Recorded, Store};
use evidence::Candidate;
use jiff::Timestamp;
use std::time::Duration;
use storing::Storing;
use tokio::time::{Instant, MissedTickBehavior};

/// How often the copy polls the source for the final snapshot. Each wait adds to the seconds in which a shoot
/// cannot be written; a listing costs little in comparison.
pub const POLL: Duration = Duration::from_secs(2);

/// How long the copy waits, after `wait_timeout`, for a source that reports that it is storing data. A delta
/// takes a second and a full snapshot of a common etcd some seconds. The shoot has no API meanwhile, so the
/// wait for a large snapshot is bounded.
pub const STORING_AT_MOST: Duration = Duration::from_secs(60);

/// The parameters of a copy.
pub struct Copy {
    /// Read only.
    pub source: Store,
    /// Written to.
    pub target: Store,
    /// Wait for the source's final snapshot first.
    pub wait_for_final: bool,
    /// Continue without the final snapshot after this time; zero waits for ever. The last listing of the
    /// source is taken when no more than [`POLL`] of this time is left. The copy ignores objects that appear
    /// after that listing.
    pub wait_timeout: Duration,
    /// Newest chains to copy; `None` for all.
    pub max_chains: Option<usize>,
    /// Older chains are left out, but never the newest.
    pub max_age: Option<Duration>,
    /// Deltas to copy in parallel.
    pub parallel: usize,
    /// An empty source is not an error.
    pub allow_empty: bool,
    /// The end of the source's epoch, if the hand-over recorded the end. A chain that does not reach this end
    /// is an error.
    pub end: Option<SourceEnd>,
    /// The gauge that counts the copied bytes.
    pub gauge: CopyGauge,
}

/// Whether a listing has every change up to a revision without a hole.
fn reaches(listing: &[Snapshot], sealed: i64, origin: i64) -> bool {
    let newest = chain::reachable(listing).ok().flatten();
    newest.is_some_and(|(chain, _)| evidence::missing_changes(chain.last_revision(), sealed, origin) == 0)
}

/// The time at which the newest of the snapshots was taken; `None` if the name of that snapshot holds an
/// invalid time.
fn saved<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Option<Timestamp> {
    // The order of the chain is the order of its revisions, even if the clock ran backwards.
    snapshots.last()?.taken_on()
}

impl Copy {
    /// Runs the copy.
    pub async fn run(&self) -> Result<Report> {
        let mut report = self.copied().await?;
        report.left_aside.extend(self.source.left_aside());
        Ok(report)
    }

    async fn copied(&self) -> Result<Report> {
        let epoch = self.target.epoch();
        if let Some(recorded) = self.target.recorded(epoch).await? {
            return self.again(&recorded).await;
        }
        let origin = self.source.origin_of(epoch).await?;
        let mut report = Report::default();
        let (mut listing, stated) = self.wait(origin, &mut report).await?;
        if listing.is_empty() && self.is_takeover() {
            listing = self.before(origin).await?;
        }
        let Some(chain) = self.best_chain(origin, &listing, &stated, &mut report).await? else {
            return self.nothing(report, origin);
        };
        let older = report.missing(self.older(&listing, &chain.full));
        self.transfer(older, &mut report)
            .await
            .map_err(|failed| failed.1)?;
        if epoch == FIRST {
            return Ok(report);
        }
        let chosen = Recorded {
            complete: report.complete,
            ..Recorded::from_chain(&chain, epoch, origin)
        };
        let recorded = self.target.record(chosen.clone()).await?;
        if recorded != chosen {
            // A concurrent copy recorded its chain first, from an earlier or later listing of the source.
            return self.again(&recorded).await;
        }
        tracing::info!(
            epoch,
            origin,
            revision = recorded.last_revision,
            complete = report.complete,
            "recorded what the epoch begins with"
        );
        Ok(report)
    }

    /// Whether this copy serves a takeover, where the source may be dead. No process can restore a missing
    /// object of a dead source, so a hole in the chain must not keep the shoot down.
    fn is_takeover(&self) -> bool {
        self.end.is_none() && self.target.epoch() > FIRST
    }

    /// The snapshots for a takeover whose origin epoch never began in the source, because the seed died
    /// before that. Returns the history of the newest epoch that the origin continues.
    async fn before(&self, origin: i64) -> Result<Vec<Snapshot>> {
        if self.source.recorded(origin).await?.is_some() {
            return Ok(Vec::new());
        }
        for former in self.source.origins_before(origin).await? {
            let listing = self.source.history(former).await?;
            if !listing.is_empty() {
                tracing::warn!(
                    origin,
                    former,
                    "the source holds no snapshot of the origin, so that the copy begins with the epoch before it"
                );
                return Ok(listing);
            }
        }
        Ok(Vec::new())
    }

    /// Copies the best readable chain. If the end of the source is recorded, an untrusted object leads to the
    /// next chain, and a chain that ends too early is an error. In a takeover an untrusted object also leads
    /// to the next chain, and a chain that ends too early is reported. Else the newest chain is the only
    /// candidate.
    async fn best_chain(
        &self,
        origin: i64,
        listing: &[Snapshot],
        stated: &StatedEnd,
        report: &mut Report,
    ) -> Result<Option<Chain>> {
        let mut rejected = Vec::new();
        loop {
            let found = match Candidate::newest(origin, listing, &rejected) {
                // No full snapshot is left: the object that was rejected is the cause.
                Err(_) if !rejected.is_empty() => None,
                found => found?,
            };
            let Some(candidate) = found else {
                let bad = rejected.pop();
                return bad.map_or(Ok(None), |(_, why)| Err(why));
            };
            let chain = candidate.chain;
            match (&self.end, candidate.hole) {
                (Some(end), hole) => {
                    let reached = (chain.last_revision(), hole.as_ref());
                    evidence::check_reaches(end, (origin, &self.source.prefix()), reached, &rejected)?;
                }
                (None, Some(hole)) if self.is_takeover() => {
                    tracing::warn!(%hole, "the chain is copied up to the hole");
                }
                (None, Some(hole)) => return Err(hole),
                (None, None) => {}
            }
            // The final snapshot holds all data; older chains follow only where the caller asks for them.
            let objects = report.missing(chain.objects().cloned());
            match self.transfer(objects, report).await {
                Ok(()) => {}
                Err(failed)
                    if (self.end.is_some() || self.is_takeover())
                        && failed.1.class == Class::SnapshotCorrupt =>
                {
                    tracing::warn!(snapshot = %failed.0, error = %failed.1, "left aside; looking for another chain");
                    report.left_aside.push(failed.0.to_string());
                    rejected.push(*failed);
                    continue;
                }
                Err(failed) => return Err(failed.1),
            }
            report.final_snapshot = candidate.is_final;
            report.last_revision = chain.last_revision();
            report.saved = saved(chain.objects());
            let is_end = candidate.is_final && self.trusts(stated, &chain.full);
            report.judge(stated.revision(), origin, self.accepted_loss(), is_end);
            return Ok(Some(chain));
        }
    }

    fn accepted_loss(&self) -> i64 {
        self.end.as_ref().map_or(0, |end| end.accepted_loss)
    }

    /// The end of the source's epoch: as the hand-over recorded it, else as the source stated it in its
    /// bucket.
    async fn stated_end(&self, origin: i64) -> Result<StatedEnd> {
        match &self.end {
            Some(end) => Ok(StatedEnd::recorded(origin, end)),
            None => StatedEnd::read(&self.source, origin).await,
        }
    }

    /// Whether a final snapshot is the end of the source. A takeover needs the source's own statement, since
    /// a final snapshot may be older than changes that the source acknowledged.
    fn trusts(&self, stated: &StatedEnd, last: &Snapshot) -> bool {
        !self.is_takeover() || stated.names(last)
    }

    /// Copies the recorded chain, regardless of the objects that the source holds now.
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
        if let Some(end) = &self.end {
            let reached = (recorded.last_revision, None);
            evidence::check_reaches(end, (recorded.origin, &self.source.prefix()), reached, &[])?;
        }
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
        // `final_snapshot` means the end of this epoch alone: a chain may begin with the end of an earlier
        // epoch.
        report.final_snapshot = matches!(&objects[..], [one] if one.is_final && one.epoch == recorded.origin);
        let stated = self.stated_end(recorded.origin).await?;
        let is_end = report.final_snapshot && objects.iter().all(|one| self.trusts(&stated, one));
        self.transfer(objects, &mut report)
            .await
            .map_err(|failed| failed.1)?;
        report.judge(stated.revision(), recorded.origin, self.accepted_loss(), is_end);
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

    /// Waits until the source's backups are complete, and copies the existing objects meanwhile. Returns the
    /// last listing, and the end that the source states for its epoch.
    async fn wait(&self, origin: i64, report: &mut Report) -> Result<(Vec<Snapshot>, StatedEnd)> {
        let begun = Instant::now();
        let mut polls = tokio::time::interval(POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_first, mut storing) = (true, Storing::default());
        loop {
            polls.tick().await;
            // Computed before the listing: a snapshot that appears after the listing is not missed.
            let last = !self.wait_timeout.is_zero() && begun.elapsed() + POLL > self.wait_timeout;
            let over = begun.elapsed().saturating_sub(self.wait_timeout);
            // The note is read before the listing: snapshots that the source stores between the two reads do
            // no harm.
            let stated = self.stated_end(origin).await?;
            let listing = self.source.history(origin).await?;
            let note = stated.note;
            let is_complete = chain::final_snapshot_of(origin, &listing)
                .is_some_and(|last| self.trusts(&stated, last))
                || note.is_some_and(|note| reaches(&listing, note.revision, origin));
            // A source that handed the shoot over stored its final snapshot before the hand-over. The second
            // listing covers a store with delayed listings.
            let is_known = self.end.is_some() && !is_first;
            if !self.wait_for_final || is_complete || is_known {
                return Ok((listing, stated));
            }
            if last && !(over < STORING_AT_MOST && storing.goes_on(note, listing.len(), Instant::now())) {
                tracing::warn!("the source's backups are not complete in time; copying what there is");
                report.wait_timed_out = true;
                return Ok((listing, stated));
            }
            storing.saw(note, listing.len(), Instant::now());
            // In a planned move the source has its final snapshot within the first two listings. Copying
            // ahead would then be needless.
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
        self.transfer(missing, report).await.map_err(|failed| failed.1)
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
}
