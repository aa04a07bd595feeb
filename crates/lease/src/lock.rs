//! Which lock it is, and who wants it.

use kube::Client;

/// One lock and who wants it.
#[derive(Clone)]
pub struct Lock {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) terms: Option<String>,
}

impl Lock {
    /// The lock is the Lease `name` in `namespace`; `identity` must be this process's alone
    /// ([`crate::identity`] makes one). The client needs `get`, `create` and `update` of Leases, should have
    /// `watch`, and for Events `create` and `patch` of `events.k8s.io`. It must not be fenced by a lock
    /// itself.
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

    /// What every holder of this lock must agree on, in a word without blanks. It is written into the Lease;
    /// while another one holds the lock on other terms, [`crate::Elector::with_lease`] fails with
    /// [`crate::Lost::Disagrees`].
    #[must_use]
    pub fn on_terms(self, terms: impl Into<String>) -> Self {
        Self {
            terms: Some(terms.into()),
            ..self
        }
    }
}
