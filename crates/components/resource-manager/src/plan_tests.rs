use rstest::rstest;
use serde_json::json;

use super::*;

fn key(version: &str, kind: &str, name: &str) -> Key {
    Key::new(version, kind, Some("n"), name)
}

#[test]
fn what_is_not_wanted_any_more_goes() {
    let before = [
        key("v1", "A", "kept"),
        key("v1", "A", "gone"),
        key("v1", "A", "free"),
        key("g/v1", "B", "newer"),
        key("old/v1", "C", "moved"),
    ];
    let wanted = [
        key("v1", "A", "kept"),
        key("g/v2", "B", "newer"),
        key("new/v1", "C", "moved"),
    ];
    let free = [key("v1", "A", "free")];
    let same = |group: &str| Equivalence {
        group: group.to_owned(),
        kind: "C".to_owned(),
    };
    assert_eq!(
        unwanted(&before, &wanted, &free, &[vec![same("old"), same("new")]]),
        [key("v1", "A", "gone")]
    );
    assert_eq!(
        unwanted(&before, &wanted, &free, &[]),
        [key("v1", "A", "gone"), key("old/v1", "C", "moved")]
    );
}

fn with(change: impl FnOnce(&mut Handling)) -> Handling {
    let mut handling = Handling::default();
    change(&mut handling);
    handling
}

#[test]
fn an_object_is_sent_left_or_awaited() {
    let (body, live) = (json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 5}}));
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let once = with(|handling| handling.once = true);
    assert_eq!(step(&once, body.clone(), None), Step::Send(body.clone()));
    assert_eq!(step(&once, body.clone(), Some(&live)), Step::Leave);
    assert_eq!(
        step(&Handling::default(), body.clone(), Some(&live)),
        Step::Send(body.clone())
    );
    assert_eq!(step(&Handling::default(), body, Some(&leaving)), Step::Await);
}

#[test]
fn replicas_and_resources_of_others_are_taken_over_as_they_are() {
    let pod = |requests: &str| json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": requests}}}, {"name": "new"}]});
    let body = json!({"spec": {"replicas": 1, "template": {"spec": pod("1m")}}});
    let live = json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 5, "template": {"spec": pod("9m")}}});
    let keeping = with(|handling| (handling.own_replicas, handling.own_resources) = (true, true));
    let sent = json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 5, "template": {"spec": pod("9m")}}});
    assert_eq!(step(&keeping, body.clone(), Some(&live)), Step::Send(sent));
    assert_eq!(
        step(&keeping, body.clone(), None),
        Step::Send(body),
        "as it is wanted in the beginning"
    );
}

#[test]
fn what_others_add_goes_where_it_is_not_borne() {
    let sent = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    let written = json!({"metadata": {
        "labels": {"a": "b", "x": "y", "resources.gardener.cloud/managed-by": "gardener"},
        "annotations": {"c": "d", "e": "f", "deployment.kubernetes.io/revision": "1"}}});
    let both = Overwrite {
        labels: true,
        annotations: true,
    };
    assert_eq!(
        overwrite(both, &sent, &written),
        Some(json!({"metadata": {"labels": {"x": null}, "annotations": {"e": null}}}))
    );
    let labels = Overwrite {
        labels: true,
        annotations: false,
    };
    assert_eq!(
        overwrite(labels, &sent, &written),
        Some(json!({"metadata": {"labels": {"x": null}}}))
    );
    assert_eq!(overwrite(Overwrite::default(), &sent, &written), None);
    assert_eq!(overwrite(both, &sent, &sent), None);
}

#[rstest]
#[case(None, &[], None, Leaving::Delete)]
#[case(None, &["a/b"], Some(0), Leaving::Delete)]
#[case(Some(10), &[], None, Leaving::Wait("it is being deleted".to_owned(), None))]
#[case(Some(10), &["a/b"], None, Leaving::Wait("it is being deleted and waits for a/b".to_owned(), None))]
#[case(Some(10), &["a/b"], Some(30), Leaving::Wait("it is being deleted and waits for a/b".to_owned(), Some(Duration::from_millis(20_100))))]
#[case(Some(30), &["a/b"], Some(30), Leaving::Finalize)]
#[case(Some(31), &["a/b"], Some(30), Leaving::Finalize)]
fn an_object_is_deleted_awaited_and_in_the_end_finalized(
    #[case] deleted_for: Option<i64>,
    #[case] finalizers: &[&str],
    #[case] bound: Option<u64>,
    #[case] then: Leaving,
) {
    let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap_or_default();
    let since = deleted_for.map(|seconds| {
        Timestamp::from_second(now.as_second() - seconds)
            .unwrap_or_default()
            .to_string()
    });
    let live = json!({"metadata": {"deletionTimestamp": since, "finalizers": finalizers}});
    let handling = with(|handling| handling.finalized_after = bound.map(Duration::from_secs));
    assert_eq!(leaving(&handling, &live, now), then);
}

#[test]
fn an_object_that_is_to_be_kept_stays() {
    let kept = with(|handling| handling.kept = true);
    assert_eq!(leaving(&kept, &json!({}), Timestamp::default()), Leaving::Keep);
    let released = with(|handling| handling.released = true);
    assert_eq!(
        leaving(&released, &json!({}), Timestamp::default()),
        Leaving::Keep
    );
}

#[test]
fn claims_of_a_stateful_set_are_those_of_its_templates() {
    let set = json!({"metadata": {"name": "db"}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    for (name, is) in [
        ("data-db-0", true),
        ("data-db-12", true),
        ("data-db-", false),
        ("data-db-x", false),
        ("logs-db-0", false),
        ("data-db-2-0", false),
    ] {
        assert_eq!(is_claim_of(&set, name), is, "{name}");
    }
}
