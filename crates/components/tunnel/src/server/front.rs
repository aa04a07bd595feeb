//! Serves kube-apiserver: `CONNECT host:port HTTP/1.1`, once per connection.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, uri::Authority};
use http_body_util::Empty;
use hyper::{
    body::Incoming,
    ext::ReasonPhrase,
    server::conn::http1,
    service::service_fn,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tracing::{debug, info};

use super::agents::{Agents, DialError, Opened};
use crate::{
    limits::{HANDSHAKE, HEADERS, IDLE},
    pipe,
};

/// Both ends of an answered CONNECT.
type Joined = Arc<Mutex<Option<(OnUpgrade, Opened)>>>;

/// Serves a connection of kube-apiserver to the end.
pub(super) async fn serve(agents: Arc<Agents>, stream: TlsStream<TcpStream>) {
    let joined = Joined::default();
    let both = Arc::clone(&joined);
    let service = service_fn(move |request| {
        let (agents, both) = (Arc::clone(&agents), Arc::clone(&both));
        async move { Ok::<_, Infallible>(answer(&agents, &both, request).await) }
    });
    // Ends as soon as a CONNECT is answered.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .max_buf_size(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection of kube-apiserver broke off");
    }
    let both = joined.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((client, opened)) = both else { return };
    let Ok(client) = client.await else { return };
    let ended = pipe::join(TokioIo::new(client), TokioIo::new(opened.stream), IDLE).await;
    drop(opened.place);
    if let Err(error) = ended {
        debug!(%error, "a connection broke off");
    }
}

async fn answer(agents: &Agents, joined: &Joined, request: Request<Incoming>) -> Response<Empty<Bytes>> {
    let opened = match target(&request) {
        Ok(target) => agents.open(target).await.inspect_err(|refusal| {
            info!(%target, why = refusal.why, "no connection");
        }),
        Err(refusal) => Err(refusal),
    };
    match opened {
        Ok(opened) => {
            let mut joined = joined.lock().unwrap_or_else(PoisonError::into_inner);
            *joined = Some((upgrade::on(request), opened));
            Response::new(Empty::new())
        }
        Err(refusal) => refused(&refusal),
    }
}

/// The target of the request.
fn target<B>(request: &Request<B>) -> Result<&Authority, DialError> {
    let bad = |status, why: &str| DialError {
        status,
        why: why.to_owned(),
    };
    if request.method() != Method::CONNECT {
        let why = "only CONNECT is served here";
        return Err(bad(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    let authority = request.uri().authority();
    let authority =
        authority.filter(|authority| authority.port_u16().is_some() && !authority.as_str().contains('@'));
    authority.ok_or_else(|| bad(StatusCode::BAD_REQUEST, "the target must be host:port"))
}

/// The sentence is the reason phrase of the status line, because kube-apiserver repeats the status line to
/// the user.
fn refused(refusal: &DialError) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = refusal.status;
    if let Ok(phrase) = ReasonPhrase::try_from(refusal.why.clone()) {
        response.extensions_mut().insert(phrase);
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(method: &str, uri: &str) -> Result<String, StatusCode> {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        target(&request)
            .map(ToString::to_string)
            .map_err(|refusal| refusal.status)
    }

    #[test]
    fn only_a_host_with_a_port_is_a_target() {
        assert_eq!(asked("CONNECT", "10.1.2.3:10250").unwrap(), "10.1.2.3:10250");
        assert_eq!(asked("CONNECT", "[fd00::1]:10250").unwrap(), "[fd00::1]:10250");
        for (method, uri, status) in [
            ("GET", "http://10.1.2.3:10250/", 405),
            ("CONNECT", "10.1.2.3", 400),
            ("CONNECT", "user@10.1.2.3:1", 400),
        ] {
            assert_eq!(asked(method, uri).unwrap_err(), status, "{method} {uri}");
        }
    }
}
