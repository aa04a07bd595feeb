//! Switches rules of the extension library and of the local cloud off: a scenario of this binary must fail
//! without each rule.

use std::time::Duration;

use mutation::Mutation;

use super::{World, owner, ownership, roles};

/// Longer than the reconciler takes to notice that a different seed acts.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

pub async fn an_actuator_without_a_right_is_noticed(world: &World) {
    Mutation::RoleIgnored
        .assert_killed_by_scenario(
            roles::a_shoot_of_another_seed_is_left_alone(world, "shoot--mutated--theirs"),
            "unwrap_err",
        )
        .await;
    Mutation::OwnerNotConfirmed
        .assert_killed_by_scenario(
            ownership::nothing_is_made_for_an_unconfirmed_owner(world, "mutated"),
            "unwrap_err",
        )
        .await;
    Mutation::PermitIgnored
        .assert_killed_by_scenario(
            roles::work_ends_when_another_seed_acts(world, "shoot--mutated--given-away", SEEN_WITHIN),
            "it worked on",
        )
        .await;
}

pub async fn an_update_without_a_test_is_noticed(world: &World) {
    Mutation::RecordUpdatedWithoutTest
        .assert_killed_by_scenario(
            owner::a_late_update_changes_nothing(world, "mutated-late"),
            "No Error",
        )
        .await;
}
