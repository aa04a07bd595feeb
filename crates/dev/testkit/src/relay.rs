//! Records the requests of a process under test to an API server, can hold answers back, and can act before a
//! request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use http::{Method, StatusCode, header};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::wait::eventually;
use crate::wait_bound::WaitBound;

/// More than any request of ours carries: the API server takes 3 MiB.
const LARGEST: usize = 4 << 20;

/// No answer is held.
const NONE: usize = usize::MAX;

/// A request as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
}

impl Asked {
    /// Whether the request may change an object.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !self.method.is_safe()
    }

    /// Whether the request belongs to an election, and is thus not covered by a permit: Leases, and Events
    /// about Leases.
    #[must_use]
    pub fn is_of_election(&self) -> bool {
        self.path.starts_with("/apis/coordination.k8s.io/") || self.path.starts_with("/apis/events.k8s.io/")
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.path.contains("watch=true")
    }
}

/// The work before a request is passed on.
type Action = Arc<dyn Fn(Asked) -> BoxFuture<'static, ()> + Send + Sync>;

/// A proxy before an API server, in plain HTTP: passes requests on with the rights of a single client, and
/// returns the answers. A request is recorded before the request is passed on, so that every sent request is
/// known.
pub struct Relay {
    url: String,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    api: Client,
    asked: Mutex<Vec<Asked>>,
    /// Answers to requests from this number on are held.
    holding: watch::Sender<usize>,
    held: watch::Sender<usize>,
    /// Answers to requests for paths with this prefix are held until the end of the relay.
    held_prefix: Mutex<Option<String>>,
    action: Mutex<Option<Action>>,
}

impl Relay {
    /// Starts a proxy with the rights of this client.
    pub async fn start(api: Client) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            api,
            asked: Mutex::default(),
            holding: watch::Sender::new(NONE),
            held: watch::Sender::new(0),
            held_prefix: Mutex::default(),
            action: Mutex::default(),
        });
        let router = Router::new().fallback(pass_on).with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            url,
            shared,
            _server: server,
        })
    }

    /// A kubeconfig for this proxy, without credentials.
    pub fn kubeconfig(&self) -> Result<Kubeconfig> {
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "relay", "cluster": {"server": self.url}}],
            "users": [{"name": "relay", "user": {}}],
            "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "relay"}}],
            "current-context": "relay",
        });
        Ok(serde_json::from_value(config)?)
    }

    /// A client of this proxy.
    pub async fn client(&self) -> Result<Client> {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(self.kubeconfig()?, &options).await?;
        Ok(Client::try_from(config)?)
    }

    /// All requests so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked().clone()
    }

    /// Waits until so many requests of this kind have come in.
    #[track_caller]
    pub fn until(
        &self,
        count: usize,
        limit: Duration,
        which: impl Fn(&Asked) -> bool,
    ) -> impl Future<Output = Result<()>> {
        eventually(format!("{count} requests have come in"), limit, move || {
            let seen = self.shared.asked().iter().filter(|asked| which(asked)).count();
            std::future::ready(if seen >= count {
                Ok(())
            } else {
                Err(format!("{seen} have"))
            })
        })
    }

    /// The next `answered` requests are answered. Later requests are executed and not answered, except for
    /// requests of elections and watches.
    pub fn hold_after(&self, answered: usize) {
        let asked = self.shared.asked().len();
        self.shared.holding.send_replace(asked + answered);
    }

    /// Requests for paths with this prefix are executed and never answered, as of a server that hangs. A
    /// release has no effect on these requests.
    pub fn hold_prefix(&self, prefix: &str) {
        *self.shared.held_prefix() = Some(prefix.to_owned());
    }

    /// Runs `action` before each later request is passed on, such as a write of a further user between two
    /// writes of the process under test.
    pub fn act_before(&self, action: impl Fn(Asked) -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        *self.shared.action() = Some(Arc::new(action));
    }

    /// Waits until so many answers are held.
    #[track_caller]
    pub fn until_held(&self, count: usize, limit: Duration) -> impl Future<Output = Result<()>> {
        let bound = WaitBound::new(format!("{count} answers are held"), limit);
        async move {
            let mut held = self.shared.held.subscribe();
            let enough = held.wait_for(|held| *held >= count);
            let waited = bound.timeout(enough).await;
            let seen = *self.shared.held.borrow();
            waited.with_context(|| format!("only {seen} answers are held after {limit:?}"))??;
            Ok(())
        }
    }

    /// Sends the held answers, and holds no further answers.
    pub fn release(&self) {
        self.shared.holding.send_replace(NONE);
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_prefix(&self) -> MutexGuard<'_, Option<String>> {
        self.held_prefix.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn action(&self) -> MutexGuard<'_, Option<Action>> {
        self.action.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the answer to a request for this path until the client is gone, if the path is held.
    async fn keep_for_ever(&self, path: &str) {
        let is_held = self
            .held_prefix()
            .as_ref()
            .is_some_and(|prefix| path.starts_with(prefix));
        if is_held {
            let _counted = Counted::new(&self.held);
            std::future::pending::<()>().await;
        }
    }

    /// Holds the answer to this request until the release.
    async fn keep(&self, number: usize) {
        let mut holding = self.holding.subscribe();
        if number < *holding.borrow_and_update() {
            return;
        }
        let _counted = Counted::new(&self.held);
        let _ = holding.wait_for(|from| number < *from).await;
    }
}

/// Counts an answer while held, even if the client is gone.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(held: &'a watch::Sender<usize>) -> Self {
        held.send_modify(|held| *held += 1);
        Self(held)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

async fn pass_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let asked = Asked {
        method: parts.method.clone(),
        path: path.to_owned(),
    };
    let number = {
        let mut all = shared.asked();
        all.push(asked.clone());
        all.len() - 1
    };
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    // These headers belong to this connection, not to the next connection.
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::CONTENT_LENGTH);
    let request = Request::from_parts(parts, Body::from(body.to_vec()));
    let action = shared.action().clone();
    if let Some(action) = action {
        action(asked.clone()).await;
    }
    let answer = shared.api.send(request).await;
    shared.keep_for_ever(&asked.path).await;
    if !asked.is_of_election() && !asked.is_watch() {
        shared.keep(number).await;
    }
    match answer {
        Ok(answer) => {
            let (mut parts, body) = answer.into_parts();
            parts.headers.remove(header::TRANSFER_ENCODING);
            Response::from_parts(parts, axum::body::Body::new(body))
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
