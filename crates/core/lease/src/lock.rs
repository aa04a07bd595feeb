//! The identity of a lock, and of the candidate.

use kube::Client;

use crate::terms::LockTerms;

/// A lock and a candidate for the lock.
#[derive(Clone)]
pub struct Lock {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) terms: Option<LockTerms>,
}

impl Lock {
    /// The lock is the Lease `name` in `namespace`. No second process may use `identity` ([`crate::identity`]
    /// generates a unique value). The client needs `get`, `create` and `update` of Leases, should have
    /// `watch`, and for Events `create` and `patch` of `events.k8s.io`. The client itself must not be fenced
    /// by a lock.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            terms: None,
        }
    }

    /// The terms that all holders of this lock must share, written into the Lease. While a different process
    /// holds the lock on different terms, [`crate::Elector::with_lease`] fails with
    /// [`crate::Lost::Disagrees`], or waits as the terms say.
    #[must_use]
    pub fn on_terms(self, terms: impl Into<LockTerms>) -> Self {
        Self {
            terms: Some(terms.into()),
            ..self
        }
    }
}
