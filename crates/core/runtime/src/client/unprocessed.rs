//! Repeats requests that an API server has not processed.
//!
//! With HTTP/2 a server can ask clients to open a new connection (GOAWAY, RFC 9113, section 6.8). A
//! kube-apiserver does so now and then (`--goaway-chance`), and when the kube-apiserver ends. The server then
//! names the last processed request of the connection. Later requests fail, although a repetition is safe.
//! The same holds for a stream that the server refuses. The HTTP client does not repeat these requests.

use std::{error::Error, future::Ready};

use h2::Reason;
use http::Request;
use kube::client::Body;
use tower::{BoxError, retry::Policy};

/// Attempts after the first attempt. Each attempt gets a new connection.
const REPETITIONS: u8 = 3;

/// Repeats a request at once, if the server has not processed the request.
#[derive(Clone, Debug)]
pub(crate) struct RepeatUnprocessed {
    left: u8,
}

impl RepeatUnprocessed {
    pub(crate) fn new() -> Self {
        Self { left: REPETITIONS }
    }
}

impl<R> Policy<Request<Body>, R, BoxError> for RepeatUnprocessed {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _request: &mut Request<Body>,
        result: &mut Result<R, BoxError>,
    ) -> Option<Self::Future> {
        let failed = result.as_ref().err()?;
        if !is_unprocessed(&**failed) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(std::future::ready(()))
    }

    /// `None` for a body that is a stream: such a request cannot be repeated.
    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut copy = Request::new(request.body().try_clone()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
}

/// Whether the server has ended the connection in order, and before this request, or has refused the stream
/// of this request. The HTTP/2 library gives the error of an ended connection to the requests after the last
/// processed request alone. The remaining requests of the connection get answers, or an I/O error.
fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_ended = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
            let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            return error.is_remote() && (is_ended || is_refused);
        }
        cause = error.source();
    }
    false
}
