//! A tenant sends so many requests that the requests of the suite wait.

use http::Method;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::{Api, Client, client::Body};
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

async fn header_of(client: &Client, method: Method, path: &str, name: &str) -> Result<String, String> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    let uid = answer.headers().get(name);
    let uid = uid.ok_or_else(|| "no header".to_owned())?;
    uid.to_str().map(str::to_owned).map_err(|error| error.to_string())
}

/// The API server keeps shares for the suite, and further shares for its Leases. The many accounts of a
/// project have no part in these shares.
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
        (&garden.manager, lock.as_str(), "repot-leases"),
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
