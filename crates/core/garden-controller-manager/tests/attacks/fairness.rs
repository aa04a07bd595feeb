//! A tenant sends so many requests that the requests of the suite wait.

use http::{Method, StatusCode};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::{Api, Client, api::DeleteParams, client::Body};
use serde_json::json;
use testkit::eventually;

use crate::garden::{Garden, NAMESPACE};

const SOON: std::time::Duration = std::time::Duration::from_secs(120);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// The uid of the FlowSchema that the API server has chosen for a read. A refused request has one, too.
async fn schema_of(client: &Client, path: &str) -> Result<String, String> {
    schema_of_request(client, Method::GET, path).await
}

async fn schema_of_request(client: &Client, method: Method, path: &str) -> Result<String, String> {
    header_of(client, method, path, "x-kubernetes-pf-flowschema-uid").await
}

async fn answer_to(client: &Client, method: Method, path: &str) -> Result<http::Response<Body>, String> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    client.send(request).await.map_err(|error| error.to_string())
}

async fn header_of(client: &Client, method: Method, path: &str, name: &str) -> Result<String, String> {
    let answer = answer_to(client, method, path).await?;
    let uid = answer.headers().get(name);
    let uid = uid.ok_or_else(|| "no header".to_owned())?;
    uid.to_str().map(str::to_owned).map_err(|error| error.to_string())
}

/// The API server keeps shares for gardenlets, and further shares for their Leases. The many accounts of a
/// project have no part in these shares. Seeds hold no seat that the lock of garden-controller-manager needs.
pub async fn requests_of_the_suite_have_levels_of_their_own(garden: &Garden) {
    let schemas: Api<FlowSchema> = Api::all(garden.administrator());
    let lock = format!("{LEASES}/garden/leases/garden-controller-manager");
    let renewal = format!("{LEASES}/gardener-system-seed-lease/leases/seed-a");
    let seeds = "/apis/core.gardener.cloud/v1beta1/seeds";
    for (client, path, name) in [
        (
            &garden.manager,
            "/api/v1/namespaces",
            "repot-garden-controller-manager",
        ),
        (&garden.manager, lock.as_str(), "repot-garden-controller-manager"),
        (&garden.seed_a, seeds, "repot-processes"),
        (&garden.seed_a, renewal.as_str(), "repot-leases"),
    ] {
        let uid = schemas.get(name).await.unwrap().metadata.uid.unwrap();
        eventually(&format!("{path} has level {name}"), SOON, || async {
            let schema = schema_of(client, path).await?;
            (schema == uid).then_some(()).ok_or(schema)
        })
        .await
        .unwrap();
    }
    let account = format!("system:serviceaccount:{NAMESPACE}:garden-controller-manager");
    let planted = garden.client(&account, &["system:serviceaccounts"]).await;
    let member = garden.member(NAMESPACE).await.unwrap();
    for client in [&planted, &member] {
        let schema = schema_of(client, seeds).await.unwrap();
        for name in [
            "repot-processes",
            "repot-leases",
            "repot-garden-controller-manager",
        ] {
            let uid = schemas.get(name).await.unwrap().metadata.uid.unwrap();
            assert_ne!(schema, uid, "a member has level {name}");
        }
    }
}

/// A level for the writes of all users would have few seats, and a few slow requests of one user would hold
/// every seat. So members keep the levels of Kubernetes, and operators have seats beside members.
pub async fn no_user_waits_for_few_seats(garden: &Garden) {
    let schemas: Api<FlowSchema> = Api::all(garden.administrator());
    let config_maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let none = format!("{config_maps}/none");
    let requests = [
        (Method::DELETE, &none),
        (Method::PATCH, &none),
        (Method::PUT, &none),
        (Method::POST, &config_maps),
        (Method::GET, &none),
    ];
    let account = format!("system:serviceaccount:{NAMESPACE}:of-member");
    let of_project = garden.client(&account, &["system:serviceaccounts"]).await;
    let member = garden.member(NAMESPACE).await.unwrap();
    let operator = garden.client("operator", &["garden-operators"]).await;
    for (client, of_writes, of_reads) in [
        (&operator, "repot-operator-writes", "repot-operators"),
        (&member, "global-default", "global-default"),
        (&of_project, "service-accounts", "service-accounts"),
    ] {
        for (method, path) in requests.clone() {
            let name = if method == Method::GET {
                of_reads
            } else {
                of_writes
            };
            let uid = schemas.get(name).await.unwrap().metadata.uid.unwrap();
            eventually(&format!("{method} {path} has schema {name}"), SOON, || async {
                let schema = schema_of_request(client, method.clone(), path).await?;
                (schema == uid).then_some(()).ok_or(schema)
            })
            .await
            .unwrap();
        }
    }
}

/// A write takes up to ten seats for seconds where many clients watch the kind, and no rule bounds the
/// watches of a member. So each level with seats fills with the writes into the project of the member. Level
/// exempt has no seats.
pub async fn writes_of_the_suite_wait_for_no_watch_of_a_member(garden: &Garden) {
    let levels: Api<PriorityLevelConfiguration> = Api::all(garden.administrator());
    let exempt = levels.get("exempt").await.unwrap().metadata.uid.unwrap();
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let operator = garden.client("operator", &["garden-operators"]).await;
    let header = "x-kubernetes-pf-prioritylevel-uid";
    for client in [&garden.manager, &operator] {
        eventually("a write has level exempt", SOON, || async {
            let level = header_of(client, Method::POST, &secrets, header).await?;
            (level == exempt).then_some(()).ok_or(level)
        })
        .await
        .unwrap();
    }
    let member = garden.member(NAMESPACE).await.unwrap();
    for client in [&member, &garden.seed_a] {
        let level = header_of(client, Method::POST, &secrets, header).await.unwrap();
        assert_ne!(level, exempt, "a member or a seed has level exempt");
    }
}

/// Waits until the API server rejects a request before the API server reads the body.
async fn until_rejected(client: &Client, method: Method, path: &str) {
    eventually(&format!("{method} {path} is rejected"), SOON, || async {
        let status = answer_to(client, method.clone(), path).await?.status();
        let is_rejected = status == StatusCode::TOO_MANY_REQUESTS;
        is_rejected.then_some(()).ok_or_else(|| status.to_string())
    })
    .await
    .unwrap();
}

/// Slow requests of a seed hold each seat of the levels of gardenlets. Without bindings, each user still may
/// create a SelfSubjectAccessReview. The FlowSchema of docs/operate/runbooks.md leaves no seat to the user.
pub async fn a_withdrawn_certificate_holds_no_seat(garden: &Garden) {
    let user = "gardener.cloud:system:seed:slow";
    let thief = garden
        .client_without_retries(user, &["gardener.cloud:system:seeds"])
        .await;
    let seeds = "/apis/core.gardener.cloud/v1beta1/seeds";
    let before = answer_to(&thief, Method::GET, seeds).await.unwrap().status();
    assert_ne!(before, StatusCode::TOO_MANY_REQUESTS);

    let name = "repot-withdrawn-slow";
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 500,
            "priorityLevelConfiguration": {"name": "repot-withdrawn"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": user}}],
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                    "clusterScope": true}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    });
    garden.bring(&schema).await.unwrap();
    let lease = format!("{LEASES}/gardener-system-seed-lease/leases/slow");
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    tokio::join!(
        until_rejected(&thief, Method::GET, seeds),
        until_rejected(&thief, Method::PATCH, &lease),
        until_rejected(&thief, Method::POST, review),
    );
    let honest = answer_to(&garden.seed_b, Method::GET, seeds).await.unwrap();
    assert_eq!(honest.status(), StatusCode::OK);

    let schemas: Api<FlowSchema> = Api::all(garden.administrator());
    schemas.delete(name, &DeleteParams::default()).await.unwrap();
}
