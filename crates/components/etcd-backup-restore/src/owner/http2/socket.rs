//! A socket that writes no byte without the permit.

use crate::owner::pipe::Abrupt;
use mutation::Mutation;
use permit::Permit;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether both sides of a connection have finished in order. Unsent bytes are then delivered, see
/// [`Abrupt`].
#[derive(Clone, Default)]
pub(super) struct OrderlyEnd(Arc<AtomicBool>);

impl OrderlyEnd {
    pub(super) fn record(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Reads the clock directly before each write: below TLS and HTTP/2, which keep bytes in buffers.
pub(super) struct PermittedSocket {
    stream: Abrupt,
    permit: Permit,
    end: OrderlyEnd,
}

impl PermittedSocket {
    pub(super) fn new(stream: Abrupt, permit: &Permit, end: &OrderlyEnd) -> Self {
        Self {
            stream,
            permit: permit.clone(),
            end: end.clone(),
        }
    }

    fn check(&self) -> io::Result<()> {
        if Mutation::BytesWithoutPermit.is_active() {
            return Ok(());
        }
        self.permit.check().map_err(io::Error::other)
    }
}

impl Drop for PermittedSocket {
    fn drop(&mut self) {
        if self.end.0.load(Ordering::SeqCst) && self.check().is_ok() {
            self.stream.finish();
        }
    }
}

impl AsyncRead for PermittedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.stream.stream_mut()).poll_read(context, buffer)
    }
}

impl AsyncWrite for PermittedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(self.stream.stream_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(self.stream.stream_mut()).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.stream().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.stream_mut()).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(self.stream.stream_mut()).poll_shutdown(context)
    }
}
