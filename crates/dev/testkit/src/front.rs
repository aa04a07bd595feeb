//! A single API server in place of many. A measurement with hundreds of clusters needs hundreds of API
//! servers, and no machine has enough memory for that.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority as Place, PathAndQuery, Scheme};
use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::config::Kubeconfig;
use rustls::pki_types::{IpAddr, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::control_plane::ControlPlane;
use crate::pki::Identity;

/// Path prefix of the clusters at the address of the front.
const CLUSTERS: &str = "/clusters/";
/// A kube-apiserver's limits of a connection: concurrent requests, and bytes of a request body under way.
const STREAMS: u32 = 100;
const WINDOW: u32 = 256 << 10;

/// A proxy that makes each namespace of an API server a separate cluster. A list or watch of all namespaces
/// in such a cluster returns the objects of this single namespace. Further requests are passed on unchanged,
/// so objects must be written into that namespace.
///
/// The proxy uses TLS and HTTP/2 like a kube-apiserver, requires a client certificate, and opens a connection
/// to the API server per accepted connection. Answers are streamed.
pub struct Front {
    address: SocketAddr,
    authority: String,
    user: Identity,
    _server: JoinSet<()>,
}

/// The settings shared by all connections.
struct Shared {
    accept: TlsAcceptor,
    connect: TlsConnector,
    place: Place,
    kinds: &'static [&'static str],
}

impl Front {
    /// Starts a proxy for this control plane. A client with a kubeconfig of this proxy is `user` in these
    /// groups at the API server. `kinds`: the plural names of the namespaced kinds, as in paths.
    ///
    /// # Errors
    /// The proxy cannot listen.
    pub async fn start(
        plane: &ControlPlane,
        user: &str,
        groups: &[&str],
        kinds: &'static [&'static str],
    ) -> Result<Self> {
        let authority = plane.authority();
        let user = authority.user(user, groups)?;
        let roots = authority.roots()?;
        let verifier = WebPkiClientVerifier::builder(Arc::clone(&roots)).build()?;
        let (certificates, key) = authority.server(&["127.0.0.1"])?.parsed()?;
        let mut accept = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates, key)?;
        let (certificates, key) = user.parsed()?;
        let mut connect = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates, key)?;
        accept.alpn_protocols = vec![b"h2".to_vec()];
        connect.alpn_protocols = vec![b"h2".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url: Uri = plane.url().parse()?;
        let shared = Arc::new(Shared {
            accept: Arc::new(accept).into(),
            connect: Arc::new(connect).into(),
            place: url.authority().cloned().context("an URL without a host")?,
            kinds,
        });
        let address = listener.local_addr()?;
        let mut server = JoinSet::new();
        server.spawn(listen(listener, shared));
        Ok(Self {
            address,
            authority: authority.certificate(),
            user,
            _server: server,
        })
    }

    /// A kubeconfig for the cluster that this namespace represents.
    ///
    /// # Errors
    /// None: the built object is a valid kubeconfig.
    pub fn kubeconfig(&self, namespace: &str) -> Result<Kubeconfig> {
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "front", "cluster": {
                "server": format!("https://{}{CLUSTERS}{namespace}", self.address),
                "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": "front", "user": {
                "client-certificate-data": STANDARD.encode(&self.user.certificate),
                "client-key-data": STANDARD.encode(&self.user.key),
            }}],
            "contexts": [{"name": "front", "context": {"cluster": "front", "user": "front"}}],
            "current-context": "front",
        });
        Ok(serde_json::from_value(config)?)
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((taken, _)) = listener.accept() => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    if let Err(error) = carry(taken, shared).await {
                        tracing::debug!(%error, "a connection has ended");
                    }
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Passes the requests of a connection to the API server, over a separate connection.
async fn carry(taken: TcpStream, shared: Arc<Shared>) -> Result<()> {
    let taken = shared.accept.accept(taken).await?;
    let onward = TcpStream::connect(shared.place.as_str()).await?;
    let name = ServerName::IpAddress(IpAddr::V4([127, 0, 0, 1].into()));
    let onward = shared.connect.connect(name, onward).await?;
    let (sender, onward) = client::handshake(TokioExecutor::new(), TokioIo::new(onward)).await?;
    let answer = service_fn(|request| pass_on(request, sender.clone(), Arc::clone(&shared)));
    let serving = server::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .serve_connection(TokioIo::new(taken), answer);
    tokio::select! {
        ended = serving => Ok(ended?),
        ended = onward => Ok(ended?),
    }
}

async fn pass_on(
    request: Request<Incoming>,
    mut onward: client::SendRequest<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Incoming>> {
    let (mut parts, body) = request.into_parts();
    let asked = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let path = within(&parts.method, asked, shared.kinds)
        .with_context(|| format!("{asked} is in none of the clusters: it does not begin with {CLUSTERS}"))?;
    parts.uri = Uri::builder()
        .scheme(Scheme::HTTPS)
        .authority(shared.place.clone())
        .path_and_query(path)
        .build()?;
    onward.ready().await?;
    Ok(onward.send_request(Request::from_parts(parts, body)).await?)
}

/// The path at the API server for a path in a cluster.
fn within(method: &Method, asked: &str, kinds: &[&str]) -> Option<String> {
    let (namespace, path) = asked.strip_prefix(CLUSTERS)?.split_once('/')?;
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let (version, kind) = path.rsplit_once('/').unwrap_or((path, ""));
    // `api/v1` or `apis/GROUP/VERSION`: a kind directly behind the version means all namespaces.
    let everywhere = match version.split('/').collect::<Vec<_>>()[..] {
        ["api", _] | ["apis", _, _] => kinds.contains(&kind),
        _ => false,
    };
    let path = if method == Method::GET && everywhere {
        format!("/{version}/namespaces/{namespace}/{kind}")
    } else {
        format!("/{path}")
    };
    Some(match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_namespaces_there_is_one() {
        let kinds = ["configmaps", "deployments"];
        for (asked, path) in [
            ("/api/v1/configmaps", "/api/v1/namespaces/a/configmaps"),
            (
                "/api/v1/configmaps?watch=true",
                "/api/v1/namespaces/a/configmaps?watch=true",
            ),
            (
                "/apis/apps/v1/deployments?limit=1",
                "/apis/apps/v1/namespaces/a/deployments?limit=1",
            ),
            (
                "/api/v1/namespaces/b/configmaps",
                "/api/v1/namespaces/b/configmaps",
            ),
            ("/api/v1/nodes", "/api/v1/nodes"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/version", "/version"),
        ] {
            let asked = format!("/clusters/a{asked}");
            assert_eq!(
                within(&Method::GET, &asked, &kinds).as_deref(),
                Some(path),
                "{asked}"
            );
        }
        let written = within(&Method::POST, "/clusters/a/api/v1/configmaps", &kinds);
        assert_eq!(written.as_deref(), Some("/api/v1/configmaps"));
        assert_eq!(within(&Method::GET, "/api/v1/configmaps", &kinds), None);
    }
}
