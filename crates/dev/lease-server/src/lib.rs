//! Development only: an API server in memory for the tests of `lease` and `leader-migration`, for latencies
//! that a real server cannot reproduce. The server stores Leases and accepts every further write, delays
//! requests as the test sets, and records the order of events.

#![allow(clippy::disallowed_methods)] // for the clients of this server
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, clippy::must_use_candidate)] // only tests use this crate

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use permit::Permit;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::{Layer, service_fn};

/// An API server with Leases. A clone is the same server.
#[derive(Clone, Default)]
pub struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    leases: HashMap<String, Value>,
    version: u64,
    /// Duration of a request, by the end of the request's path.
    slow: HashMap<String, Duration>,
    refuses_until: Option<Instant>,
    events: Vec<String>,
}

impl Server {
    /// A client of the server, without a permit.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, std::io::Error>(server.answer(request).await) }
        });
        Client::new(service, "ns")
    }

    /// A client with requests that leave only while the permit is valid.
    pub fn client_under(&self, permit: &Permit) -> Client {
        let client = self.client();
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(permit.layer().layer(service), "ns")
    }

    /// Creates a released Lease, so that a candidate does not wait.
    pub fn free(&self, lock: &str) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version.to_string();
        let lease =
            json!({"metadata": {"name": lock, "resourceVersion": version}, "spec": {"holderIdentity": ""}});
        state.leases.insert(lock.to_owned(), lease);
    }

    /// Deletes the Lease.
    pub fn delete(&self, lock: &str) {
        self.state().leases.remove(lock);
    }

    /// From now on a request for this object takes `takes`.
    pub fn slow(&self, name: &str, takes: Duration) {
        self.state().slow.insert(name.to_owned(), takes);
    }

    /// Renewals fail until then.
    pub fn refuse_until(&self, until: Instant) {
        self.state().refuses_until = Some(until);
    }

    /// The holder in the Lease; `None` without a Lease.
    pub fn holder(&self, lock: &str) -> Option<String> {
        let holder = self.state().leases.get(lock)?["spec"]["holderIdentity"].clone();
        Some(holder.as_str()?.to_owned())
    }

    /// Number of writes of Leases that were carried out.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Events of objects that are not Leases, and releases of Leases.
    pub fn events(&self) -> Vec<String> {
        self.state().events.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Carries out a request.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let (_, name) = path.rsplit_once('/').unwrap();
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_watch = head.uri.query().is_some_and(|query| query.contains("watch="));
        let is_object = path.contains("/configmaps") && !is_watch;
        if is_object {
            self.state().events.push(format!("{name} asked"));
        }
        let takes = self.state().slow.get(name).copied();
        if let Some(takes) = takes {
            sleep(takes).await;
        }
        if is_object {
            self.state().events.push(format!("{name} answered"));
        }
        let (code, answer) = if is_watch {
            (StatusCode::FORBIDDEN, status(403))
        } else if path.contains("/leases") {
            self.lease(&head.method, name, body)
        } else {
            (StatusCode::CREATED, body)
        };
        let answer = Body::from(serde_json::to_vec(&answer).unwrap());
        Response::builder().status(code).body(answer).unwrap()
    }

    fn lease(&self, method: &Method, name: &str, mut lease: Value) -> (StatusCode, Value) {
        let mut state = self.state();
        if method == Method::GET {
            return match state.leases.get(name) {
                Some(lease) => (StatusCode::OK, lease.clone()),
                None => (StatusCode::NOT_FOUND, status(404)),
            };
        }
        if state.refuses_until.is_some_and(|until| Instant::now() < until) {
            return (StatusCode::INTERNAL_SERVER_ERROR, status(500));
        }
        let name = lease["metadata"]["name"].as_str().unwrap().to_owned();
        let current = state
            .leases
            .get(&name)
            .map(|lease| &lease["metadata"]["resourceVersion"]);
        if current.unwrap_or(&Value::Null) != &lease["metadata"]["resourceVersion"] {
            return (StatusCode::CONFLICT, status(409));
        }
        if lease["spec"]["holderIdentity"] == "" {
            state.events.push(format!("{name} released"));
        }
        state.version += 1;
        lease["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.leases.insert(name, lease.clone());
        (StatusCode::OK, lease)
    }
}

fn status(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "" };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": reason, "code": code})
}
