//! A failover from the admission on.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api::meta::LastError;
use placement::{Operation, isolation::IsolationRefusal};
use serde_json::json;

use super::{
    Retry, admitted, failed, refused, refused_with_request, spent,
    tests::{after, condition, deadline, now, read_record, shoot, unnamed},
};

const BUDGET: Duration = Duration::from_secs(900);

/// RZ-32: an error of the Worker that a user has to fix is no proof about the zone. The network is closed in
/// the budget, also before the provider has named the zone.
#[test]
fn no_error_ends_a_failover_that_was_admitted() {
    let error = json!({"description": "pool p names no machine type", "codes": ["ERR_CONFIGURATION_PROBLEM"],
        "taskID": "Waiting until shoot worker nodes have been reconciled"});
    let errors: [LastError; 1] = [serde_json::from_value(error).unwrap()];
    let patch = admitted(&unnamed(), "z", BUDGET, &now()).unwrap();
    let away = after(unnamed(), &patch);
    for retry in [Retry::ByItself, Retry::Never] {
        let patch = failed(&away, Operation::Reconcile, &errors, retry, &now()).unwrap();
        assert_eq!(
            read_record(Some(&patch)).unwrap(),
            "z Failover InProgress",
            "{retry:?}"
        );
        assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"), "{retry:?}");
        let (reason, message) = condition(&patch);
        assert_eq!(reason, "FailoverInProgress");
        assert!(
            message.ends_with("again after: pool p names no machine type"),
            "{message}"
        );
    }
}

/// RZ-32: a request to close the network now that is older than the admission is reported and counts from
/// the admission on.
#[test]
fn a_request_to_close_now_waits_for_the_admission() {
    const STAYS: &str =
        "isolated-zone-close-now=true stays: the network is closed as soon as the failover is admitted.";
    let refusal = IsolationRefusal {
        reason: "NodesUnknown",
        message: "No.".into(),
    };
    let request = |shoot: &mut api::gardencore::Shoot, value: &str| {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        annotations.insert(
            "shoot.gardener.cloud/isolated-zone-close-now".into(),
            value.into(),
        );
    };
    let first = shoot("z", Some(("Failover", "InProgress")));
    let patch = refused(&first, "z", &refusal, &now()).unwrap();
    let plain = condition(&patch).1;
    assert!(plain.starts_with("No. The gardenlet checks again"), "{plain}");
    // After the refusal, and without a further check.
    let mut away = after(first, &patch);
    assert_eq!(refused_with_request(&away, "z", &now()), None);
    request(&mut away, "true");
    let patch = refused_with_request(&away, "z", &now()).unwrap();
    let (reason, message) = condition(&patch);
    assert_eq!(reason, "NodesUnknown");
    assert!(
        message.starts_with(&plain) && message.ends_with(STAYS),
        "{message}"
    );
    let away = after(away, &patch);
    assert_eq!(refused_with_request(&away, "z", &now()), None, "reported already");
    assert_eq!(
        refused(&away, "z", &refusal, &now()),
        None,
        "the next check reports the same"
    );
    let mut withdrawn = away.clone();
    request(&mut withdrawn, "");
    let patch = refused_with_request(&withdrawn, "z", &now()).unwrap();
    assert_eq!(condition(&patch).1, plain);

    assert_eq!(spent(&away, "z", &now()), None, "no budget has begun");
    let patch = admitted(&away, "z", BUDGET, &now()).unwrap();
    let away = after(away, &patch);
    let patch = spent(&away, "z", &now()).unwrap();
    assert_eq!(deadline(&patch), Some("2026-01-01T12:00:00Z"));
    assert_eq!(
        refused_with_request(&away, "z", &now()),
        None,
        "the failover is admitted"
    );
}
