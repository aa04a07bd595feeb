//! A session: from the connection to etcd until an error, or until a full snapshot begins a new chain.

use super::changes::Changes;
use super::plan::{Plan, not_behind, plan};
use super::proof::Proof;
use super::requests::Request;
use super::state::Latest;
use super::worker::Worker;
use crate::chain;
use crate::clock;
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, messages};
use crate::restored_note::RestoredNote;
use crate::snapshot_name::{Kind, Snapshot};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// When the next session begins, after a session that ended without an error.
pub(super) enum NextSession {
    /// At once.
    Now,
    /// At this time.
    At(Instant),
    /// Stop was requested, or the request channel is closed.
    Never,
}

/// The state with which a session begins.
enum SessionStart {
    /// The changes of an etcd; `None` where deltas are disabled.
    Collecting(Etcd, Option<Box<Changes>>),
    /// The final snapshot is taken.
    Finished,
    /// The session has already ended.
    Ended(NextSession),
}

impl Worker {
    /// Runs until an error, until a full snapshot begins a new chain, or until stopped.
    pub(super) async fn session(&mut self, stop: &CancellationToken) -> Result<NextSession> {
        let begun = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(NextSession::Never),
            begun = self.begin() => begun?,
        };
        let (etcd, mut changes) = match begun {
            SessionStart::Ended(end) => return Ok(end),
            SessionStart::Finished => return Ok(self.serve_finished(stop).await),
            SessionStart::Collecting(etcd, changes) => (etcd, changes),
        };
        self.state.active();
        let ended = self.collect(&etcd, &mut changes, stop).await;
        // etcd may be gone for good, together with its volume: the collected changes are kept.
        if let (Err(e), Some(changes)) = (&ended, &mut changes)
            && matches!(e.class, Class::Etcd | Class::Compacted)
        {
            self.keep(changes).await;
        }
        match ended {
            Err(e) if e.class == Class::Compacted => {
                self.begin_with = Some(e.message);
                Ok(NextSession::Now)
            }
            ended => ended,
        }
    }

    async fn begin(&mut self) -> Result<SessionStart> {
        if self.state.is_finished() {
            return Ok(SessionStart::Finished);
        }
        let etcd = self.settings.etcd.connect().await?;
        let revision = etcd.revision().await?;
        let listing = self.settings.store.list().await?;
        self.remember(&listing);
        let recorded = Proof::recorded(&self.settings.store).await?;
        if let Some(proof) =
            recorded.filter(|proof| proof.is_valid_for(&listing, revision, self.settings.store.epoch()))
        {
            tracing::info!(
                snapshot = proof.snapshot,
                "the final snapshot was taken by an earlier process"
            );
            self.state.finished(proof);
            return Ok(SessionStart::Finished);
        }
        let rested = self.last_full.map(|(ended, _)| ended.elapsed());
        let now = clock::now().as_second();
        let epoch = self.settings.store.epoch();
        let begun_with = self.settings.store.recorded(epoch).await?;
        let origin = begun_with.map(|recorded| recorded.origin);
        let planned = plan(
            &listing,
            (revision, epoch, origin),
            now,
            self.settings.full_window,
            rested,
        )?;
        let left_out = self.state.latest().last_revision() + 1..=revision;
        let planned = match RestoredNote::read(&self.settings.store).await? {
            // No delta continues across the revisions that the restore has skipped.
            Some(note) if left_out.contains(&note.revision) => Plan::Full(format!(
                "etcd went on with revision {} after a restore",
                note.revision
            )),
            _ => planned,
        };
        match (self.begin_with.clone(), planned) {
            (Some(reason), _) | (None, Plan::Full(reason)) => self.begin_full(&etcd, &reason).await,
            (None, Plan::Continue { reached, urgent }) => {
                let changes = match self.settings.delta_period {
                    Duration::ZERO => None,
                    _ => Some(Box::new(
                        Changes::after(&etcd, reached, urgent, self.settings.compression).await?,
                    )),
                };
                Ok(SessionStart::Collecting(etcd, changes))
            }
        }
    }

    /// A full snapshot at start, but never directly after the previous full snapshot: that would only fill
    /// the store.
    async fn begin_full(&mut self, etcd: &Etcd, reason: &str) -> Result<SessionStart> {
        let rested = self.rested();
        if rested > Instant::now() {
            return Ok(SessionStart::Ended(NextSession::At(rested)));
        }
        tracing::info!(reason, "taking a full snapshot at start");
        self.full(etcd).await?;
        Ok(SessionStart::Ended(NextSession::Now))
    }

    /// The earliest time of the next unrequested full snapshot: after a rest as long as the last full
    /// snapshot took.
    fn rested(&self) -> Instant {
        self.last_full
            .map_or_else(Instant::now, |(ended, took)| ended + took)
    }

    /// Answers requests until stopped; the urgent resume request leaves the finished state elsewhere.
    async fn serve_finished(&mut self, stop: &CancellationToken) -> NextSession {
        loop {
            tokio::select! {
                () = stop.cancelled() => return NextSession::Never,
                request = self.requests.recv() => match request {
                    None => return NextSession::Never,
                    Some(request) => {
                        self.serve_without_watch(request).await;
                    }
                },
            }
        }
    }

    async fn collect(
        &mut self,
        etcd: &Etcd,
        changes: &mut Option<Box<Changes>>,
        stop: &CancellationToken,
    ) -> Result<NextSession> {
        let full_due = self.full_due();
        let mut delta_due = Instant::now() + self.settings.delta_period;
        loop {
            if stop.is_cancelled() {
                self.last_delta(etcd, changes.as_deref_mut()).await;
                return Ok(NextSession::Never);
            }
            tokio::select! {
                () = stop.cancelled() => {}
                answer = next(changes) => {
                    let Some(changes) = changes else { continue };
                    changes.add(answer?).await?;
                    self.metrics.required(Kind::Delta, !changes.delta.is_empty());
                    self.metrics.required(Kind::Full, !changes.delta.is_empty());
                    if changes.is_due_at_once(self.settings.delta_limit) {
                        self.flush(changes).await?;
                        delta_due = Instant::now() + self.settings.delta_period;
                    }
                }
                () = sleep_until(delta_due), if changes.is_some() => {
                    if let Some(changes) = changes {
                        self.store_up_to(changes, 0).await?;
                    }
                    delta_due = Instant::now() + self.settings.delta_period;
                }
                () = sleep_until(full_due) => {
                    // If stop is requested meanwhile, the full snapshot is abandoned: storing the collected
                    // changes is more important.
                    let taken = stop.run_until_cancelled(self.full(etcd)).await;
                    if taken.transpose()?.is_some() { return Ok(NextSession::Now) }
                }
                request = self.requests.recv() => match request {
                    None => return Ok(NextSession::Never),
                    Some(Request::Delta(answer)) => {
                        let asked = self.requested_delta(etcd, changes.as_deref_mut());
                        let Some(stored) = stop.run_until_cancelled(asked).await else { continue };
                        let failed = stored.as_ref().err().cloned();
                        let _ = answer.send(stored);
                        if let Some(e) = failed { return Err(e) }
                        delta_due = Instant::now() + self.settings.delta_period;
                    }
                    Some(Request::MakeRoom(answer)) => {
                        let made = self.make_room_after_delta(etcd, changes.as_deref_mut());
                        let Some(made) = stop.run_until_cancelled(made).await else { continue };
                        let _ = answer.send(made);
                    }
                    Some(request @ Request::Full(..)) => {
                        // A failed full snapshot leaves the collected changes unchanged.
                        let stored = stop.run_until_cancelled(self.serve_without_watch(request)).await;
                        if stored == Some(true) { return Ok(NextSession::Now) }
                    }
                },
            }
        }
    }

    fn full_due(&self) -> Instant {
        let now = clock::now();
        let due = self.settings.schedule.next(now);
        let until = due.and_then(|due| Duration::try_from(due.duration_since(now)).ok());
        (Instant::now() + until.unwrap_or(self.settings.full_window)).max(self.rested())
    }

    /// Serves a request that needs no collected changes; returns whether a snapshot was stored.
    pub(super) async fn serve_without_watch(&mut self, request: Request) -> bool {
        match request {
            Request::Full(answer) => {
                let taken = if self.state.is_finished() {
                    Err(finished())
                } else {
                    self.requested_full().await
                };
                if let Err(e) = &taken {
                    tracing::warn!(class = e.class.as_str(), error = %e, "a requested full snapshot failed");
                }
                let stored = taken.is_ok();
                let _ = answer.send(taken);
                stored
            }
            Request::MakeRoom(answer) => {
                let _ = answer.send(self.make_room().await);
                false
            }
            Request::Delta(answer) => {
                let (_, error) = self.state.health();
                let why = error.unwrap_or_else(|| "the snapshotter has not started yet".to_owned());
                let refused = if self.state.is_finished() {
                    finished()
                } else {
                    Error::new(Class::Etcd, why)
                };
                let _ = answer.send(Err(refused));
                false
            }
        }
    }

    async fn requested_full(&mut self) -> Result<Snapshot> {
        let etcd = self.settings.etcd.connect().await?;
        self.full(&etcd).await
    }

    async fn full(&mut self, etcd: &Etcd) -> Result<Snapshot> {
        let revision = etcd.revision().await?;
        let listing = self.settings.store.list().await?;
        self.remember(&listing);
        not_behind(&listing, revision)?;
        let (snapshot, _) = self.store_full(etcd, false).await?;
        self.begin_with = None;
        Ok(snapshot)
    }

    /// Takes and stores a full snapshot; returns the snapshot with the hash of the sent bytes.
    pub(super) async fn store_full(&mut self, etcd: &Etcd, is_final: bool) -> Result<(Snapshot, String)> {
        let begun = Instant::now();
        let taken = crate::full::take(etcd, &self.settings.store, self.settings.compression, is_final).await;
        self.metrics.observe(Kind::Full, taken.is_ok(), begun.elapsed());
        let (snapshot, sent) = taken?;
        tracing::info!(%snapshot, bytes = snapshot.size, seconds = begun.elapsed().as_secs_f64(), "stored");
        self.last_full = Some((Instant::now(), begun.elapsed()));
        self.state.stored(&snapshot);
        self.metrics.latest(Some(&snapshot), &[]);
        self.metrics.required(Kind::Full, false);
        self.metrics.required(Kind::Delta, false);
        Ok((snapshot, sent))
    }

    pub(super) fn remember(&self, listing: &[Snapshot]) {
        // The plan reports a hole; until then only the newest full snapshot is shown.
        let latest = match chain::newest(listing) {
            Ok(Some(newest)) => Latest {
                full: Some(newest.full),
                deltas: newest.deltas,
            },
            _ => Latest {
                full: chain::fulls_newest_first(listing)
                    .first()
                    .map(|&full| full.clone()),
                deltas: vec![],
            },
        };
        self.metrics.latest(latest.full.as_ref(), &latest.deltas);
        self.state.set_latest(latest);
    }
}

async fn next(changes: &mut Option<Box<Changes>>) -> Result<messages::WatchResponse> {
    match changes {
        Some(changes) => changes.watch.next().await,
        None => std::future::pending().await,
    }
}

pub(super) fn finished() -> Error {
    Error::new(
        Class::Finished,
        "the final snapshot was taken; no other follows until POST /snapshot/resume",
    )
}
