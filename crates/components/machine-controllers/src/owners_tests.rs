#![allow(clippy::unwrap_used)]
use api::machine::MachineSet;
use rstest::rstest;

use super::*;

fn set() -> MachineSet {
    serde_json::from_value(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet",
        "metadata": {"name": "s", "uid": "s-uid"},
        "spec": {"selector": {"matchLabels": {"pool": "a"}}},
    }))
    .unwrap()
}

fn meta(pool: &str, owner: Option<(&str, &str)>) -> ObjectMeta {
    let owners: Vec<_> = owner
        .iter()
        .map(|(kind, uid)| json!({"apiVersion": "v", "kind": kind, "name": "s", "uid": uid, "controller": true}))
        .collect();
    serde_json::from_value(json!({"name": "m", "labels": {"pool": pool}, "ownerReferences": owners})).unwrap()
}

#[rstest]
#[case::own("a", Some(("MachineSet", "s-uid")), OwnerRelation::Own)]
#[case::own_whatever_its_labels_say("b", Some(("MachineSet", "s-uid")), OwnerRelation::Own)]
#[case::restored_without_owner("a", None, OwnerRelation::Orphan)]
#[case::restored_with_an_owner_that_is_gone("a", Some(("MachineSet", "former")), OwnerRelation::Orphan)]
#[case::of_another_set_that_lives("a", Some(("MachineSet", "other")), OwnerRelation::No)]
#[case::of_another_kind("a", Some(("Widget", "gone")), OwnerRelation::No)]
#[case::not_selected("b", None, OwnerRelation::No)]
fn labels_say_whose_an_orphan_is(
    #[case] pool: &str,
    #[case] owner: Option<(&str, &str)>,
    #[case] expected: OwnerRelation,
) {
    let (set, living) = (set(), BTreeSet::from(["s-uid".to_owned(), "other".to_owned()]));
    let selector = selector("s", set.spec.selector.as_ref()).unwrap();
    let object = meta(pool, owner);
    assert_eq!(find_owner_relation(&object, &set, &selector, &living), expected);
    if expected == OwnerRelation::Orphan {
        let mut whole = json!({"metadata": object});
        json_patch::merge(&mut whole, &adoption_patch(&object, &set));
        let adopted: ObjectMeta = serde_json::from_value(whole["metadata"].clone()).unwrap();
        assert_eq!(
            find_owner_relation(&adopted, &set, &selector, &living),
            OwnerRelation::Own
        );
    }
}

/// No role has the right to update finalizers.
#[test]
fn an_owner_reference_blocks_no_deletion() {
    let reference = owner_reference(&set());
    assert_eq!(reference.controller, Some(true));
    assert_eq!(reference.block_owner_deletion, Some(false));
}

#[test]
fn a_selector_that_selects_everything_is_refused() {
    assert!(selector("s", None).is_err());
    assert!(selector("s", Some(&LabelSelector::default())).is_err());
}
