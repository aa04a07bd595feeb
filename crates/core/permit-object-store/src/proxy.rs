//! Connections through the proxy that the environment of the process names.
//!
//! `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` are read as curl reads these variables, also in
//! lower case. A connection to a server with TLS uses CONNECT. Requests to a server without TLS are forwarded
//! by the proxy, since common proxies allow CONNECT to port 443 alone.
//!
//! The socket to the proxy is prepared like all sockets. A proxy acknowledges bytes and may deliver the bytes
//! later, also after the end of the request's permit: H does not bound the path behind the proxy.

use std::error::Error;
use std::future::ready;
use std::sync::{Arc, Once, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use permit::{PermittedConnector, PermittedStream};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower::{BoxError, Service};
use tracing::warn;

/// The proxies of an environment.
#[derive(Clone, Debug)]
pub(crate) struct Proxies(Arc<Matcher>);

impl Proxies {
    /// The environment is read once.
    pub(crate) fn of_environment() -> Self {
        static PROXIES: OnceLock<Proxies> = OnceLock::new();
        PROXIES.get_or_init(|| Self::new(Matcher::from_env())).clone()
    }

    pub(crate) fn new(matcher: Matcher) -> Self {
        Self(Arc::new(matcher))
    }

    /// The login at a proxy that forwards this request. CONNECT carries the login for a tunnel.
    pub(crate) fn login_of_forwarded(&self, target: &Uri) -> Option<HeaderValue> {
        if is_tunneled(target) {
            return None;
        }
        self.0.intercept(target)?.basic_auth().cloned()
    }
}

fn is_tunneled(target: &Uri) -> bool {
    target.scheme() == Some(&Scheme::HTTPS)
}

/// Connects directly, or through the proxy that applies to the target. A connector of `hyper-util`.
#[derive(Clone, Debug)]
pub(crate) struct ProxyConnector {
    pub(crate) tcp: PermittedConnector,
    /// For proxies with TLS.
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) proxies: Proxies,
    /// Bounds the time for a connection through a proxy.
    pub(crate) connect_within: Duration,
}

type ProxyStream = MaybeHttpsStream<TokioIo<PermittedStream>>;
type Opening = BoxFuture<'static, Result<ProxyStream, BoxError>>;

impl Service<Uri> for ProxyConnector {
    type Response = ProxyStream;
    type Error = BoxError;
    type Future = Opening;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.0.intercept(&target) else {
            let opening = self.tcp.call(target);
            return Box::pin(async move { Ok(MaybeHttpsStream::Http(opening.await?)) });
        };
        warn_of_proxy(&target, proxy.uri());
        let (opening, within) = (self.open_through(&proxy, &target), self.connect_within);
        Box::pin(async move {
            let failed = |cause: String| {
                let (proxy, target) = (proxy.uri().clone(), target.clone());
                BoxError::from(ProxyError { proxy, target, cause })
            };
            match timeout(within, opening).await {
                Ok(opened) => opened.map_err(|error| failed(with_causes(&*error))),
                Err(_) => Err(failed(format!("no answer within {} s", within.as_secs_f32()))),
            }
        })
    }
}

impl ProxyConnector {
    fn open_through(&self, proxy: &Intercept, target: &Uri) -> Opening {
        let address = proxy.uri().clone();
        if !matches!(address.scheme_str(), Some("http" | "https")) {
            let unsupported = "the scheme of the proxy is not supported, give a proxy with http or https";
            return Box::pin(ready(Err(BoxError::from(unsupported))));
        }
        let connector = |tcp| HttpsConnector::from((tcp, Arc::clone(&self.tls)));
        if !is_tunneled(target) {
            return connector(self.tcp.clone().forwarded()).call(address);
        }
        let mut tunnel = Tunnel::new(address, connector(self.tcp.clone()));
        if let Some(login) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        tunnel
            .call(target.clone())
            .map(|opened| opened.map_err(BoxError::from))
            .boxed()
    }
}

/// Once in a process: connections are opened repeatedly.
fn warn_of_proxy(target: &Uri, proxy: &Uri) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        warn!(
            target = target.host(),
            %proxy,
            "requests go through a proxy of the environment, which may deliver bytes that it has acknowledged after the \
             permit of a request: a request through a proxy is not bounded by H"
        );
    });
}

/// Names the proxy without a user and a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "the proxy {proxy} opens no connection to {target}: {cause}; correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, \
     or name the server in NO_PROXY"
)]
struct ProxyError {
    proxy: Uri,
    target: Uri,
    cause: String,
}

pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
