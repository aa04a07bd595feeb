//! Reads and streams that have passed the gate and have not ended.
//!
//! A cut waits for the end of all of them. A move begins only while no client leaves a message unread for
//! long: the stream of such a client could not end in time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The value of an [`UnreadSince`] whose client has read all messages.
const ALL_READ: u64 = 0;

/// When the newest message was passed on that the client has not read: milliseconds from
/// [`OpenStreams::begun`], from 1.
type UnreadSince = Arc<AtomicU64>;

/// All reads and streams of a gate.
pub(super) struct OpenStreams {
    begun: Instant,
    last_id: AtomicU64,
    count: watch::Sender<usize>,
    unread: Mutex<HashMap<u64, UnreadSince>>,
}

impl OpenStreams {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            last_id: AtomicU64::default(),
            count: watch::Sender::default(),
            unread: Mutex::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub(super) async fn wait_for_end(&self) {
        // The sender is in `self`.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    pub(super) fn longest_delay(&self) -> Duration {
        let unread = self.unread();
        let since = unread.values().map(|since| since.load(Ordering::Relaxed));
        let first = since.filter(|since| *since != ALL_READ).min();
        first.map_or(Duration::ZERO, |first| {
            Duration::from_millis(self.now().saturating_sub(first))
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).map_or(u64::MAX, |now| now.saturating_add(1))
    }

    fn unread(&self) -> MutexGuard<'_, HashMap<u64, UnreadSince>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read or stream, open until dropped.
pub(super) struct OpenStream {
    all: Arc<OpenStreams>,
    id: u64,
    unread: UnreadSince,
    end: CancellationToken,
}

impl OpenStream {
    /// `end` is cancelled when the gate ends the stream.
    pub(super) fn new(all: &Arc<OpenStreams>, end: CancellationToken) -> Self {
        let (id, unread) = (
            all.last_id.fetch_add(1, Ordering::Relaxed),
            UnreadSince::default(),
        );
        all.unread().insert(id, unread.clone());
        all.count.send_modify(|count| *count += 1);
        Self {
            all: all.clone(),
            id,
            unread,
            end,
        }
    }

    pub(super) fn end(&self) -> &CancellationToken {
        &self.end
    }

    /// A message, or a part of a message, was passed on to the client.
    pub(super) fn record_message(&self) {
        self.unread.store(self.all.now(), Ordering::Relaxed);
    }

    /// The client takes further messages.
    pub(super) fn record_read(&self) {
        self.unread.store(ALL_READ, Ordering::Relaxed);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.all.unread().remove(&self.id);
        self.all.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_client_that_is_slowest_counts() {
        let all = Arc::new(OpenStreams::new());
        let [idle, slow, slower] = [(); 3].map(|()| OpenStream::new(&all, CancellationToken::new()));
        assert_eq!((all.count(), all.longest_delay()), (3, Duration::ZERO));
        slower.record_message();
        tokio::time::advance(Duration::from_secs(7)).await;
        slow.record_message();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(all.longest_delay(), Duration::from_secs(12));
        slower.record_read();
        assert_eq!(all.longest_delay(), Duration::from_secs(5));
        drop(slow);
        assert_eq!((all.count(), all.longest_delay()), (2, Duration::ZERO));
        drop((idle, slower));
        all.wait_for_end().await;
    }
}
