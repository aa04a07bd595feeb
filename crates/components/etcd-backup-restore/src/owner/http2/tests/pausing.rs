//! A client that reads no byte for a while.

use futures::task::AtomicWaker;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Default)]
struct ReadState {
    is_stopped: AtomicBool,
    reader: AtomicWaker,
}

/// Stops and resumes the reads of a [`PausingStream`].
#[derive(Clone, Default)]
pub(super) struct ReadSwitch(Arc<ReadState>);

impl ReadSwitch {
    pub(super) fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::SeqCst);
    }

    pub(super) fn resume(&self) {
        self.0.is_stopped.store(false, Ordering::SeqCst);
        self.0.reader.wake();
    }
}

/// A stream that writes at any time, and reads while the switch is not stopped.
pub(super) struct PausingStream<S> {
    stream: S,
    switch: ReadSwitch,
}

impl<S> PausingStream<S> {
    pub(super) fn new(stream: S, switch: &ReadSwitch) -> Self {
        Self {
            stream,
            switch: switch.clone(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PausingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Before the check, so that no `resume` is missed.
        self.switch.0.reader.register(context.waker());
        if self.switch.0.is_stopped.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PausingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
