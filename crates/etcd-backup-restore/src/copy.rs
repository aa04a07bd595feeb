//! `copy`: brings snapshots from one store to another.
//!
//! Object by object, streamed and verified before the target object appears; what is there already and sound
//! is skipped, so that a run that was killed goes on where it was. Names stay as they are, `.final` included,
//! and so does the ownership epoch of each object.
//!
//! A source that lets one wait for its final snapshot may be dead: what it has is copied meanwhile. What of
//! it is not needed in the end is left to the garbage collection.
//!
//! A chain is complete if this process has read and hashed each object of the chain, and the chain reaches
//! the revision at which the source's epoch was sealed. The hand-over of a planned move records that revision
//! ([`SourceEnd`]): a copy that does not reach it fails. A source that lost the shoot notes the revision in
//! its bucket ([`crate::seal_note`]), and records the final snapshot that follows the seal. A takeover begins
//! with the longest sound chain, and reports whether the chain is complete.
//!
//! A copy for a later epoch looks at the history of the epoch before only, and records at its end which chain
//! the new epoch begins with. That is chosen once: whatever the source gets afterwards, a repeated copy
//! brings exactly that chain.

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
pub use report::{Report, Summary};

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

/// How often the source is asked for the final snapshot. Each wait adds to the seconds in which a shoot
/// cannot be written; a listing costs little beside that.
pub const POLL: Duration = Duration::from_secs(2);

/// How long the copy waits, after its patience has ended, for a source that reports that it is storing data.
/// A delta takes a second and a full snapshot of a common etcd some seconds; the shoot has no API meanwhile,
/// so that a large one is not waited for without end.
pub const STORING_AT_MOST: Duration = Duration::from_secs(60);

/// What to copy.
pub struct Copy {
    /// Read only.
    pub source: Store,
    /// Written to.
    pub target: Store,
    /// Wait for the source's final snapshot first.
    pub wait_for_final: bool,
    /// Go on without it after this time; zero waits for ever. The source is looked at once more when no more
    /// than [`POLL`] of it is left, and what is there by then is all that is copied.
    pub wait_timeout: Duration,
    /// Newest chains to copy; `None` for all.
    pub max_chains: Option<usize>,
    /// Older chains are left out, but never the newest.
    pub max_age: Option<Duration>,
    /// Deltas on their way at the same time.
    pub parallel: usize,
    /// An empty source is not an error.
    pub allow_empty: bool,
    /// The end of the source's epoch, where its hand-over recorded it: a chain that does not reach it is an
    /// error.
    pub end: Option<SourceEnd>,
    /// Where the copy counts bytes.
    pub gauge: CopyGauge,
}

/// Whether a listing has every change up to a revision without a hole.
fn reaches(listing: &[Snapshot], sealed: i64, origin: i64) -> bool {
    let newest = chain::reachable(listing).ok().flatten();
    newest.is_some_and(|(chain, _)| evidence::missing_changes(chain.last_revision(), sealed, origin) == 0)
}

/// When the newest of them was taken. Nothing where its name says a time that can be none.
fn saved<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Option<Timestamp> {
    // The order of the chain is that of its revisions, whatever the clock did.
    snapshots.last()?.taken_on()
}

impl Copy {
    /// Does it.
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
            ..Recorded::of(&chain, epoch, origin)
        };
        let recorded = self.target.record(chosen.clone()).await?;
        if recorded != chosen {
            // Another copy was faster, and saw the source at another time.
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

    /// Whether the source may be dead: nobody can put a missing object back then, so that a hole in the chain
    /// must not keep the shoot down.
    fn is_takeover(&self) -> bool {
        self.end.is_none() && self.target.epoch() > FIRST
    }

    /// The snapshots for a takeover whose origin never began in the source, since the seed died before that:
    /// the history of the newest epoch with which the origin goes on.
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

    /// Brings the best chain that can be read. Where the end of the source is recorded, an object that cannot
    /// be trusted leads to the next chain, and a chain that ends too early is an error. The same in a
    /// takeover, where a chain that ends too early is reported. Else the newest chain is the only candidate.
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
            // The final snapshot holds everything; older chains follow only where they are asked for.
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
        // It stands for the end alone, and for that of this epoch: a chain may begin with the end of an
        // earlier one.
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

    /// Waits until the source's backups are complete, and copies meanwhile what is there; gives the last
    /// listing, and what is known of the end of the source's epoch.
    async fn wait(&self, origin: i64, report: &mut Report) -> Result<(Vec<Snapshot>, StatedEnd)> {
        let begun = Instant::now();
        let mut polls = tokio::time::interval(POLL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_first, mut storing) = (true, Storing::default());
        loop {
            polls.tick().await;
            // Before it is looked: what comes after that is not missed.
            let last = !self.wait_timeout.is_zero() && begun.elapsed() + POLL > self.wait_timeout;
            let over = begun.elapsed().saturating_sub(self.wait_timeout);
            // The note before the listing: what the source has stored since then does no harm.
            let stated = self.stated_end(origin).await?;
            let listing = self.source.history(origin).await?;
            let note = stated.note;
            let is_complete = chain::final_snapshot_of(origin, &listing)
                .is_some_and(|last| self.trusts(&stated, last))
                || note.is_some_and(|note| reaches(&listing, note.revision, origin));
            // The final snapshot of a source that handed the shoot over was there before that. One look more
            // is for a store that is behind.
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
