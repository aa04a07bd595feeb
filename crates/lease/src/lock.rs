//! The identity of a lock, and of the candidate.

use kube::Client;

/// A lock and a candidate for the lock.
#[derive(Clone)]
pub struct Lock {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) terms: Option<String>,
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

    /// The terms that all holders of this lock must share, as a text without blanks, written into the Lease.
    /// While another process holds the lock on different terms, [`crate::Elector::with_lease`] fails with
    /// [`crate::Lost::Disagrees`].
    #[must_use]
    pub fn on_terms(self, terms: impl Into<String>) -> Self {
        Self {
            terms: Some(terms.into()),
            ..self
        }
    }
}
