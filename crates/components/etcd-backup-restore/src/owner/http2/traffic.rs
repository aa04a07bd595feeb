//! Control of the requests that pass a gate: hold new requests, wait for writes under way, end streams, ask
//! clients to leave, and route to a different etcd.
//!
//! The order of a cut is: [`GateTraffic::hold`], [`GateTraffic::wait_for_writes`],
//! [`GateTraffic::end_streams`], [`GateTraffic::wait_for_streams`]. No timer releases held requests.

use super::open_streams::{OpenStream, OpenStreams};
use crate::metrics::GateMetrics;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A request that is held for longer is answered with UNAVAILABLE: the client decides whether to repeat the
/// request.
const HELD_FOR: Duration = Duration::from_secs(5);

/// The requests of all connections of a gate.
pub struct GateTraffic {
    is_held: watch::Sender<bool>,
    writes: watch::Sender<usize>,
    open: Arc<OpenStreams>,
    /// Cancelled, and replaced, when the streams are ended.
    streams: Mutex<CancellationToken>,
    /// Cancelled, and replaced, when clients are asked to leave.
    leaving: Mutex<CancellationToken>,
    target: watch::Sender<SocketAddr>,
    metrics: GateMetrics,
}

fn present(token: &Mutex<CancellationToken>) -> CancellationToken {
    token.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn cancel(token: &Mutex<CancellationToken>) {
    let mut token = token.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *token).cancel();
}

impl GateTraffic {
    /// Nothing is held, and requests go to `target`.
    #[must_use]
    pub fn new(target: SocketAddr, metrics: GateMetrics) -> Self {
        Self {
            is_held: watch::Sender::default(),
            writes: watch::Sender::default(),
            open: Arc::new(OpenStreams::new()),
            streams: Mutex::default(),
            leaving: Mutex::default(),
            target: watch::Sender::new(target),
            metrics,
        }
    }

    /// Holds new requests. Requests that were admitted before go on.
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    /// Admits the held requests, and new requests.
    pub fn release(&self) {
        self.is_held.send_replace(false);
    }

    /// Number of writes that etcd has not answered, with the writes that clients gave up.
    #[must_use]
    pub fn writes(&self) -> usize {
        *self.writes.borrow()
    }

    /// Waits until etcd has answered all writes. After [`Self::hold`] none is added.
    pub async fn wait_for_writes(&self) {
        // The sender is in `self`.
        let _ = self.writes.subscribe().wait_for(|writes| *writes == 0).await;
    }

    /// Ends reads under way, and streams at the end of a message, with the status UNAVAILABLE in a trailer:
    /// etcd's client repeats the reads and resumes the streams. After RST_STREAM with CANCEL etcd's client
    /// would end its watches for ever.
    pub fn end_streams(&self) {
        cancel(&self.streams);
    }

    /// Number of reads that etcd has not answered, and of streams that have not ended.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.open.count()
    }

    /// Waits until all reads and streams have ended. After [`Self::hold`] none is added, and after
    /// [`Self::end_streams`] each ends as soon as its client takes the rest of the message under way. A
    /// client that takes nothing makes this wait for ever: the caller sets the bound, see
    /// [`Self::longest_delay`].
    pub async fn wait_for_streams(&self) {
        self.open.wait_for_end().await;
    }

    /// How long the slowest client of a stream has left messages unread.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        self.open.longest_delay()
    }

    /// Sends GOAWAY on all connections: clients open new connections, and requests under way go on.
    pub fn ask_clients_to_leave(&self) {
        cancel(&self.leaving);
    }

    /// Sends requests that are admitted from now on to this address. Requests under way stay with their etcd.
    pub fn route_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Where a request that is admitted now goes.
    pub(super) fn target(&self) -> SocketAddr {
        *self.target.borrow()
    }

    /// Cancelled with the next [`Self::ask_clients_to_leave`].
    pub(super) fn leaving(&self) -> CancellationToken {
        present(&self.leaving)
    }

    /// Waits until requests are admitted. The stream counts, and has the token of the next
    /// [`Self::end_streams`], before the check whether requests are held: an end of streams after
    /// [`Self::hold`] misses no stream.
    ///
    /// # Errors
    /// The request was held for too long.
    pub(super) async fn admit(&self) -> Result<OpenStream, HeldTooLong> {
        loop {
            let stream = OpenStream::new(&self.open, present(&self.streams));
            if !*self.is_held.borrow() {
                return Ok(stream);
            }
            drop(stream);
            self.wait_for_release().await?;
        }
    }

    async fn wait_for_release(&self) -> Result<(), HeldTooLong> {
        let mut is_held = self.is_held.subscribe();
        let released = is_held.wait_for(|is_held| !is_held);
        timeout(HELD_FOR, released)
            .await
            .map(drop)
            .map_err(|_| HeldTooLong)
    }

    /// As [`Self::admit`], for a write. The write counts before the check whether requests are held:
    /// [`Self::wait_for_writes`] after [`Self::hold`] misses no write.
    pub(super) async fn admit_write(self: &Arc<Self>) -> Result<WriteUnderWay, HeldTooLong> {
        loop {
            let write = WriteUnderWay::new(self);
            if !*self.is_held.borrow() {
                return Ok(write);
            }
            drop(write);
            self.wait_for_release().await?;
        }
    }

    fn count(&self, change: impl FnOnce(&mut usize)) {
        self.writes.send_modify(change);
    }
}

/// The request was held for too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldTooLong;

/// A write that etcd has not answered.
pub(super) struct WriteUnderWay(Arc<GateTraffic>);

impl WriteUnderWay {
    fn new(traffic: &Arc<GateTraffic>) -> Self {
        traffic.count(|writes| *writes += 1);
        traffic.metrics.writes(1);
        Self(traffic.clone())
    }
}

impl Drop for WriteUnderWay {
    fn drop(&mut self) {
        self.0.count(|writes| *writes -= 1);
        self.0.metrics.writes(-1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::FutureExt;

    fn traffic() -> Arc<GateTraffic> {
        let target = "127.0.0.1:2382".parse().unwrap();
        Arc::new(GateTraffic::new(target, GateMetrics::default()))
    }

    #[tokio::test]
    async fn a_cut_waits_for_each_write_that_was_admitted_and_admits_none() {
        let traffic = traffic();
        let [first, second] = [
            traffic.admit_write().await.unwrap(),
            traffic.admit_write().await.unwrap(),
        ];
        traffic.hold();
        assert!(traffic.admit_write().now_or_never().is_none());
        assert_eq!(traffic.writes(), 2);
        drop(first);
        assert!(traffic.wait_for_writes().now_or_never().is_none());
        drop(second);
        assert!(traffic.wait_for_writes().now_or_never().is_some());
        traffic.release();
        traffic.admit_write().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_request_waits_for_five_seconds_at_most() {
        let traffic = traffic();
        traffic.hold();
        let begun = tokio::time::Instant::now();
        assert_eq!(traffic.admit().await.err(), Some(HeldTooLong));
        assert_eq!(traffic.admit_write().await.err(), Some(HeldTooLong));
        assert_eq!(begun.elapsed(), 2 * HELD_FOR);
        assert_eq!(traffic.writes(), 0);
    }

    #[tokio::test]
    async fn a_cut_waits_for_the_end_of_each_stream_and_admits_none() {
        let traffic = traffic();
        let [first, second] = [traffic.admit().await.unwrap(), traffic.admit().await.unwrap()];
        traffic.hold();
        traffic.end_streams();
        assert!(traffic.admit().now_or_never().is_none());
        assert_eq!(traffic.streams(), 2);
        drop(first);
        assert!(traffic.wait_for_streams().now_or_never().is_none());
        drop(second);
        assert!(traffic.wait_for_streams().now_or_never().is_some());
    }

    #[tokio::test]
    async fn streams_that_begin_after_an_end_of_streams_go_on() {
        let traffic = traffic();
        let former = traffic.admit().await.unwrap();
        traffic.end_streams();
        let later = traffic.admit().await.unwrap();
        assert!(former.end().is_cancelled() && !later.end().is_cancelled());
        assert!(!traffic.leaving().is_cancelled());
    }
}
