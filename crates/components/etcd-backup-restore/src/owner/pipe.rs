//! Copies the bytes of a connection through the gate, in both directions. (`tunnel` has its own pipe, for any
//! two streams and with a limit for silence. Here each write needs the permit, and a watch may be silent for
//! any time.)

use mutation::Mutation;
use permit::{Permit, deliver_unsent, discard_unsent};
use std::io::{self, ErrorKind};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Held only while bytes are in transfer: an idle connection needs no buffer.
const CHUNK: usize = 32 * 1024;

/// A stream whose unsent bytes the kernel discards when the stream is closed, unless both sides have
/// finished. `SO_LINGER` and `TCP_USER_TIMEOUT` are set when the stream is opened: a killed process closes no
/// stream itself, and its acknowledgements would be retransmitted after the fence.
pub(super) struct Abrupt {
    stream: TcpStream,
    done: bool,
}

impl Abrupt {
    pub(super) fn new(stream: TcpStream) -> Self {
        if let Err(error) = discard_unsent(&stream) {
            // The stream is broken already.
            tracing::debug!(%error, "a connection was not prepared");
        }
        Self { stream, done: false }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Both sides have finished: the last bytes are to arrive.
    pub(super) fn finish(&mut self) {
        self.done = true;
    }
}

impl Drop for Abrupt {
    fn drop(&mut self) {
        if self.done
            && let Err(error) = deliver_unsent(&self.stream)
        {
            tracing::debug!(%error, "the last bytes of a connection may be lost");
        }
    }
}

/// Copies bytes until both sides have finished, or a side breaks off. The end of a direction is passed on,
/// and the reverse direction continues.
pub(super) async fn join(left: &mut Abrupt, right: &mut Abrupt, permit: &Permit) -> io::Result<()> {
    {
        let (mut left_reader, mut left_writer) = left.stream.split();
        let (mut right_reader, mut right_writer) = right.stream.split();
        tokio::try_join!(
            one_way(&mut left_reader, &mut right_writer, permit),
            one_way(&mut right_reader, &mut left_writer, permit),
        )?;
    }
    left.finish();
    right.finish();
    Ok(())
}

async fn one_way(from: &mut ReadHalf<'_>, to: &mut WriteHalf<'_>, permit: &Permit) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut chunk = vec![0; CHUNK];
        let read = match from.try_read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e),
        };
        let mut left = &chunk[..read];
        while !left.is_empty() {
            to.writable().await?;
            // Directly before the write: a task that waited, or was stopped, checks the clock again.
            if !Mutation::BytesWithoutPermit.is_active() {
                permit.check().map_err(io::Error::other)?;
            }
            match to.try_write(left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }
    to.shutdown().await
}
