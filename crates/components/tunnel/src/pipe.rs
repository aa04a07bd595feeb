//! Copies bytes in both directions, until both ends have closed, an end breaks off, or the connection was
//! idle for too long.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
    time::sleep,
};

use crate::limits::BUFFER;

/// Copies bytes between two ends. The end of a direction is passed on, and the reverse direction continues: a
/// client may finish the request and still read.
///
/// # Errors
/// An end broke off, or no byte moved for `idle` (up to twice that time).
pub async fn join(
    left: impl AsyncRead + AsyncWrite,
    right: impl AsyncRead + AsyncWrite,
    idle: Duration,
) -> io::Result<()> {
    join_bounded(left, right, idle, idle).await
}

/// As [`join`], with a separate limit for a half-open connection, because the open end may never send again.
///
/// # Errors
/// An end broke off. Or no byte moved for `idle`, or for `half_open` after the first end has closed (up to
/// twice that time).
pub async fn join_bounded(
    left: impl AsyncRead + AsyncWrite,
    right: impl AsyncRead + AsyncWrite,
    idle: Duration,
    half_open: Duration,
) -> io::Result<()> {
    let (left_reader, left_writer) = tokio::io::split(left);
    let (right_reader, right_writer) = tokio::io::split(right);
    let seen = PipeProgress::default();
    let both = async {
        tokio::try_join!(
            one_way(left_reader, right_writer, &seen),
            one_way(right_reader, left_writer, &seen),
        )
    };
    let still = async {
        tokio::select! {
            () = stillness(&seen.moved, idle) => return,
            () = seen.ended.notified() => {}
        }
        stillness(&seen.moved, half_open).await;
    };
    tokio::select! {
        done = both => done.map(drop),
        () = still => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing moved for too long")),
    }
}

/// Observations of both directions.
#[derive(Default)]
struct PipeProgress {
    /// Bytes moved since the last check.
    moved: AtomicBool,
    /// A direction has ended.
    ended: Notify,
}

async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    seen: &PipeProgress,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        seen.moved.store(true, Ordering::Relaxed);
        if read == 0 {
            seen.ended.notify_one();
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
        seen.moved.store(true, Ordering::Relaxed);
    }
}

async fn stillness(moved: &AtomicBool, idle: Duration) {
    loop {
        sleep(idle).await;
        if !moved.swap(false, Ordering::Relaxed) {
            return;
        }
    }
}

#[cfg(test)]
#[path = "pipe_tests.rs"]
mod tests;
