//! A Shoot with a domain, and the order of two Shoots.

use api::gardencore::Shoot;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::reflector::ObjectRef;

/// A Shoot with a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainClaim {
    /// uid of the Shoot.
    pub(super) uid: String,
    /// Name and namespace of the Shoot.
    pub(super) shoot: ObjectRef<Shoot>,
    /// `spec.dns.domain`.
    pub(super) domain: String,
    /// The domain is reserved for the Shoot, or a seed has deployed the Shoot with the domain.
    pub(super) is_reserved: bool,
    /// Creation of the Shoot.
    pub(super) created: Option<Time>,
    /// The Shoot is being deleted.
    pub(super) is_deleting: bool,
    /// `<shoot>.<project>`, for domains below a default domain. `None` without a Project that may have the
    /// domain: no domain is reserved for the Shoot.
    pub(super) own_prefix: Option<String>,
}

/// Whether the first Shoot was created before the second.
pub(super) fn is_older(first: &DomainClaim, second: &DomainClaim) -> bool {
    let created = |claim: &DomainClaim| claim.created.as_ref().map(|time| time.0);
    let by_age = created(first).cmp(&created(second));
    by_age.then_with(|| first.uid.cmp(&second.uid)).is_lt()
}
