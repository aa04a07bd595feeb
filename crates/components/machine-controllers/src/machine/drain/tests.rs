//! Drains Nodes against a simulated API server, so that the test can count the requests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use runtime::client::Permit;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// A shoot with three pods on Node `n`, all kept by a budget, and the paths of the requests so far.
fn shoot_with_kept_pods() -> (Shoot, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let (status, body) = answer(&path);
        requests.lock().unwrap().push(path);
        let body = Body::from(body.to_string().into_bytes());
        let answer = Response::builder().status(status).body(body);
        async move { answer }
    });
    let client = kube::Client::new(service, "default");
    (Shoot::new(client, &Permit::sole("a test")), asked)
}

fn answer(path: &str) -> (StatusCode, Value) {
    let pod = |name: &str| json!({"metadata": {"name": name, "namespace": "web", "uid": name, "labels": {"app": "web"}}});
    let list = |kind: &str, items: Value| {
        (
            StatusCode::OK,
            json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items}),
        )
    };
    if path == "/api/v1/pods" {
        return list("PodList", json!([pod("a"), pod("b"), pod("c")]));
    }
    if path.ends_with("/eviction") {
        let refusal = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no",
        });
        return (StatusCode::FORBIDDEN, refusal);
    }
    let budget = json!({
        "metadata": {"name": "budget", "namespace": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "desiredHealthy": 3, "currentHealthy": 3, "expectedPods": 3},
    });
    list("PodDisruptionBudgetList", json!([budget]))
}

#[tokio::test]
async fn budgets_are_listed_once_a_round_however_many_pods_they_keep() {
    let (shoot, asked) = shoot_with_kept_pods();
    // Without a place for a Machine that waits, a round ends with the answers.
    let drained = Drain::new(&shoot, 0)
        .run_round("n", Duration::ZERO)
        .await
        .unwrap();
    let DrainProgress::Waits(why) = drained else {
        panic!("pods are left");
    };
    assert_eq!(
        why.matches("the PodDisruptionBudget budget needs 3").count(),
        3,
        "{why}"
    );
    let asked = asked.lock().unwrap();
    let count = |suffix: &str| asked.iter().filter(|path| path.ends_with(suffix)).count();
    assert_eq!(
        (count("/eviction"), count("/poddisruptionbudgets")),
        (3, 1),
        "{asked:?}"
    );
}

/// An admission webhook may take up to 30 s. The request must not be dropped before.
#[tokio::test]
async fn an_eviction_that_a_webhook_grants_late_is_waited_for() {
    let service = service_fn(|_: Request<Body>| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let granted = json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201});
        Response::builder()
            .status(StatusCode::CREATED)
            .body(Body::from(granted.to_string().into_bytes()))
    });
    let client = kube::Client::new(service, "default");
    let shoot = Shoot::new(client, &Permit::sole("a test"));
    let pod: Pod =
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "web", "uid": "a"}})).unwrap();
    let deadline = Instant::now() + ANSWERS_WITHIN;
    let refused = evict(&shoot, &pod, deadline).await.unwrap();
    assert!(refused.is_none(), "{:?}", refused.map(|(_, why)| why));
}

/// An instance of an isolated zone must end in its bound, also with many pods and a webhook that hangs.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_delays_a_round_once_however_many_pods_there_are() {
    let service = service_fn(|request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        if path.ends_with("/eviction") {
            std::future::pending::<()>().await;
        }
        let items: Vec<_> = (0..30)
            .map(|pod| json!({"metadata": {"name": format!("p{pod}"), "namespace": "web", "uid": format!("u{pod}")}}))
            .collect();
        let (kind, items) = if path == "/api/v1/pods" {
            ("PodList", items)
        } else {
            ("PodDisruptionBudgetList", Vec::new())
        };
        let body = json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items});
        Response::builder().body(Body::from(body.to_string().into_bytes()))
    });
    let shoot = Shoot::new(kube::Client::new(service, "default"), &Permit::sole("a test"));
    let begun = Instant::now();
    let drained = Drain::new(&shoot, 0)
        .run_round("n", Duration::ZERO)
        .await
        .unwrap();
    let DrainProgress::Waits(_) = drained else {
        panic!("pods are left");
    };
    let took = begun.elapsed();
    assert!(took < ANSWERS_WITHIN + Duration::from_secs(2), "{took:?}");
}
