//! The first steps of a control plane in a seed, awake or asleep.

use flow::{Graph, TaskId};
use parts::{
    ClaimPlan, CloudProviderSecret, ClusterIdentity, Departure, Facts, Namespace, OwnerRecord,
    OwnerRecordPlan, Secrets,
};
use runtime::Error;

use super::graph::{Steps, when};

/// The tasks that all later steps wait for.
#[derive(Clone, Copy)]
pub(super) struct Base {
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
pub(super) fn lay<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    claim: ClaimPlan,
) -> Base {
    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    let departure_cancelled = claim == ClaimPlan::DepartureCancelled;
    let kept =
        when(g, departure_cancelled).step("Recording that the seed keeps the shoot", namespace, || {
            Departure::call_off(f)
        });
    let owned = when(g, owner_record == OwnerRecordPlan::Keep).deploy::<OwnerRecord>(f, kept);
    Base {
        namespace,
        owned,
        identity: g.step("Ensuring Shoot cluster identity", namespace, || {
            ClusterIdentity::ensure(f)
        }),
        credentials: g.step("Deploying cloud provider account secret", namespace, || {
            CloudProviderSecret::deploy(f)
        }),
        secrets: g.step("Initializing secrets management", namespace, || {
            Secrets::deploy(f)
        }),
    }
}

/// Removes the owner record when the Seed no longer requests owner records. The removal waits until etcd runs
/// without owner checks, because an owner check confirms the seed only with a record.
pub(super) fn drop_owner_record<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    etcd_ready: TaskId,
) {
    when(g, owner_record == OwnerRecordPlan::Drop).destroy::<OwnerRecord>(f, etcd_ready);
}
