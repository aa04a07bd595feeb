use api::{
    meta::find_condition,
    resources::{ManagedResourceSpec, ManagedResourceStatus},
};
use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::health::Health;

fn time() -> Time {
    Time(Timestamp::default())
}

fn key(name: &str) -> Key {
    Key::new("apps/v1", "Deployment", Some("n"), name)
}

fn health(wrong: Option<&str>, rolls: Option<&str>) -> State {
    State::Seen(Health {
        wrong: wrong.map(Into::into),
        rolls: rolls.map(Into::into),
    })
}

#[rstest]
#[case(vec![health(None, None)], (ConditionStatus::True, "ResourcesHealthy", "All resources are healthy."), (ConditionStatus::False, "ResourcesRolledOut"))]
#[case(vec![], (ConditionStatus::True, "ResourcesHealthy", "All resources are healthy."), (ConditionStatus::False, "ResourcesRolledOut"))]
#[case(vec![health(None, None), health(Some("it is ill"), Some("it rolls"))], (ConditionStatus::False, "DeploymentUnhealthy", "Deployment n/1: it is ill"), (ConditionStatus::True, "DeploymentProgressing"))]
#[case(vec![State::Missing], (ConditionStatus::False, "DeploymentMissing", "Deployment n/0 is not there"), (ConditionStatus::False, "ResourcesRolledOut"))]
#[case(vec![State::Pending], (ConditionStatus::Progressing, "ChecksPending", "Deployment n/0 was not seen yet"), (ConditionStatus::Unknown, "ChecksPending"))]
#[case(vec![State::Unknown("forbidden".to_owned()), State::Pending], (ConditionStatus::Unknown, "ChecksFailed", "Deployment n/0: forbidden"), (ConditionStatus::Unknown, "ChecksPending"))]
fn objects_make_conditions(
    #[case] states: Vec<State>,
    #[case] healthy: (ConditionStatus, &str, &str),
    #[case] progressing: (ConditionStatus, &str),
) {
    let keys: Vec<Key> = (0..states.len()).map(|number| key(&number.to_string())).collect();
    let (health, progress) = judged(keys.iter().zip(states));
    assert_eq!(
        (health.status, health.reason.as_str(), health.message.as_str()),
        healthy
    );
    assert_eq!((progress.status, progress.reason.as_str()), progressing);
}

#[test]
fn a_status_is_written_once_and_sorted() {
    let mut resource = ManagedResource::new("a", ManagedResourceSpec::default());
    resource.metadata.generation = Some(3);
    let report = || Report {
        applied: Some(Verdict::new(
            ConditionStatus::True,
            "ApplySucceeded",
            "All resources are applied.",
        )),
        resources: Some(vec![key("b"), key("a"), key("b")]),
        checksum: Some("c".to_owned()),
        observed: Some(3),
        ..Report::default()
    };
    let written = body(&resource, report(), &time()).unwrap_or_default();
    let status: ManagedResourceStatus = serde_json::from_value(written).unwrap_or_default();
    assert_eq!(status.resources, [key("a").to_status(), key("b").to_status()]);
    assert_eq!(
        (
            status.observed_generation,
            status.secrets_data_checksum.as_deref()
        ),
        (Some(3), Some("c"))
    );
    assert!(find_condition(&status.conditions, APPLIED).is_some());
    resource.status = Some(status);
    assert_eq!(body(&resource, report(), &time()), None, "nothing is new");
    assert_eq!(keys(&resource), [key("a"), key("b")]);
    let emptied = body(
        &resource,
        Report {
            resources: Some(vec![]),
            ..Report::default()
        },
        &time(),
    )
    .unwrap_or_default();
    assert_eq!(
        emptied["resources"],
        json!([]),
        "a list that is left out would stay"
    );
    assert_eq!(emptied.get("secretsDataChecksum"), None);
}

/// A report about the cluster, made on an object from before the last application.
#[test]
fn a_report_of_an_absence_takes_nothing_back() {
    let resource = ManagedResource::new("a", ManagedResourceSpec::default());
    let written = body(&resource, away("no answer"), &time()).unwrap_or_default();
    let fields: Vec<_> = written
        .as_object()
        .into_iter()
        .flatten()
        .map(|(field, _)| field)
        .collect();
    assert_eq!(fields, ["conditions"]);
}

#[test]
fn a_condition_names_some_and_counts_the_rest() {
    let all: Vec<String> = (0..7).map(|number| number.to_string()).collect();
    assert_eq!(some(&all), "0; 1; 2; 3; 4; and 2 more");
    assert_eq!(some(&all[..2]), "0; 1");
    assert_eq!(some(&["x".repeat(10_000)]).len(), 400);
}
