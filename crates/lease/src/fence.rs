//! Requests that leave only while the lock is held.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use kube::Client;
use tower::{BoxError, Layer, Service, service_fn};

use crate::Held;
use crate::under_way::Write;

/// A layer that fences a client: see [`Held::layer`].
#[derive(Clone, Debug)]
pub struct Fence {
    held: Held,
}

impl Fence {
    pub(crate) fn new(held: Held) -> Self {
        Self { held }
    }
}

impl Held {
    /// The same client, whose requests leave only while the lock is held: [`Held::layer`] for a client that is there already.
    #[must_use]
    pub fn fence(&self, client: &Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let client = client.clone();
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer().layer(service), namespace)
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced {
            held: self.held.clone(),
            inner,
        }
    }
}

/// A service behind a [`Fence`]. It refuses with [`crate::NotHeld`], and drops what is under way when the lock is lost. A write
/// that is under way when its caller is dropped is finished before the lock is given back.
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    held: Held,
    inner: S,
}

impl<S, B> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>>,
    S::Response: Send,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Err(refused) = self.held.check() {
            return Box::pin(async move { Err(refused.into()) });
        }
        let held = self.held.clone();
        let is_read = request.method().is_safe();
        // A service may do its sending in the future that it returns, and may wait in it (kube retries there): so each
        // step of that future is guarded too.
        let answer = self.inner.call(request);
        if is_read {
            return Box::pin(async move { held.guard(answer).await?.map_err(Into::into) });
        }
        let answer = Write::new(held.clone(), answer);
        Box::pin(async move { held.guard(answer).await?.map_err(Into::into) })
    }
}
