//! A watch of all keys of etcd.

use super::{ALL, Etcd, messages as m, unavailable};
use crate::error::{Class, Error, Result};
use futures::{StreamExt, channel::oneshot};
use tonic::Streaming;

/// A watch of etcd, which ends when dropped.
///
/// Dropping the responses alone leaves the stream open: etcd would send every further change, and the
/// connection counts the unread frames until the connection is closed.
#[derive(Debug)]
pub struct Watch {
    responses: Streaming<m::WatchResponse>,
    _requests_open: oneshot::Sender<()>,
}

impl Watch {
    /// Waits for the next response. May be dropped: no response is lost.
    ///
    /// # Errors
    /// `Compacted` where etcd does not have the history any more, and `Etcd` where the watch has ended.
    pub async fn next(&mut self) -> Result<m::WatchResponse> {
        let response = self.responses.message().await;
        let response = response.map_err(|status| unavailable("watching", &status))?;
        let Some(response) = response else {
            return Err(Error::new(Class::Etcd, "etcd closed the watch"));
        };
        if response.compact_revision > 0 {
            let what = format!("etcd has compacted up to revision {}", response.compact_revision);
            return Err(Error::new(Class::Compacted, what));
        }
        if response.canceled {
            return Err(Error::new(
                Class::Etcd,
                format!("etcd ended the watch: {}", response.cancel_reason),
            ));
        }
        Ok(response)
    }
}

impl Etcd {
    /// All changes from a revision on. Large responses come in fragments, so that memory holds a single
    /// fragment at a time.
    pub async fn watch(&self, start_revision: i64) -> Result<Watch> {
        let create = m::WatchCreateRequest {
            key: ALL.into(),
            range_end: ALL.into(),
            start_revision,
            fragment: true,
        };
        // The end of the stream of requests ends the watch.
        let (requests_open, end_of_requests) = oneshot::channel();
        let requests = futures::stream::iter([m::WatchRequest { create: Some(create) }])
            .chain(futures::stream::pending().take_until(end_of_requests));
        let responses = self
            .stream("/etcdserverpb.Watch/Watch", "starting a watch", requests)
            .await?;
        Ok(Watch {
            responses,
            _requests_open: requests_open,
        })
    }
}
