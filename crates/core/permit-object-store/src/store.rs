//! Requests to an object store, for clients of the crate `object_store`: each request leaves only while the
//! permit is valid.
//!
//! The library repeats failed requests and sends parts of an upload in the background, so the permit is
//! checked beneath the library. A request under way at the loss of the right is given up with the connection;
//! a refused request is not repeated.
//!
//! The HTTP client is `hyper-util`, because `reqwest`, the client of the library, gives no access to the
//! sockets.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http::header::PROXY_AUTHORIZATION;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use permit::{Permit, PermittedConnector, Unanswered};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tower::Service;
use tracing::warn;

use crate::proxy::{Proxies, ProxyConnector, with_causes};

/// Creates clients with requests that need the permit.
#[derive(Clone)]
pub struct StoreConnector {
    permit: Permit,
    connect_within: Duration,
    answer_within: Duration,
    tls: Arc<ClientConfig>,
    proxies: Proxies,
}

impl StoreConnector {
    /// Bounds the time for opening a connection and for a request with its answer. Trusts the built-in
    /// certificate authorities, and those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. Connects through the
    /// proxies of the environment.
    #[must_use]
    pub fn new(permit: &Permit, connect_within: Duration, answer_within: Duration) -> Self {
        Self {
            permit: permit.clone(),
            connect_within,
            answer_within,
            tls: trust_of_process(),
            proxies: Proxies::of_environment(),
        }
    }

    /// Trusts only these certificate authorities.
    #[must_use]
    pub fn trusting(self, roots: RootCertStore) -> Self {
        Self {
            tls: tls(roots),
            ..self
        }
    }

    /// A client for requests.
    #[must_use]
    pub fn client(&self) -> HttpClient {
        let (proxies, tls) = (self.proxies.clone(), Arc::clone(&self.tls));
        ConnectionPool::build(self.connect_within, self.answer_within, proxies, tls).client(&self.permit)
    }
}

/// Connections that the clients of all permits in a process share. A connection serves a single request at a
/// time. So the end of a permit closes no connection with a request of a different permit.
#[derive(Clone, Debug)]
pub struct ConnectionPool {
    answer_within: Duration,
    proxies: Proxies,
    client: Unanswered<Client<HttpsConnector<ProxyConnector>, HttpRequestBody>>,
}

impl ConnectionPool {
    /// Bounds and trust are those of [`StoreConnector::new`].
    #[must_use]
    pub fn new(connect_within: Duration, answer_within: Duration) -> Self {
        let (proxies, tls) = (Proxies::of_environment(), trust_of_process());
        Self::build(connect_within, answer_within, proxies, tls)
    }

    fn build(
        connect_within: Duration,
        answer_within: Duration,
        proxies: Proxies,
        tls: Arc<ClientConfig>,
    ) -> Self {
        let tcp = ProxyConnector {
            tcp: PermittedConnector::new(Some(connect_within)),
            tls: trust_of_process(),
            proxies: proxies.clone(),
            connect_within,
        };
        let client = Builder::new(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(HttpsConnector::from((tcp, tls)));
        Self {
            answer_within,
            proxies,
            client: Unanswered(client),
        }
    }

    /// A client with requests that need this permit.
    #[must_use]
    pub fn client(&self, permit: &Permit) -> HttpClient {
        HttpClient::new(Guarded {
            permit: permit.clone(),
            pool: self.clone(),
        })
    }
}

/// The built-in certificate authorities, and the authorities of the environment.
fn trust_of_process() -> Arc<ClientConfig> {
    static TRUST: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let trust = TRUST.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        roots.add_parsable_certificates(certificates_of_environment());
        tls(roots)
    });
    Arc::clone(trust)
}

/// Without the variables no file is read: the images have no certificates.
fn certificates_of_environment() -> Vec<CertificateDer<'static>> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("SSL_CERT_FILE") && !is_set("SSL_CERT_DIR") {
        return Vec::new();
    }
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        warn!(%error, "a certificate of SSL_CERT_FILE or SSL_CERT_DIR cannot be read, and is not trusted");
    }
    found.certs
}

fn tls(roots: RootCertStore) -> Arc<ClientConfig> {
    let config = ClientConfig::builder().with_root_certificates(roots);
    Arc::new(config.with_no_client_auth())
}

impl fmt::Debug for StoreConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreConnector").field(&self.permit).finish()
    }
}

impl HttpConnector for StoreConnector {
    /// Ignores the options, since `ClientOptions` gives no access to certificates.
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.client())
    }
}

#[derive(Debug)]
struct Guarded {
    permit: Permit,
    pool: ConnectionPool,
}

#[async_trait]
impl HttpService for Guarded {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        request.extensions_mut().insert(self.permit.clone());
        if let Some(login) = self.pool.proxies.login_of_forwarded(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login);
        }
        let pool = &self.pool;
        let (mut client, deadline) = (pool.client.clone(), Instant::now() + pool.answer_within);
        let answered = self
            .permit
            .effect(async move { timeout_at(deadline, client.call(request)).await });
        // The library retries errors of all further kinds.
        let refused = |refused| HttpError::new(HttpErrorKind::Unknown, refused);
        let answer = answered.await.map_err(refused)?.map_err(|_| late())?;
        let answer = answer.map_err(|source| HttpError::new(kind_of(&source), NoAnswer { source }))?;
        let body = |body| HttpResponseBody::new(Bounded::new(body, deadline));
        Ok(answer.map(body))
    }
}

/// Shows all causes: the library shows only the first error of a chain.
#[derive(Debug, thiserror::Error)]
#[error("{}", with_causes(source))]
struct NoAnswer {
    source: hyper_util::client::legacy::Error,
}

fn late() -> HttpError {
    let late = io::Error::new(ErrorKind::TimedOut, "the answer did not come in time");
    HttpError::new(HttpErrorKind::Timeout, late)
}

/// The kind decides whether the library repeats the request.
fn kind_of(error: &(dyn Error + 'static)) -> HttpErrorKind {
    let legacy = error.downcast_ref::<hyper_util::client::legacy::Error>();
    if legacy.is_some_and(hyper_util::client::legacy::Error::is_connect) {
        return HttpErrorKind::Connect;
    }
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(kind) = kind_of_cause(error) {
            return kind;
        }
        cause = error.source();
    }
    HttpErrorKind::Unknown
}

fn kind_of_cause(cause: &(dyn Error + 'static)) -> Option<HttpErrorKind> {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
            return Some(HttpErrorKind::Request);
        }
        return error.is_timeout().then_some(HttpErrorKind::Timeout);
    }
    match cause.downcast_ref::<io::Error>()?.kind() {
        ErrorKind::TimedOut => Some(HttpErrorKind::Timeout),
        ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionReset
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(HttpErrorKind::Interrupted),
        _ => None,
    }
}

/// The body of an answer, with a deadline.
struct Bounded {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
}

impl Bounded {
    fn new(body: Incoming, deadline: Instant) -> Self {
        Self {
            body,
            deadline: Box::pin(sleep_until(deadline)),
        }
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                let failed = |error: hyper::Error| HttpError::new(kind_of(&error), error);
                Poll::Ready(frame.map(|frame| frame.map_err(failed)))
            }
            Poll::Pending if self.deadline.as_mut().poll(context).is_ready() => {
                Poll::Ready(Some(Err(late())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "tests/proxy.rs"]
mod tests;
