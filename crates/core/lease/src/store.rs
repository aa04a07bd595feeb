//! The lock at the API server: a Lease that is written by compare-and-swap. Every request has a time-out.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ObjectMeta, PostParams, WatchEvent, WatchParams};

use crate::election_record::ElectionRecord;
use crate::lock::Lock;
use crate::terms::{self, Contradiction, LockTerms};

/// The reason why a request changed nothing, or may have made a change without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The Lease has changed since the read: read again.
    #[error("another process changed the Lease")]
    Changed,
    /// No answer in time.
    #[error("the API server did not answer within {0:?}")]
    NoAnswer(Duration),
    /// An error of the API server or of the connection.
    #[error("{0}")]
    Api(#[from] kube::Error),
}

impl Failure {
    /// A short reason for metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Changed => "overtaken",
            Self::NoAnswer(_) => "no answer",
            Self::Api(_) => "error",
        }
    }
}

pub(crate) struct Store {
    api: Api<Lease>,
    name: String,
    identity: String,
    terms: Option<LockTerms>,
    timeout: Duration,
}

impl Store {
    pub(crate) fn new(lock: Lock, timeout: Duration) -> Self {
        Self {
            api: Api::namespaced(lock.client, &lock.namespace),
            name: lock.name,
            identity: lock.identity,
            terms: lock.terms,
            timeout,
        }
    }

    /// The terms of a different holder, if those terms differ from the terms of this process.
    pub(crate) fn find_contradiction(&self, lease: &Lease) -> Option<Contradiction> {
        terms::find_contradiction(lease, &self.identity, self.terms.as_ref())
    }

    pub(crate) async fn read(&self) -> Result<Option<Lease>, Failure> {
        self.answered(self.api.get_opt(&self.name)).await
    }

    pub(crate) async fn create(&self, record: &ElectionRecord) -> Result<Lease, Failure> {
        let mut lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(record.spec()),
        };
        terms::write(&mut lease, &self.identity, self.terms.as_ref());
        self.answered(self.api.create(&PostParams::default(), &lease))
            .await
    }

    /// Writes a record into the Lease that was read. Fails with [`Failure::Changed`] if the Lease has changed
    /// since the read.
    // The protocol is compare-and-swap of the whole object with its resourceVersion. The protocol needs the
    // verb `update`, granted to all managers for the lock. Server-side apply would merge where this write
    // must be refused.
    #[allow(clippy::disallowed_methods)]
    pub(crate) async fn update(&self, read: &Lease, record: &ElectionRecord) -> Result<Lease, Failure> {
        let mut lease = read.clone();
        lease.spec = Some(record.spec());
        terms::write(&mut lease, &self.identity, self.terms.as_ref());
        match self
            .answered(self.api.replace(&self.name, &PostParams::default(), &lease))
            .await
        {
            // Deleted since the read. (For `create`, the same status means that the namespace does not
            // exist.)
            Err(Failure::Api(kube::Error::Api(status))) if status.code == 404 => Err(Failure::Changed),
            answer => answer,
        }
    }

    /// The changes of the Lease after this version. Ends, or fails, at any time: the watch only speeds the
    /// election up, and is not a source of truth.
    pub(crate) fn changes(&self, version: String) -> BoxStream<'static, kube::Result<WatchEvent<Lease>>> {
        let api = self.api.clone();
        let params = WatchParams::default()
            .fields(&format!("metadata.name={}", self.name))
            .disable_bookmarks();
        futures::stream::once(async move { api.watch(&params, &version).await })
            .try_flatten()
            .boxed()
    }

    async fn answered<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Failure::Changed),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Failure::NoAnswer(self.timeout)),
        }
    }
}
