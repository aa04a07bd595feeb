//! TCP connections whose bytes do not outlive the permit.
//!
//! A kernel keeps sent bytes until the peer acknowledges the bytes: for minutes, also when the process has
//! ended. After a network failure a request could so arrive long after the end of the permit under which the
//! request was sent. Hence:
//! - Each write checks the permits of all unanswered requests on the connection that may change state.
//! - A connection with such a request is closed when the request is given up, as at the end of the permit.
//! - A closed connection discards unsent bytes (`SO_LINGER` of 0), also when the process is killed.
//! - Unacknowledged bytes end the connection after [`UNACKNOWLEDGED_FOR`] (`TCP_USER_TIMEOUT`), also while
//!   the process is stopped.
//!
//! [`PermittedConnector`] opens such connections, and [`Unanswered`] notes requests on the connections. Both
//! are for clients of `hyper-util`.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use http::{Request, Uri};
use hyper_util::client::legacy::connect::{
    CaptureConnection, Connected, Connection, HttpConnector, capture_connection,
};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::permit::Permit;

/// Sent bytes that are not acknowledged for this long end the connection. Shorter than H, the time that a
/// successor leaves for requests under way (5 s by default, docs/understand/ownership.md). A silent watch is
/// not affected.
pub const UNACKNOWLEDGED_FOR: Duration = Duration::from_secs(4);

/// After this silence the kernel sends a keepalive probe to the peer…
const SILENT_FOR: Duration = Duration::from_secs(20);
/// …and ends the connection after this time without an answer. `TCP_USER_TIMEOUT` overrides the number of
/// probes.
const ALIVE_WITHIN: Duration = Duration::from_secs(10);

/// Opens TCP connections whose bytes do not outlive the permit. A connector of `hyper-util`.
#[derive(Clone, Debug)]
pub struct PermittedConnector {
    tcp: HttpConnector,
    is_forwarded: bool,
}

impl PermittedConnector {
    /// `connect_timeout` bounds the opening of a connection; `None` is unbounded.
    #[must_use]
    pub fn new(connect_timeout: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(connect_timeout);
        tcp.set_keepalive(Some(SILENT_FOR));
        tcp.set_keepalive_interval(Some(ALIVE_WITHIN));
        let is_forwarded = false;
        Self { tcp, is_forwarded }
    }

    /// The peer is a proxy that forwards each request: requests carry the whole URL.
    #[must_use]
    pub fn forwarded(self) -> Self {
        Self {
            is_forwarded: true,
            ..self
        }
    }
}

impl Service<Uri> for PermittedConnector {
    type Response = TokioIo<PermittedStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let (opening, is_forwarded) = (self.tcp.call(target), self.is_forwarded);
        Box::pin(async move {
            let stream = opening.await?.into_inner();
            Ok(TokioIo::new(PermittedStream::new(stream, is_forwarded)?))
        })
    }
}

/// When this connection is closed, the kernel discards unsent bytes. Unacknowledged bytes end the connection
/// after [`UNACKNOWLEDGED_FOR`]. For a client with sockets of its own and with work that is dropped with the
/// permit.
pub fn discard_unsent(stream: &TcpStream) -> io::Result<()> {
    stream.set_zero_linger()?;
    SockRef::from(stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_FOR))
}

/// When this connection is closed, the kernel delivers unsent bytes: both sides have finished in order.
pub fn deliver_unsent(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(None)
}

/// A connection of a [`PermittedConnector`].
#[derive(Debug)]
pub struct PermittedStream {
    stream: TcpStream,
    is_forwarded: bool,
    requests: Arc<Requests>,
}

impl PermittedStream {
    fn new(stream: TcpStream, is_forwarded: bool) -> io::Result<Self> {
        discard_unsent(&stream)?;
        Ok(Self {
            stream,
            is_forwarded,
            requests: Arc::default(),
        })
    }

    fn check(&self) -> io::Result<()> {
        if self.requests.is_permitted() {
            return Ok(());
        }
        let why = "the permit of a request on this connection has ended: the connection is closed";
        Err(io::Error::new(ErrorKind::ConnectionAborted, why))
    }
}

impl Connection for PermittedStream {
    fn connected(&self) -> Connected {
        let noted = Noted(Arc::clone(&self.requests));
        self.stream.connected().proxy(self.is_forwarded).extra(noted)
    }
}

impl AsyncRead for PermittedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A client always polls the connection for reading, so the client learns of the end here.
        self.requests.closed.register(context.waker());
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PermittedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The unanswered requests on a connection that may change state.
#[derive(Debug, Default)]
struct Requests {
    permits: Mutex<Vec<(u64, Permit)>>,
    next: AtomicU64,
    /// A request was given up, so the connection must not send any more.
    is_given_up: AtomicBool,
    closed: AtomicWaker,
}

/// Tells [`Unanswered`] the connection of a request.
#[derive(Clone)]
struct Noted(Arc<Requests>);

impl Requests {
    fn is_permitted(&self) -> bool {
        // Cloned before the checks: the end of a permit drops requests, and these drops take the same lock.
        let permits = self.permits().clone();
        !self.is_given_up.load(Ordering::SeqCst) && permits.iter().all(|(_, permit)| permit.in_time())
    }

    fn permits(&self) -> MutexGuard<'_, Vec<(u64, Permit)>> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An unanswered request on its connection.
struct Note {
    requests: Arc<Requests>,
    number: u64,
}

impl Note {
    fn new(requests: Arc<Requests>, permit: &Permit) -> Self {
        let number = requests.next.fetch_add(1, Ordering::SeqCst);
        requests.permits().push((number, permit.clone()));
        Self { requests, number }
    }

    /// The connection must not deliver the request any more.
    fn give_up(&self) {
        self.requests.is_given_up.store(true, Ordering::SeqCst);
        self.requests.closed.wake();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.requests
            .permits()
            .retain(|(number, _)| *number != self.number);
    }
}

/// A client of `hyper-util` over a [`PermittedConnector`]. Notes on each connection the permits of the
/// unanswered requests, and closes the connection of a request that is given up. Pure reads are not affected.
/// The permit comes with the request, see [`Permit::layer`].
#[derive(Clone, Debug)]
pub struct Unanswered<S>(pub S);

impl<S, B> Service<Request<B>> for Unanswered<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match request.extensions_mut().remove::<Permit>() {
            Some(permit) if !request.method().is_safe() => {
                let connection = capture_connection(&mut request);
                Box::pin(Waiting {
                    answer: Box::pin(self.0.call(request)),
                    connection,
                    permit,
                    note: None,
                })
            }
            _ => Box::pin(self.0.call(request)),
        }
    }
}

/// Waits for the answer.
struct Waiting<F> {
    answer: Pin<Box<F>>,
    connection: CaptureConnection,
    permit: Permit,
    note: Option<Note>,
}

impl<F> Waiting<F> {
    /// Notes the request on the present connection. The client switches to a second connection when the first
    /// connection fails before any byte is sent.
    fn note(&mut self) {
        let mut extensions = http::Extensions::new();
        if let Some(connected) = &*self.connection.connection_metadata() {
            connected.get_extras(&mut extensions);
        }
        let Some(Noted(requests)) = extensions.remove() else {
            return;
        };
        let is_noted = |note: &Note| Arc::ptr_eq(&note.requests, &requests);
        if !self.note.as_ref().is_some_and(is_noted) {
            self.note = Some(Note::new(requests, &self.permit));
        }
    }
}

impl<F: Future> Future for Waiting<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let answer = self.answer.as_mut().poll(context);
        if answer.is_pending() {
            self.note();
        }
        let answer = ready!(answer);
        self.note = None;
        Poll::Ready(answer)
    }
}

impl<F> Drop for Waiting<F> {
    fn drop(&mut self) {
        if let Some(note) = &self.note {
            note.give_up();
        }
    }
}

#[cfg(test)]
#[path = "tests/connection.rs"]
mod tests;
