//! Tables of roles, journeys, and wanted operations.

#![allow(clippy::unwrap_used)]

use api::gardencore::Shoot;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Journey, Operation, OwnerAction, Role, approval, credentials, journey, role, traveller, wanted};

const NOW: &str = "2026-01-01T12:00:00Z";

/// A Shoot of generation 2 that is hosted by `a`, with the fields of `over` merged in.
fn shoot(over: &Value) -> Shoot {
    let mut base = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u-1", "generation": 2},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"},
                 "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "seedName": "a"},
        "status": {"seedName": "a"},
    });
    json_patch::merge(&mut base, over);
    serde_json::from_value(base).unwrap()
}

/// Moving to `b`, with this last operation.
fn moving(last: (&str, &str)) -> Value {
    json!({"spec": {"seedName": "b"}, "status": {"lastOperation": operation(last)}})
}

fn operation((type_, state): (&str, &str)) -> Value {
    json!({"type": type_, "state": state, "progress": 0, "description": "", "lastUpdateTime": NOW})
}

fn approved(mut over: Value, generation: i64) -> Value {
    let spec = json!({"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.33.0"}, "seedName": "b"});
    over["status"]["migration"] =
        json!({"source": "a", "destination": "b", "generation": generation, "spec": spec});
    over
}

fn deleted(over: Value) -> Value {
    let mut over = unconfirmed(over);
    over["metadata"]["annotations"] = json!({"confirmation.gardener.cloud/deletion": "true"});
    over
}

fn unconfirmed(mut over: Value) -> Value {
    over["metadata"] = json!({"deletionTimestamp": NOW});
    over
}

#[rstest]
#[case(json!({"status": {"seedName": null}}), "a", Role::Owner)]
#[case(json!({"status": {"seedName": ""}}), "b", Role::Nobody)]
#[case(json!({}), "a", Role::Owner)]
#[case(json!({"spec": {"seedName": "b"}}), "a", Role::Owner)]
#[case(json!({"spec": {"seedName": "b"}}), "b", Role::Incoming)]
#[case(json!({"spec": {"seedName": "b"}, "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 3}]}}), "a", Role::Former { epoch: 3 })]
#[case(json!({"spec": {"seedName": "b"}, "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 3}]}}), "b", Role::Owner)]
// The seed has to clean up before the seed may prepare.
#[case(json!({"spec": {"seedName": "b"}, "status": {"formerSeeds": [{"name": "b", "epoch": 1}]}}), "b", Role::Former { epoch: 1 })]
#[case(json!({"spec": {"seedName": "b"}, "status": {"formerSeeds": [{"name": "b", "epoch": 1}, {"name": "b", "epoch": 4}]}}), "b", Role::Former { epoch: 4 })]
fn the_role_follows_from_the_object(#[case] over: Value, #[case] seed: &str, #[case] expected: Role) {
    assert_eq!(role(&shoot(&over), seed), expected);
}

/// I1: for every specification and status, no two seeds own a Shoot.
#[test]
fn no_two_seeds_own_a_shoot() {
    let names = [None, Some(""), Some("a"), Some("b"), Some("c")];
    for spec in names {
        for status in names {
            for former in names {
                let formers: Vec<_> = former
                    .map(|name| json!({"name": name, "epoch": 1}))
                    .into_iter()
                    .collect();
                let shoot = shoot(
                    &json!({"spec": {"seedName": spec}, "status": {"seedName": status, "formerSeeds": formers}}),
                );
                let owners = ["a", "b", "c"]
                    .into_iter()
                    .filter(|seed| role(&shoot, seed) == Role::Owner);
                assert!(
                    owners.count() <= 1,
                    "spec {spec:?}, status {status:?}, former {former:?}"
                );
            }
        }
    }
}

#[rstest]
#[case::new(json!({"status": {"seedName": null}}), OwnerAction::Operation(Operation::Create))]
#[case::created_half(json!({"status": {"lastOperation": operation(("Create", "Error"))}}), OwnerAction::Operation(Operation::Create))]
// A move takes no shoot whose data were never complete: the creation ends first.
#[case::created_half_and_moving(approved(moving(("Create", "Error")), 2), OwnerAction::Operation(Operation::Create))]
// A hostile seed takes the Shoot and records no operation.
#[case::taken_and_moving(approved(json!({"spec": {"seedName": "b"}}), 2), OwnerAction::Operation(Operation::Create))]
#[case::taken_and_unconfirmed(unconfirmed(json!({})), OwnerAction::Operation(Operation::Create))]
#[case::made(json!({"status": {"lastOperation": operation(("Create", "Succeeded"))}}), OwnerAction::Operation(Operation::Reconcile))]
// A wanted move that cannot begin: the present seed still reconciles the shoot (R7-46).
#[case::not_approved(moving(("Reconcile", "Succeeded")), OwnerAction::Operation(Operation::Reconcile))]
#[case::approved_for_an_older_generation(approved(moving(("Reconcile", "Succeeded")), 1), OwnerAction::Operation(Operation::Reconcile))]
#[case::approved(approved(moving(("Reconcile", "Succeeded")), 2), OwnerAction::Operation(Operation::Migrate))]
// A begun move continues, also after an edit.
#[case::begun(approved(moving(("Migrate", "Error")), 1), OwnerAction::Operation(Operation::Migrate))]
#[case::given_up(approved(moving(("Migrate", "Failed")), 2), OwnerAction::Operation(Operation::Migrate))]
// A move that was cancelled before the hand-over: the source restores the shoot.
#[case::called_off(json!({"status": {"lastOperation": operation(("Migrate", "Processing"))}}), OwnerAction::Operation(Operation::Restore))]
#[case::called_off_and_tried(json!({"status": {"lastOperation": operation(("Restore", "Error"))}}), OwnerAction::Operation(Operation::Restore))]
#[case::handed_over(json!({"status": {"lastOperation": operation(("Migrate", "Succeeded"))}}), OwnerAction::Operation(Operation::Restore))]
#[case::restored(json!({"status": {"lastOperation": operation(("Restore", "Succeeded"))}}), OwnerAction::Operation(Operation::Reconcile))]
// The user named a new destination before the present destination began.
#[case::passed_on(moving(("Migrate", "Succeeded")), OwnerAction::PassedOn)]
#[case::deleted(deleted(json!({})), OwnerAction::Operation(Operation::Delete))]
#[case::deleted_before_anybody_began(deleted(json!({"status": {"seedName": null}})), OwnerAction::Operation(Operation::Delete))]
#[case::deleted_before_the_move(deleted(approved(moving(("Reconcile", "Succeeded")), 2)), OwnerAction::Operation(Operation::Delete))]
// Deleted in the middle of a move: first restored, then deleted. Released extension objects delete no
// external resources.
#[case::deleted_while_leaving(deleted(approved(moving(("Migrate", "Processing")), 2)), OwnerAction::Operation(Operation::Restore))]
#[case::deleted_when_handed_over(deleted(json!({"status": {"lastOperation": operation(("Migrate", "Succeeded"))}})), OwnerAction::Operation(Operation::Restore))]
#[case::deleted_while_passed_on(deleted(moving(("Migrate", "Succeeded"))), OwnerAction::Operation(Operation::Restore))]
#[case::deleted_while_restored(deleted(json!({"status": {"lastOperation": operation(("Restore", "Error"))}})), OwnerAction::Operation(Operation::Restore))]
#[case::deletion_goes_on(deleted(json!({"status": {"lastOperation": operation(("Delete", "Error"))}})), OwnerAction::Operation(Operation::Delete))]
// Policies can be uninstalled: an accidental deletion does not cost a cluster, and operations under way are
// finished meanwhile.
#[case::unconfirmed(unconfirmed(json!({"status": {"lastOperation": operation(("Reconcile", "Succeeded"))}})), OwnerAction::Confirmation)]
#[case::no_longer_confirmed(unconfirmed(json!({"status": {"lastOperation": operation(("Delete", "Error"))}})), OwnerAction::Confirmation)]
#[case::unconfirmed_and_new(unconfirmed(json!({"status": {"lastOperation": operation(("Create", "Processing"))}})), OwnerAction::Operation(Operation::Create))]
#[case::unconfirmed_and_restored(unconfirmed(json!({"status": {"lastOperation": operation(("Restore", "Error"))}})), OwnerAction::Operation(Operation::Restore))]
#[case::unconfirmed_and_leaving(unconfirmed(approved(moving(("Migrate", "Error")), 2)), OwnerAction::Operation(Operation::Migrate))]
fn what_is_wanted_follows_from_the_object(#[case] over: Value, #[case] expected: OwnerAction) {
    assert_eq!(wanted(&shoot(&over)), expected);
}

/// A move was cancelled after the epoch had ended, the seed got the next epoch, and then the user wants the
/// move again.
#[rstest]
#[case("Leaving", Operation::Migrate)]
#[case("Sealing", Operation::Migrate)]
#[case("Claiming", Operation::Restore)]
#[case("Opening", Operation::Restore)]
fn a_seed_that_was_given_a_shoot_anew_opens_its_data_first(#[case] phase: &str, #[case] expected: Operation) {
    let mut over = moving(("Migrate", "Processing"));
    over["status"]["ownership"] = json!({"epoch": 2, "phase": phase, "source": {"name": "a", "epoch": 1}});
    assert_eq!(wanted(&shoot(&over)), OwnerAction::Operation(expected));
}

/// The former host wrote `status.lastOperation` in its last write. No last operation
/// lets a shoot with an earlier epoch start with an empty etcd.
#[rstest]
#[case::half_created(Some(("Create", "Processing")))]
#[case::given_up(Some(("Create", "Failed")))]
#[case::created(Some(("Create", "Succeeded")))]
#[case::never_begun(None)]
fn a_shoot_with_an_earlier_epoch_is_restored_and_not_created(#[case] last: Option<(&str, &str)>) {
    for ownership in [
        json!({"epoch": 2}),
        json!({"epoch": 2, "phase": "Claiming", "source": {"name": "b", "epoch": 1}}),
        json!({"epoch": 1, "source": {"name": "b", "epoch": 1}}),
    ] {
        let mut over =
            json!({"status": {"formerSeeds": [{"name": "b", "epoch": 1}], "ownership": ownership}});
        over["status"]["lastOperation"] = last.map(operation).into();
        assert_eq!(journey(&shoot(&over)), Journey::Arriving, "{over}");
        let confirmed = deleted(over.clone());
        for wish in [over, confirmed] {
            assert_eq!(
                wanted(&shoot(&wish)),
                OwnerAction::Operation(Operation::Restore),
                "{wish}"
            );
        }
    }
}

/// A claimant has no object of the shoot yet, also after a last operation of the former host that has ended.
#[test]
fn a_claimed_shoot_is_restored_and_not_reconciled() {
    for last in [
        ("Reconcile", "Succeeded"),
        ("Restore", "Succeeded"),
        ("Migrate", "Pending"),
    ] {
        let ownership = json!({"epoch": 2, "phase": "Claiming", "source": {"name": "b", "epoch": 1}});
        let over = json!({"status": {"ownership": ownership, "lastOperation": operation(last)}});
        assert_eq!(
            wanted(&shoot(&over)),
            OwnerAction::Operation(Operation::Restore),
            "{last:?}"
        );
    }
}

/// The model of `ownership` proves the order for deletions, and this table applies the order to wanted
/// operations: for every last operation, an epoch that is not held is first restored.
#[rstest]
#[case("Held", Operation::Delete)]
#[case("Leaving", Operation::Restore)]
#[case("Sealing", Operation::Restore)]
#[case("Claiming", Operation::Restore)]
#[case("Opening", Operation::Restore)]
fn a_shoot_is_deleted_by_who_holds_it(#[case] phase: &str, #[case] expected: Operation) {
    for last in [
        ("Reconcile", "Succeeded"),
        ("Restore", "Succeeded"),
        ("Delete", "Error"),
    ] {
        let over =
            json!({"status": {"ownership": {"epoch": 2, "phase": phase}, "lastOperation": operation(last)}});
        assert_eq!(
            wanted(&shoot(&deleted(over))),
            OwnerAction::Operation(expected),
            "{last:?}"
        );
    }
}

#[test]
fn force_goes_before_everything() {
    let mut shoot = shoot(&unconfirmed(moving(("Migrate", "Processing"))));
    shoot.metadata.annotations = Some(
        [(
            "confirmation.gardener.cloud/force-deletion".to_owned(),
            "true".to_owned(),
        )]
        .into(),
    );
    // Force without a confirmation does not count.
    assert_eq!(wanted(&shoot), OwnerAction::Operation(Operation::Migrate));
    let annotations = shoot.metadata.annotations.as_mut().unwrap();
    annotations.insert(
        "confirmation.gardener.cloud/deletion".to_owned(),
        "true".to_owned(),
    );
    assert_eq!(wanted(&shoot), OwnerAction::Operation(Operation::ForceDelete));
}

#[test]
fn an_approval_counts_for_its_source_and_its_destination_only() {
    let of = |over| approval(&shoot(&over)).is_some();
    assert!(of(approved(moving(("Reconcile", "Succeeded")), 2)));
    let mut elsewhere = approved(moving(("Migrate", "Error")), 2);
    elsewhere["spec"]["seedName"] = json!("c");
    assert!(!of(elsewhere));
    let mut from_elsewhere = approved(moving(("Migrate", "Error")), 2);
    from_elsewhere["status"]["seedName"] = json!("c");
    assert!(!of(from_elsewhere));
    assert!(!of(approved(
        json!({"status": {"lastOperation": operation(("Migrate", "Error"))}}),
        2
    )));
}

/// An edit in the middle of a move does not become an upgrade in the middle.
#[test]
fn a_move_keeps_to_the_specification_that_was_approved() {
    let mut edited = shoot(&approved(moving(("Migrate", "Processing")), 1));
    edited.spec.credentials_binding_name = Some("renewed".into());
    let version = |shoot: &Shoot| shoot.spec.kubernetes.version.clone().unwrap();
    let source = traveller(&edited, Operation::Migrate).unwrap();
    assert_eq!(
        (version(&source), source.metadata.generation),
        ("1.33.0".into(), Some(1))
    );
    assert_eq!(source.spec.seed_name.as_deref(), Some("b"));
    assert_eq!(source.spec.credentials_binding_name.as_deref(), Some("renewed"));
    // The same at the destination, until the success is recorded.
    edited.status.as_mut().unwrap().seed_name = Some("b".into());
    assert_eq!(
        version(&traveller(&edited, Operation::Restore).unwrap()),
        "1.33.0"
    );
    assert_eq!(
        version(&traveller(&edited, Operation::Reconcile).unwrap()),
        "1.34.4"
    );
    // A cancelled move no longer counts.
    edited.status.as_mut().unwrap().seed_name = Some("a".into());
    edited.spec.seed_name = Some("a".into());
    assert_eq!(
        version(&traveller(&edited, Operation::Restore).unwrap()),
        "1.34.4"
    );
}

/// The destination may read the Secret of the present provider alone.
#[test]
fn a_move_takes_the_dns_providers_of_the_present_shoot() {
    let dns = |domain: &str, secret: &str| json!({"domain": domain, "providers": [{"type": "t", "secretName": secret}]});
    let of = |approved_dns: Value, present: Value, operation: Operation| {
        let mut over = approved(moving(("Migrate", "Processing")), 1);
        over["status"]["migration"]["spec"]["dns"] = approved_dns;
        over["spec"]["dns"] = present;
        if operation == Operation::Restore {
            over["status"]["seedName"] = json!("b");
        }
        let traveller = traveller(&shoot(&over), operation).unwrap();
        let secret = credentials::dns_secret(&traveller).map(str::to_owned);
        let domain = traveller.spec.dns.and_then(|dns| dns.domain);
        (domain.unwrap_or_default(), secret.unwrap_or_default())
    };
    let pair = |domain: &str, secret: &str| (domain.to_owned(), secret.to_owned());
    for operation in [Operation::Migrate, Operation::Restore] {
        let renewed = of(dns("a.test", "old"), dns("a.test", "new"), operation);
        assert_eq!(renewed, pair("a.test", "new"));
        let removed = of(dns("a.test", "old"), json!({"domain": "a.test"}), operation);
        assert_eq!(removed, pair("a.test", ""));
        // The domain stays as approved.
        let added = of(json!(null), dns("b.test", "new"), operation);
        assert_eq!(added, pair("", ""));
    }
}

#[test]
fn an_approval_that_cannot_be_read_is_told() {
    let mut broken = approved(moving(("Migrate", "Processing")), 1);
    broken["status"]["migration"]["spec"] = json!({"provider": 7});
    let told = traveller(&shoot(&broken), Operation::Migrate)
        .unwrap_err()
        .to_string();
    assert!(told.contains("status.migration.spec"), "{told}");
}
