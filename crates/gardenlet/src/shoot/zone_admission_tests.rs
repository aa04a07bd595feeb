//! A failover from the admission on.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api::meta::LastError;
use placement::Operation;
use serde_json::json;

use super::{
    Retry, admitted, failed,
    tests::{after, condition, deadline, now, told, unnamed},
};

const BUDGET: Duration = Duration::from_secs(900);

/// RZ-32: an error of the Worker that a user has to fix proves nothing about the zone. The network is closed
/// in the budget, also before the provider has named the zone.
#[test]
fn no_error_ends_a_failover_that_was_admitted() {
    let error = json!({"description": "pool p names no machine type", "codes": ["ERR_CONFIGURATION_PROBLEM"],
        "taskID": "Waiting until shoot worker nodes have been reconciled"});
    let errors: [LastError; 1] = [serde_json::from_value(error).unwrap()];
    let patch = admitted(&unnamed(), "z", BUDGET, &now()).unwrap();
    let away = after(unnamed(), &patch);
    for retry in [Retry::ByItself, Retry::Never] {
        let patch = failed(&away, Operation::Reconcile, &errors, retry, &now()).unwrap();
        assert_eq!(told(Some(&patch)).unwrap(), "z Failover InProgress", "{retry:?}");
        assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"), "{retry:?}");
        let (reason, message) = condition(&patch);
        assert_eq!(reason, "FailoverInProgress");
        assert!(
            message.ends_with("again after: pool p names no machine type"),
            "{message}"
        );
    }
}
