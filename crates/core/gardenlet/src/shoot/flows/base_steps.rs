//! The first steps of a control plane in a seed, awake or asleep.

use flow::TaskId;
use parts::{
    ClaimPlan, CloudProviderSecret, ClusterIdentity, Departure, Facts, Namespace, OwnerRecord,
    OwnerRecordPlan, Secrets,
};

use super::graph::{ShootGraph, Steps, when};

/// The tasks that all later steps wait for.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    /// The shoot's namespace.
    pub namespace: TaskId,
    /// The namespace, and the owner record where the seed publishes owner records. The owner record comes
    /// before every object that a former owner might change as well (R17-21).
    pub owned: TaskId,
    /// The identity by which the controllers of the shoot recognize the objects of the shoot.
    pub identity: TaskId,
    /// The account at the provider.
    pub credentials: TaskId,
    /// The shoot's own authorities, keys and certificates.
    pub secrets: TaskId,
}

/// Adds these steps.
pub(crate) fn lay<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    claim: ClaimPlan,
) -> Base {
    let namespace = g.step(Namespace::DEPLOY, f, []);
    let departure_cancelled = claim == ClaimPlan::DepartureCancelled;
    let kept = when(g, departure_cancelled).step(Departure::CANCEL, f, namespace);
    let owned = when(g, owner_record == OwnerRecordPlan::Keep).deploy::<OwnerRecord>(f, kept);
    Base {
        namespace,
        owned,
        identity: g.step(ClusterIdentity::ENSURE, f, namespace),
        credentials: g.step(CloudProviderSecret::DEPLOY, f, namespace),
        secrets: g.step(Secrets::DEPLOY, f, namespace),
    }
}

/// Removes the owner record when the Seed no longer requests owner records. The removal waits until etcd runs
/// without owner checks, because an owner check confirms the seed only with a record.
pub(crate) fn drop_owner_record<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    etcd_ready: TaskId,
) {
    when(g, owner_record == OwnerRecordPlan::Drop).destroy::<OwnerRecord>(&f.residency, etcd_ready);
}
