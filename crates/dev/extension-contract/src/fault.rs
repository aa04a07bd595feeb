//! Requests that fail: the API server answers with an error, as during a restart or after the loss of etcd.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use kube::{
    Client,
    client::Body,
    core::{Status, response::StatusSummary},
};
use tower::service_fn;

/// The requests of a client that fail.
#[derive(Default)]
pub struct Fault {
    /// The number of the failing request, counted from 1; 0 for no failure.
    nth: usize,
    /// Each change of the object at this path fails, except for status changes. For an object that is being
    /// deleted, such a change removes a finalizer.
    changes_of: Option<String>,
    seen: AtomicUsize,
    met: AtomicBool,
    held: AtomicBool,
}

impl Fault {
    /// The n-th request fails, and each change of the object at this path.
    #[must_use]
    pub fn new(nth: usize, changes_of: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            nth,
            changes_of,
            ..Self::default()
        })
    }

    /// Whether the n-th request was met.
    #[must_use]
    pub fn was_met(&self) -> bool {
        self.met.load(Ordering::SeqCst)
    }

    /// Whether a change of the object was held back.
    #[must_use]
    pub fn has_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// A client with these failures.
    #[must_use]
    pub fn client(self: &Arc<Self>, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let fault = Arc::clone(self);
        let service = service_fn(move |request: http::Request<Body>| {
            let (client, strikes) = (client.clone(), fault.strikes(&request));
            async move {
                if strikes {
                    return Ok(refusal());
                }
                client.send(request).await
            }
        });
        #[allow(clippy::disallowed_methods)] // what it sends goes by a client that has its permit
        Client::new(service, namespace)
    }

    fn strikes(&self, request: &http::Request<Body>) -> bool {
        let holds = self.changes_of.as_deref() == Some(request.uri().path())
            && matches!(*request.method(), http::Method::PATCH | http::Method::PUT);
        if holds {
            self.held.store(true, Ordering::SeqCst);
            return true;
        }
        let meets = self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.nth;
        if meets {
            self.met.store(true, Ordering::SeqCst);
        }
        meets
    }
}

fn refusal() -> http::Response<Body> {
    let status = Status {
        status: Some(StatusSummary::Failure),
        message: "this request fails in a test".into(),
        reason: "InternalError".into(),
        code: 500,
        ..Status::default()
    };
    let body = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = http::Response::new(Body::from(body));
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}
