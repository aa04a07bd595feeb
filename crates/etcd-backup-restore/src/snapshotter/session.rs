//! One session: from connecting to etcd until something fails or a full snapshot begins a new chain.

use super::changes::{Changes, lost};
use super::plan::not_behind;
use super::{Latest, Plan, Request, Snapshotter, plan};
use crate::chain;
use crate::clock;
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, messages};
use crate::garbage;
use crate::snapshot_name::{Kind, Snapshot};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How a session ended without an error.
pub(super) enum End {
    /// Begin the next one.
    Again,
    /// Nobody can ask any more.
    Stopped,
}

/// Bound of catching up with etcd for a requested delta. It must be shorter than a caller's own timeout of a minute.
const CATCH_UP: Duration = Duration::from_secs(45);

impl Snapshotter {
    /// Runs until an error, or until a full snapshot begins a new chain.
    pub(super) async fn session(&mut self) -> Result<End> {
        if self.state.is_finished() {
            let Some(request) = self.requests.recv().await else {
                return Ok(End::Stopped);
            };
            self.serve_without_watch(request).await;
            return Ok(End::Again);
        }
        let etcd = self.settings.etcd.connect().await?;
        let revision = etcd.revision().await?;
        let listing = self.settings.store.list().await?;
        self.remember(&listing);
        let (reached, urgent) = match plan(
            &listing,
            revision,
            clock::now().as_second(),
            self.settings.full_window,
        )? {
            Plan::Continue { reached, urgent } => (reached, urgent),
            Plan::Full(reason) => {
                tracing::info!(reason, "taking a full snapshot at start");
                self.full(&etcd, false).await?;
                return Ok(End::Again);
            }
        };
        if self.settings.delta_period < Duration::from_secs(1) {
            self.state.active();
            return self.collect(etcd, None).await;
        }
        let changes = Changes::after(&etcd, reached, urgent, self.settings.compression).await?;
        self.state.active();
        match self.collect(etcd.clone(), Some(changes)).await {
            Err(e) if e.class == Class::Compacted => {
                tracing::info!(reason = e.message, "taking a full snapshot");
                self.full(&etcd, false).await?;
                Ok(End::Again)
            }
            ended => ended,
        }
    }

    async fn collect(&mut self, etcd: Etcd, mut changes: Option<Changes>) -> Result<End> {
        let now = clock::now();
        let until_full = self
            .settings
            .schedule
            .next(now)
            .and_then(|due| Duration::try_from(due.duration_since(now)).ok());
        let full_due = Instant::now() + until_full.unwrap_or(self.settings.full_window);
        let mut gc_due = Instant::now() + self.settings.gc_period;
        let mut delta_due = Instant::now() + self.settings.delta_period;
        loop {
            tokio::select! {
                answer = next(&mut changes) => {
                    let Some(changes) = &mut changes else { continue };
                    changes.add(answer?).await?;
                    self.metrics.required(Kind::Delta, !changes.delta.is_empty());
                    self.metrics.required(Kind::Full, !changes.delta.is_empty());
                    if changes.is_due_at_once(self.settings.delta_limit) {
                        self.flush(changes).await?;
                        delta_due = Instant::now() + self.settings.delta_period;
                    }
                }
                () = sleep_until(delta_due) => {
                    if let Some(changes) = &mut changes {
                        changes.catch_up(0).await?;
                        self.flush(changes).await?;
                    }
                    delta_due = Instant::now() + self.settings.delta_period;
                }
                () = sleep_until(full_due) => {
                    self.full(&etcd, false).await?;
                    return Ok(End::Again);
                }
                () = sleep_until(gc_due) => {
                    self.collect_garbage().await?;
                    gc_due = Instant::now() + self.settings.gc_period;
                }
                request = self.requests.recv() => match request {
                    None => return Ok(End::Stopped),
                    Some(Request::Delta(answer)) => {
                        let stored = self.requested_delta(&etcd, changes.as_mut()).await;
                        let failed = stored.as_ref().err().cloned();
                        let _ = answer.send(stored);
                        if let Some(e) = failed { return Err(e) }
                        delta_due = Instant::now() + self.settings.delta_period;
                    }
                    Some(request @ Request::Full(..)) => {
                        // A failed one leaves the collected changes as they are.
                        if self.serve_without_watch(request).await { return Ok(End::Again) }
                    }
                },
            }
        }
    }

    /// Serves a request that needs no collected changes; tells whether a snapshot was stored.
    pub(super) async fn serve_without_watch(&mut self, request: Request) -> bool {
        match request {
            Request::Full(is_final, answer) => {
                let taken = match self.settings.etcd.connect().await {
                    Ok(etcd) => self.full(&etcd, is_final).await,
                    Err(e) => Err(e),
                };
                if let Err(e) = &taken {
                    tracing::warn!(class = e.class.word(), error = %e, is_final, "a requested full snapshot failed");
                }
                let stored = taken.is_ok();
                let _ = answer.send(taken);
                stored
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

    async fn full(&mut self, etcd: &Etcd, is_final: bool) -> Result<Snapshot> {
        if self.state.is_finished() && !is_final {
            return Err(finished());
        }
        let revision = etcd.revision().await?;
        let listing = self.settings.store.list().await?;
        self.remember(&listing);
        not_behind(&listing, revision)?;
        // Of exactly what etcd holds now, so that asking again takes none (R17-40).
        let found = chain::final_snapshot(&listing).filter(|found| found.last_revision == revision);
        if let Some(found) = found.filter(|_| is_final) {
            tracing::info!(snapshot = %found, "the final snapshot exists already");
            self.state.finished();
            return Ok(found.clone());
        }
        let begun = Instant::now();
        let taken = crate::full::take(etcd, &self.settings.store, self.settings.compression, is_final).await;
        self.metrics.observe(Kind::Full, taken.is_ok(), begun.elapsed());
        let snapshot = taken?;
        tracing::info!(%snapshot, bytes = snapshot.size, seconds = begun.elapsed().as_secs_f64(), "stored");
        self.state.stored(&snapshot);
        self.metrics.latest(Some(&snapshot), &[]);
        self.metrics.required(Kind::Full, false);
        self.metrics.required(Kind::Delta, false);
        if is_final {
            self.state.finished();
        }
        Ok(snapshot)
    }

    fn remember(&self, listing: &[Snapshot]) {
        // A hole is the plan's to judge; what is shown then is the newest full snapshot alone.
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

    async fn requested_delta(&self, etcd: &Etcd, changes: Option<&mut Changes>) -> Result<Option<Snapshot>> {
        let Some(changes) = changes else {
            return Err(Error::new(
                Class::Configuration,
                "delta snapshots are switched off by --delta-snapshot-period",
            ));
        };
        let revision = etcd.revision().await?;
        match tokio::time::timeout(CATCH_UP, changes.catch_up(revision)).await {
            Ok(done) => done?,
            Err(_) => {
                return Err(Error::new(
                    Class::Etcd,
                    format!("etcd did not send revision {revision} in time"),
                ));
            }
        }
        self.flush(changes).await
    }

    async fn flush(&self, changes: &mut Changes) -> Result<Option<Snapshot>> {
        let begun = Instant::now();
        let Some((snapshot, packed)) = changes.take(self.settings.compression)? else {
            return Ok(None);
        };
        let stored = async {
            let mut upload = self.settings.store.upload(&snapshot)?;
            upload.write(&packed).await?;
            upload.complete().await
        };
        let stored = stored.await;
        self.metrics.observe(Kind::Delta, stored.is_ok(), begun.elapsed());
        stored?;
        changes.urgent = None;
        tracing::info!(%snapshot, bytes = snapshot.size, "stored");
        self.state.stored(&snapshot);
        let latest = self.state.latest();
        self.metrics.latest(latest.full.as_ref(), &latest.deltas);
        self.metrics.required(Kind::Delta, false);
        Ok(Some(snapshot))
    }

    async fn collect_garbage(&self) -> Result<()> {
        let listing = self.settings.store.list().await?;
        let now = clock::now().as_second();
        for victim in garbage::victims(&listing, self.settings.policy, self.settings.max_backups, now) {
            self.settings.store.delete(&victim).await?;
            self.metrics.collected(victim.kind);
            tracing::info!(snapshot = %victim, "collected");
        }
        Ok(())
    }
}

async fn next(changes: &mut Option<Changes>) -> Result<Option<messages::WatchResponse>> {
    match changes {
        Some(changes) => changes.watch.message().await.map_err(|status| lost(&status)),
        None => std::future::pending().await,
    }
}

fn finished() -> Error {
    Error::new(
        Class::Finished,
        "the final snapshot was taken; no other follows until this process is started again",
    )
}
