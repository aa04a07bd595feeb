//! Reports whether Shoots are on the seed: constraint `WithoutShoots` of the Seed. While the constraint is
//! not `True`, policy `seed-in-use` rejects an edit of the fields that determine names and networks of
//! shoots.
//!
//! Promise: the constraint is `False` before a flow reads the Seed for a control plane that the flow deploys.

use api::{
    constants::condition::WITHOUT_SHOOTS,
    gardencore::Seed,
    meta::{Condition, ConditionStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use runtime::{Result, client::Cluster, clock, controller::conditions};

use crate::{Context, MANAGER};

/// Whether Shoots are on the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeedUse {
    /// No Shoot names the seed.
    Free,
    /// A Shoot names the seed.
    InUse,
}

/// Writes the constraint, unless the constraint has this value already.
pub(crate) async fn record(context: &Context, found: SeedUse) -> Result<()> {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let condition = constraint(found, clock::now_k8s());
    conditions::change(MANAGER, &seeds, &context.seed_name, "constraints", |list| {
        condition.clone().merge_into(list);
    })
    .await
    .map(|_| ())
}

fn constraint(found: SeedUse, now: Time) -> Condition {
    let (status, reason, message) = match found {
        SeedUse::Free => (
            ConditionStatus::True,
            "NoShoots",
            "No Shoot names the seed: spec.dns and spec.networks.shootDefaults may change.",
        ),
        SeedUse::InUse => (
            ConditionStatus::False,
            "ShootsOnSeed",
            "Shoots name the seed: their names and networks follow from spec.dns and spec.networks.shootDefaults, which cannot change.",
        ),
    };
    Condition::new(WITHOUT_SHOOTS, status, reason, message, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_changes_nothing_is_not_written() {
        let mut list = Vec::new();
        let early = Time(jiff::Timestamp::UNIX_EPOCH);
        constraint(SeedUse::InUse, early.clone()).merge_into(&mut list);
        let before = list.clone();
        constraint(SeedUse::InUse, Time(jiff::Timestamp::MAX)).merge_into(&mut list);
        assert_eq!(list, before);
        constraint(SeedUse::Free, early).merge_into(&mut list);
        assert_eq!((list.len(), list[0].status), (1, ConditionStatus::True));
    }
}
