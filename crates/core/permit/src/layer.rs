//! Requests that leave only while the permit is valid.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use tower::{BoxError, Layer, Service};

use crate::permit::Permit;

impl Permit {
    /// A layer for a client: a request leaves only while the permit is valid. If the process was stopped
    /// while a request was waiting (in a queue, or for a retry), the request is refused with
    /// [`crate::NotPermitted`]. A request that may change state counts as an [`Permit::effect`] until the
    /// answer begins.
    #[must_use]
    pub fn layer(&self) -> Fence {
        Fence { permit: self.clone() }
    }
}

/// A layer that fences a client: see [`Permit::layer`].
#[derive(Clone, Debug)]
pub struct Fence {
    permit: Permit,
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced {
            permit: self.permit.clone(),
            inner,
        }
    }
}

/// A service behind a [`Fence`]. Refuses requests with [`crate::NotPermitted`], and drops requests under way
/// when the right is lost. A request that may change state is finished before the right is passed on, also if
/// the caller drops the request.
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    permit: Permit,
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Err(refused) = self.permit.check() {
            return Box::pin(async move { Err(refused.into()) });
        }
        let permit = self.permit.clone();
        // For the connection, see `connection::Unanswered`.
        let outer = request.extensions_mut().remove::<Permit>();
        let of_request = outer.map_or_else(|| permit.clone(), |outer| outer.and(&permit));
        request.extensions_mut().insert(of_request);
        let is_read = request.method().is_safe();
        // A service may send in the future that `call` returns, and may wait there (kube retries there). So
        // each step of that future is guarded too.
        let answer = self.inner.call(request);
        if is_read {
            return Box::pin(async move { permit.guard(answer).await?.map_err(Into::into) });
        }
        Box::pin(async move { permit.effect(answer).await?.map_err(Into::into) })
    }
}
