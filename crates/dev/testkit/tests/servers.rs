//! The servers of this crate start, answer and stop.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::{ControlPlane, Fate, NameServer, ObjectStore, PlayedKubelet, eventually};

async fn create<K>(client: &Client, namespace: Option<&str>, object: Value) -> K
where
    K: kube::Resource<DynamicType = ()>
        + serde::de::DeserializeOwned
        + serde::Serialize
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    let url = K::url_path(&(), namespace);
    let request =
        kube::core::Request::new(url).create(&PostParams::default(), serde_json::to_vec(&object).unwrap());
    client.request(request.unwrap()).await.unwrap()
}

fn pods(restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "image"}]},
    })
}

#[tokio::test]
async fn a_control_plane_serves_users_runs_controllers_and_survives_its_api_server() {
    let mut plane = ControlPlane::start("plane").await.unwrap();
    let user = plane.client("jane", &["developers", "testers"]).await.unwrap();
    let review: SelfSubjectReview = create(&user, None, json!({"spec": {}})).await;
    let info = review.status.unwrap().user_info.unwrap();
    assert_eq!(info.username.as_deref(), Some("jane"));
    assert_eq!(
        info.groups.unwrap(),
        ["developers", "testers", "system:authenticated"]
    );

    let admin = plane.admin();
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let made: Namespace = create(&admin, None, json!({"metadata": {"name": "gone-soon"}})).await;
    create::<ConfigMap>(&admin, Some("gone-soon"), json!({"metadata": {"name": "inside"}})).await;
    namespaces
        .delete("gone-soon", &DeleteParams::default())
        .await
        .unwrap();
    let uid = made.metadata.uid.unwrap();
    let deleted = conditions::is_deleted(&uid);
    let deletion = await_condition(namespaces, "gone-soon", deleted);
    testkit::timeout(Duration::from_secs(60), deletion)
        .await
        .unwrap()
        .unwrap();

    create::<ConfigMap>(&admin, Some("default"), json!({"metadata": {"name": "kept"}})).await;
    plane.stop_api();
    let maps: Api<ConfigMap> = Api::namespaced(admin, "default");
    assert!(maps.get("kept").await.is_err());
    plane.start_api().await.unwrap();
    maps.get("kept").await.unwrap();
}

#[tokio::test]
async fn workloads_get_ready_through_their_own_controllers() {
    let plane = ControlPlane::start("workloads").await.unwrap();
    let client = plane.admin();
    let _rollout = PlayedKubelet::with(&client, |pod| match pod.metadata.name.as_deref() {
        Some(name) if name.starts_with("broken") => Fate::Fails("out of luck".into()),
        _ => PlayedKubelet::usual(pod),
    });
    let selector = json!({"matchLabels": {"app": "x"}});
    let spec = json!({"replicas": 2, "selector": selector, "template": pods("Always")});
    create::<Deployment>(
        &client,
        Some("default"),
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let spec =
        json!({"replicas": 1, "selector": selector, "serviceName": "etcd", "template": pods("Always")});
    create::<StatefulSet>(
        &client,
        Some("default"),
        json!({"metadata": {"name": "etcd"}, "spec": spec}),
    )
    .await;
    for name in ["copy", "broken"] {
        let spec = json!({"backoffLimit": 0, "template": pods("Never")});
        create::<Job>(
            &client,
            Some("default"),
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
    }
    let limit = Duration::from_secs(60);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let rolled_out = await_condition(deployments.clone(), "web", conditions::is_deployment_completed());
    testkit::timeout(limit, rolled_out).await.unwrap().unwrap();
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "default");
    let ready = |s: Option<&StatefulSet>| s.and_then(|s| s.status.as_ref()?.ready_replicas) == Some(1);
    testkit::timeout(limit, await_condition(sets, "etcd", ready))
        .await
        .unwrap()
        .unwrap();
    let jobs: Api<Job> = Api::namespaced(client.clone(), "default");
    testkit::timeout(
        limit,
        await_condition(jobs.clone(), "copy", conditions::is_job_completed()),
    )
    .await
    .unwrap()
    .unwrap();
    let failed = |j: Option<&Job>| j.and_then(|j| j.status.as_ref()?.failed) == Some(1);
    testkit::timeout(limit, await_condition(jobs, "broken", failed))
        .await
        .unwrap()
        .unwrap();

    deployments
        .delete("web", &DeleteParams::foreground())
        .await
        .unwrap();
    eventually("the deployment and its pods are gone", limit, || async {
        match deployments.get_opt("web").await {
            Ok(None) => Ok(()),
            other => Err(format!("{:?}", other.map(|_| "still there"))),
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_name_server_answers_for_its_zones() {
    let mut server = NameServer::start(&["example.test", "internal.example.test"])
        .await
        .unwrap();
    assert_eq!(server.addresses("ns.example.test").await.unwrap(), ["127.0.0.1"]);
    assert!(server.texts("nobody.example.test").await.unwrap().is_empty());
    assert!(server.texts("example.org").await.is_err());
    server.stop();
    assert!(server.addresses("ns.example.test").await.is_err());
    server.resume().await.unwrap();
    assert_eq!(
        server.addresses("ns.internal.example.test").await.unwrap(),
        ["127.0.0.1"]
    );
}

#[tokio::test]
async fn the_object_store_starts_and_starts_again() {
    let mut store = ObjectStore::start().await.unwrap();
    store.create_bucket("bucket").unwrap();
    store.stop();
    store.resume().await.unwrap();
    assert!(store.folder().join("bucket").is_dir());
}
