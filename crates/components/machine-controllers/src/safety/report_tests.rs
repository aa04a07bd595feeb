use super::*;

fn report(nodes: &[&str], instances: &[&str]) -> Unmanaged {
    let found = |name: &&str| ListedInstance {
        machine_name: (*name).to_owned(),
        provider_id: format!("id-{name}"),
    };
    Unmanaged {
        nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        instances: instances.iter().map(found).collect(),
    }
}

#[test]
fn the_report_names_nodes_and_instances_with_the_remedy() {
    let mut list = Vec::new();
    report(&["n-1"], &["m-1"]).merge_into(&mut list);
    let condition = &list[0];
    assert_eq!(
        (condition.type_.as_str(), condition.status),
        (EVERY_NODE_READY, ConditionStatus::False)
    );
    assert_eq!(condition.reason, MACHINE_MISSING);
    for part in [
        "n-1",
        "delete the Node",
        "id-m-1 (m-1)",
        "delete each instance in the cloud",
    ] {
        assert!(condition.message.contains(part), "{part}: {}", condition.message);
    }
    let many: Vec<_> = (0..9).map(|number| format!("n-{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    report(&many, &[]).merge_into(&mut list);
    assert!(list[0].message.contains("4 more"), "{}", list[0].message);
}

#[test]
fn the_end_of_a_report_replaces_no_condition_of_another_writer() {
    let mut list = Vec::new();
    report(&[], &[]).merge_into(&mut list);
    assert!(list.is_empty());
    report(&["n-1"], &[]).merge_into(&mut list);
    report(&[], &[]).merge_into(&mut list);
    assert_eq!(
        (list[0].status, list[0].reason.as_str()),
        (ConditionStatus::True, MACHINES_COMPLETE)
    );
    list[0].status = ConditionStatus::False;
    list[0].reason = "OfAProvider".into();
    report(&[], &[]).merge_into(&mut list);
    assert_eq!(
        (list[0].status, list[0].reason.as_str()),
        (ConditionStatus::False, "OfAProvider")
    );
}
