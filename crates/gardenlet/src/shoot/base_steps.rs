//! Steps with which a control plane begins on a seed, awake or asleep.

use flow::{Graph, TaskId};
use parts::{
    ClaimPlan, CloudProviderSecret, ClusterIdentity, Departure, Facts, Namespace, OwnerRecord,
    OwnerRecordPlan, Secrets,
};
use runtime::Error;

use super::graph::{Steps, when};

/// What the other steps stand on.
#[derive(Clone, Copy)]
pub(super) struct Base {
    /// The shoot's namespace.
    pub namespace: TaskId,
    /// The namespace, and where the seed does so everybody is told whose the shoot is. It comes before
    /// whatever a former owner might touch, too (R17-21).
    pub owned: TaskId,
    /// By which its controllers tell what is theirs.
    pub identity: TaskId,
    /// The account at the provider.
    pub credentials: TaskId,
    /// The shoot's own authorities, keys and certificates.
    pub secrets: TaskId,
}

/// Adds them.
pub(super) fn lay<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    claim: ClaimPlan,
) -> Base {
    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    let kept =
        when(g, claim == ClaimPlan::Kept).step("Recording that the seed keeps the shoot", namespace, || {
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

/// Takes the owner record away where the seed does not say any more whose its shoots are. Not before etcd
/// runs without its check: one that asks while the names go may hear of an epoch that has no owner, and that
/// is a loss for ever (R17-50).
pub(super) fn drop_owner_record<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    owner_record: OwnerRecordPlan,
    etcd_ready: TaskId,
) {
    when(g, owner_record == OwnerRecordPlan::Drop).destroy::<OwnerRecord>(f, etcd_ready);
}
