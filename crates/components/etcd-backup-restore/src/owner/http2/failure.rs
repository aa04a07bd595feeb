//! What a failure of a request at etcd means for the client.

use h2::Reason;
use std::error::Error;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

/// Ends the connection of the client where the connection to etcd is broken, as without a gate: the client
/// gets UNAVAILABLE for all its requests, and connects again.
#[derive(Clone, Default)]
pub(super) struct EtcdFailure(CancellationToken);

impl EtcdFailure {
    pub(super) fn record(&self) {
        self.0.cancel();
    }

    pub(super) fn recorded(&self) -> WaitForCancellationFutureOwned {
        self.0.clone().cancelled_owned()
    }

    /// The error with which hyper resets the client's stream.
    pub(super) fn judge(&self, error: hyper::Error) -> BoxError {
        match error
            .source()
            .and_then(|source| source.downcast_ref::<h2::Error>())
        {
            // The client gets the same reason.
            Some(reset) if reset.is_reset() => error.into(),
            // etcd has closed the connection in order and has not begun with this request: clients repeat a
            // refused request.
            Some(goodbye) if goodbye.is_go_away() && goodbye.is_remote() => {
                h2::Error::from(Reason::REFUSED_STREAM).into()
            }
            _ => {
                tracing::debug!(%error, "the connection to etcd is broken");
                self.record();
                error.into()
            }
        }
    }
}

/// The gate has ended a stream: etcd must not answer.
pub(super) fn cancelled() -> BoxError {
    h2::Error::from(Reason::CANCEL).into()
}
