//! Switches off each rule of a claim: a scenario of this program fails without the rule.

use mutation::Mutation;

use super::{Subject, data, fence, forged, hand_over};

pub async fn a_claim_without_a_rule_is_noticed(subject: &Subject) {
    Mutation::FencePassesAtOnce
        .assert_killed_by_scenario(
            fence::behind_the_fence(subject),
            "etcd is opened before the fence has begun",
        )
        .await;
    Mutation::CopyEvidenceIgnored
        .assert_killed_by_scenario(data::given_by_its_source(subject), "unwrap_err")
        .await;
    Mutation::EndedEpochContinued
        .assert_killed_by_scenario(super::woken_late(subject), "right: \"NotOwner\"")
        .await;
    Mutation::HandOverNotConfirmed
        .assert_killed_by_scenario(
            hand_over::contradicted_by_the_record(subject),
            "the hand-over counts as Confirmed",
        )
        .await;
    Mutation::UnnotedPhaseTrusted
        .assert_killed_by_scenario(
            forged::phases_of_a_thief(subject),
            "the gardenlet relies on phase Held",
        )
        .await;
    Mutation::CopyOfEarlierEpochCounts
        .assert_killed_by_scenario(data::copies_are_judged(subject), "unwrap_err")
        .await;
}
