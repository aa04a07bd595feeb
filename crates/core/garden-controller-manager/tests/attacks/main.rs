//! What a seed or a tenant that is hostile tries, each with its own credentials, on a real API server with
//! the policies and roles of the charts. Each of these went through before there was the rule that refuses it
//! here.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod accept_loss;
mod backups;
mod certificates;
mod domains;
mod fairness;
mod finalizers;
mod floods;
#[path = "../garden/mod.rs"]
mod garden;
mod garden_token;
mod hand_over;
#[path = "garden_controller_manager.rs"]
mod its_rights;
mod large;
mod managed_fields;
mod manifests;
mod members;
mod owner_checks;
mod ownership;
mod preparation;
mod preparation_backups;
mod preparation_keys;
mod readable;
mod reports;
mod rights;
mod room;
mod secrets;
mod shoot_state_keys;
mod shoot_states;
mod stolen_namespace;
mod stored_bytes;
mod takeover;
mod tenants;
mod writable;

use std::collections::{BTreeMap, BTreeSet};

use garden::Garden;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::Value;
use tokio::task::JoinSet;

// In sequence: some scenarios grant rights, or take a policy away for a time.
testkit::scenarios! {
    mod refused for Garden = Garden::start();
    in_sequence:
    // Before a scenario gives the editor of Shoots the right to move Shoots.
    preparation::{
        a_seed_without_a_grant_prepares_nothing,
        a_seed_with_a_grant_reports_one_condition,
        a_grant_that_has_ended_gives_no_right,
        a_host_ends_a_preparation_and_changes_none,
        a_preparation_takes_the_right_of_a_move,
        a_grant_gives_no_right_to_read,
    },
    preparation_keys::{
        a_destination_reads_the_object_of_its_grant_alone,
        a_void_grant_gives_no_keys,
        a_host_makes_the_keys_of_its_own_shoot_alone,
    },
    preparation_backups::{a_destination_writes_the_status_of_its_entry_alone},
    garden_token::{
        no_seed_gets_a_token_of_the_garden,
        a_seed_fills_only_what_is_of_its_own_shoots,
        a_seed_makes_no_kubeconfig_immutable,
        garden_controller_manager_makes_no_tokens_either,
    },
    shoot_states::{
        a_shoot_state_is_of_the_seed_that_has_the_shoot,
        a_chunk_is_of_the_seed_that_has_the_shoot,
        the_numbers_of_attempts_rise_by_one,
        garden_controller_manager_gives_nobody_else_a_right,
    },
    shoot_state_keys::{a_host_takes_no_keys_along, the_writes_of_an_honest_host_pass},
    secrets::{
        a_seed_reads_the_secrets_of_its_own_shoots_alone,
        a_binding_from_before_the_namespace_of_its_secret_gives_no_right,
        a_seed_reads_its_own_credentials,
        a_seed_names_no_secret_outside_of_its_namespace,
        the_author_of_a_shoot_may_read_the_secret_of_its_dns,
        garden_controller_manager_grants_named_secrets_alone,
    },
    rights::{
        a_member_grafts_no_right_on_those_of_seeds,
        a_service_account_of_a_known_name_is_not_exempt,
        a_certificate_without_the_group_meets_the_policies,
        a_binding_names_a_secret_that_its_author_may_read,
        a_removed_seed_registers_no_seed_again,
        an_editor_of_shoots_moves_none,
        garden_controller_manager_takes_no_other_namespace,
        a_seed_name_of_null_is_no_name,
        a_planted_binding_blocks_no_seed,
        a_further_label_blocks_no_seed,
        a_namespace_without_a_project_has_no_rights_of_seeds,
    },
    manifests::{a_manifest_without_the_seed_stays_valid_after_a_move},
    certificates::{a_withdrawn_certificate_has_no_rights, a_removed_seed_gets_no_right},
    stolen_namespace::{
        an_id_comes_from_the_project_of_the_namespace_and_stays,
        a_namespace_has_one_project,
    },
    ownership::{
        the_destination_writes_nothing_before_it_has_the_shoot,
        a_shoot_is_handed_over_as_it_was_approved,
        a_hand_over_that_comes_late_is_refused,
        a_former_seed_takes_only_its_own_entry_away,
        the_source_writes_no_metadata_but_that_of_its_work,
        garden_controller_manager_hands_over_by_one_epoch,
    },
    takeover::{
        it_takes_a_verb_of_its_own,
        a_new_epoch_takes_a_verb_of_its_own,
        no_seed_consents_to_a_takeover,
        a_record_goes_on_step_by_step,
        a_former_seed_tells_its_own_loss_once,
    },
    accept_loss::{
        to_accept_a_loss_takes_a_verb_of_its_own,
        the_end_of_an_epoch_is_recorded_by_its_seed_in_the_hand_over,
    },
    owner_checks::{
        a_seed_writes_its_own_owner_check_alone,
        an_entry_that_loses_its_form_can_be_repeated,
        a_seed_writes_its_entry_as_a_later_host_reads_the_entry,
    },
    hand_over::{
        a_seed_with_owner_checks_hands_over_from_phase_sealing_alone,
        a_claimant_takes_back_that_the_source_is_drained,
    },
    reports::{
        a_hand_over_leaves_a_shoot_to_restore,
        a_shoot_is_created_once,
        a_host_reports_no_end_of_a_move_without_a_hand_over,
        a_host_seals_no_shoot_that_does_not_move,
        a_host_takes_back_no_report_of_a_saved_state,
        a_seed_ends_no_move_in_the_name_of_the_destination,
        a_host_isolates_no_zone_that_no_user_names,
        a_reported_creation_keeps_no_operator_from_another_seed,
        a_seed_records_no_time_of_a_schedule,
        a_seed_states_nothing_in_the_name_of_an_operator,
        a_host_answers_nothing_in_the_name_of_the_garden,
    },
    backups::{
        a_seed_plants_no_entry,
        an_editor_of_entries_gives_no_bucket_to_a_seed,
        a_seed_makes_no_bucket,
        a_seed_names_no_bucket_for_a_restore,
        a_seed_changes_no_owner_data_of_its_entry,
        a_seed_marks_the_end_of_a_source_entry_once,
        a_seed_adds_no_finalizer_to_its_backups,
        a_seed_deletes_its_bucket_with_its_seed_alone,
    },
    room::{
        a_host_hands_a_shoot_over_with_room_for_the_next_seed,
        the_approval_of_a_move_takes_no_room,
        a_seed_leaves_its_entry_with_room_for_the_next_seed,
        a_seed_writes_the_annotations_of_its_work_to_its_entry,
    },
    floods::{
        a_seed_writes_no_large_status,
        a_seed_fills_no_controller_installation,
        a_seed_writes_no_event_of_a_different_process,
        a_seed_reports_under_no_foreign_name,
        a_seed_reports_about_its_own_bucket_and_extensions,
        a_seed_reports_where_the_seed_has_a_shoot,
    },
    tenants::{
        a_version_is_on_offer_or_stays,
        no_free_text_of_a_shoot_has_a_control_character,
        a_shoot_stays_until_its_seed_has_removed_the_control_plane,
        no_seed_takes_a_shoot_without_the_finalizer,
        a_project_in_deletion_gets_no_shoot,
    },
    domains::{
        a_domain_belongs_to_one_shoot,
        a_seed_takes_a_shoot_after_the_reservation,
        a_shoot_from_before_reservations_keeps_its_domain,
    },
    its_rights::{
        it_changes_no_specification,
        it_bounds_projects_alone,
        it_loosens_no_restriction_of_pods,
        it_writes_no_internal_secrets,
        it_deletes_the_entries_of_preparations_alone,
        it_changes_no_owners_and_no_credentials,
        it_changes_only_its_finalizer_of_a_seed,
        it_meets_the_policies_under_a_different_name,
        a_refused_quota_stops_no_project,
    },
    fairness::{
        a_withdrawn_certificate_holds_no_seat,
        no_user_waits_for_few_seats, requests_of_the_suite_have_levels_of_their_own,
        writes_of_the_suite_wait_for_no_watch_of_a_member,
    },
    members::{
        a_member_of_a_project_gets_at_no_key,
        a_member_stores_no_large_object,
        a_member_names_no_owner_of_the_garden,
        a_member_reports_in_no_name_of_the_garden,
        the_role_for_members_runs_no_workload,
    },
    finalizers::{a_member_keeps_no_deleted_right, a_member_hides_no_binding},
    readable::{nobody_writes_times_that_cannot_be_read, what_is_taken_can_be_read},
    writable::{a_seed_writes_no_time_that_nobody_can_write_back, what_is_written_back_is_taken},
    large::{
        a_shoot_is_small_enough_for_everybody,
        a_full_specification_takes_the_writes_of_others,
        a_shoot_has_few_finalizers_and_tolerations,
        a_binding_is_small_enough_for_everybody,
    },
    managed_fields::{
        an_approved_move_takes_edits, managed_fields_leave_room_for_others, nobody_fills_the_name_for_generation,
    },
    stored_bytes::{
        a_shoot_is_bounded_in_bytes,
        the_largest_shoot_is_approved_and_handed_over,
        a_status_is_bounded_in_bytes,
        a_binding_is_bounded_in_bytes,
        a_shoot_state_leaves_room_for_the_next_write,
    };
}

/// The controller that grants the rights of seeds, until the set is dropped.
fn grant_rights(garden: &Garden) -> JoinSet<()> {
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::shoot_state::run(garden.context(&[])));
    controllers
}

/// A list of fields that a policy has to name one by one goes stale in silence.
#[test]
fn the_policy_for_former_seeds_knows_every_field_of_the_status() {
    let fields = fields_of_a_shoot()["status"].properties.clone().unwrap();
    let policy = include_str!("../../../../../charts/garden/files/policies/gardenlet-shoot.yaml");
    compares_all_but(policy, "status", &fields, "formerSeeds", "");
    let ownership = fields["ownership"].properties.clone().unwrap();
    compares_all_but(policy, "status.?ownership", &ownership, "restored", "");
    let restored = ownership["restored"].properties.clone().unwrap();
    compares_all_but(
        policy,
        "status.?ownership.?restored",
        &restored,
        "lostRevisions",
        "",
    );
}

#[test]
fn the_policy_for_garden_controller_manager_knows_every_field_of_the_specification() {
    let policy = include_str!("../../../../../charts/garden/files/policies/garden-controller-manager.yaml");
    let spec = fields_of_a_shoot()["spec"].properties.clone().unwrap();
    compares_all_but(policy, "spec", &spec, "kubernetes", "");
    let hibernation = spec["hibernation"].properties.clone().unwrap();
    let known: Vec<_> = hibernation.keys().map(String::as_str).collect();
    assert_eq!(known, ["enabled", "schedules"], "of these the first may change");
    let kubernetes = spec["kubernetes"].properties.clone().unwrap();
    compares_all_but(policy, "spec.?kubernetes", &kubernetes, "version", "");
}

#[test]
fn the_policy_for_ownership_compares_every_field_of_an_owner_check() {
    let policy = include_str!("../../../../../charts/garden/files/policies/shoot-ownership.yaml");
    let checks = fields_of_a_shoot()["status"].properties.clone().unwrap()["ownerChecks"].clone();
    let Some(JSONSchemaPropsOrArray::Schema(entry)) = checks.items else {
        panic!("status.ownerChecks is no list");
    };
    let fields = entry.properties.unwrap();
    let (lists, mut others): (BTreeSet<_>, BTreeSet<_>) = fields
        .keys()
        .map(String::as_str)
        .partition(|field| fields[*field].type_.as_deref() == Some("array"));
    // Entries are found by these fields.
    assert!(others.remove("seedName") && others.remove("epoch"));
    for expected in [lists, others] {
        let begin = policy
            .lines()
            .filter_map(|line| line.split_once("].all(k, c[?k]"));
        let compared = begin.filter_map(|(list, _)| Some(list.rsplit_once('[')?.1));
        let same = compared.filter(|list| {
            let names = list.split(", ").map(|name| name.trim_matches('\''));
            names.collect::<BTreeSet<_>>() == expected
        });
        assert_eq!(same.count(), 2, "{expected:?} in both directions");
    }
}

#[test]
fn the_policy_for_ownership_knows_each_reason_of_seeds() {
    let policy = include_str!("../../../../../charts/garden/files/policies/shoot-ownership.yaml");
    let reasons = placement::takeover::REASONS_OF_SEEDS.map(|reason| format!("'{reason}'"));
    let list = format!("c.reason in [{}]", reasons.join(", "));
    assert!(policy.contains(&list), "the policy does not have {list}");
}

#[test]
fn the_policy_for_the_name_of_the_seed_knows_every_field_of_the_specification() {
    let policy = include_str!("../../../../../charts/garden/files/policies/shoot-seed-name.yaml");
    let spec = fields_of_a_shoot()["spec"].properties.clone().unwrap();
    // For a list, absent and empty are the same.
    let (lists, others): (BTreeMap<_, _>, BTreeMap<_, _>) = spec
        .into_iter()
        .partition(|(_, schema)| schema.type_.as_deref() == Some("array"));
    compares_all_but(policy, "spec", &others, "seedName", "");
    compares_all_but(policy, "spec", &lists, "seedName", ".orValue([])");
}

/// Each policy is complete in its file, so the expressions are repeated. A policy with a different expression
/// would let a gardenlet escape.
#[test]
fn all_policies_recognise_gardenlets_by_the_same_expressions() {
    let named = |list: &Value, name: &str| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        let items = items.filter(|item| item["name"] == name);
        items
            .filter_map(|item| Some(item["expression"].as_str()?.trim().to_owned()))
            .collect()
    };
    let (mut conditions, mut seeds) = (Vec::new(), Vec::new());
    for (_, text) in garden::files_of_policies() {
        for policy in garden::documents_in(&text) {
            conditions.extend(named(&policy["spec"]["matchConditions"], "by-a-gardenlet"));
            let of_user = named(&policy["spec"]["variables"], "seed").into_iter();
            seeds.extend(of_user.filter(|expression| expression.contains("request.userInfo")));
        }
    }
    for expressions in [conditions, seeds] {
        assert!(expressions.len() > 1, "{expressions:?}");
        let distinct: BTreeSet<_> = expressions.into_iter().collect();
        assert_eq!(distinct.len(), 1, "{distinct:?}");
    }
}

/// Fails unless the policy compares each field below `place`, except `except`, with the former value.
/// `absent` is the CEL suffix for the value of an absent field.
#[track_caller]
fn compares_all_but(
    policy: &str,
    place: &str,
    fields: &BTreeMap<String, JSONSchemaProps>,
    except: &str,
    absent: &str,
) {
    for field in fields.keys().filter(|field| *field != except) {
        let compared = format!("object.?{place}.?{field}{absent} == oldObject.?{place}.?{field}{absent}");
        assert!(policy.contains(&compared), "{place}.{field} is not compared");
    }
}

fn fields_of_a_shoot() -> BTreeMap<String, JSONSchemaProps> {
    let mut crds = api::all_crds().into_iter();
    let shoot = crds
        .find(|crd| crd.definition.spec.names.kind == "Shoot")
        .unwrap();
    let schema = shoot.definition.spec.versions[0].schema.clone().unwrap();
    schema.open_api_v3_schema.unwrap().properties.unwrap()
}
