//! The check of the writers before a hand-over, on a real API server with the real controllers of Deployments
//! and ReplicaSets. The check finds each pod that can write, also without labels.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parts::{Deploy, Destroy, Facts, KubeApiserver, Namespace, Operation, Secrets, Settings, Writers};
use serde_json::{Value, json};
use testkit::{PlayedKubelet, eventually};

use parts_fixture::{NAMESPACE, World};

/// Longer than a controller needs on a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_writer_without_labels_holds_the_hand_over() -> Result<()> {
    let world = World::start("writers").await?;
    let _pods = PlayedKubelet::start(&world.client());
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&facts).await?;
    Secrets::deploy(&facts).await?;
    KubeApiserver::deploy(&facts).await?;
    KubeApiserver::ready(&facts).await?;
    Box::pin(released_by_the_controller(&world, &facts)).await?;
    Box::pin(with_the_data_of_etcd(&world, &facts)).await
}

/// A user removes all labels of a pod. The ReplicaSet releases the pod, and the pod outlives the deletion
/// of the Deployment.
async fn released_by_the_controller(world: &World, facts: &Facts) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    let all = pods.list(&ListParams::default()).await?.items;
    let name = all.first().unwrap().name_any();
    ensure!(name.starts_with("kube-apiserver-"), "{name}");
    let bare = Patch::Merge(json!({"metadata": {"labels": null}}));
    pods.patch(&name, &PatchParams::default(), &bare).await?;
    eventually("the ReplicaSet releases the pod", SOON, || async {
        let pod = pods.get(&name).await?;
        ensure!(pod.labels().is_empty(), "{:?}", pod.labels());
        ensure!(pod.owner_references().is_empty(), "{:?}", pod.owner_references());
        anyhow::Ok(())
    })
    .await?;

    Writers::destroy(&facts.residency).await?;
    Writers::gone(&facts.residency).await?;
    let left = pods.list(&ListParams::default()).await?.items;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, [name.as_str()], "the pod runs on");
    let held = Writers::check_gone(&facts.residency)
        .await
        .unwrap_err()
        .to_string();
    assert!(held.contains(&format!("pod {name} in namespace")), "{held}");
    delete(&pods, &name).await?;
    Writers::check_gone(&facts.residency).await.map_err(Into::into)
}

/// A pod without labels and owner, and of any name.
async fn with_the_data_of_etcd(world: &World, facts: &Facts) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    let claim = |read_only: bool| json!({"persistentVolumeClaim": {"claimName": "etcd-main-etcd-main-0", "readOnly": read_only}});
    let client_key = json!({"secret": {"secretName": "etcd-client"}});
    let data = "PersistentVolumeClaim etcd-main-etcd-main-0";
    for (name, volume, held) in [
        ("volume-shell", claim(false), Some(data)),
        ("volume-reader", claim(true), None),
        ("metrics-reader", client_key, None),
        ("etcd-main-0", claim(false), None),
    ] {
        pods.create(&PostParams::default(), &with_volume(name, volume)?)
            .await?;
        let checked = Writers::check_gone(&facts.residency)
            .await
            .map_err(|error| error.to_string());
        match held {
            None => assert_eq!(checked, Ok(()), "{name}"),
            Some(mount) => {
                let error = checked.unwrap_err();
                assert!(error.contains(&format!("pod {name} with {mount}")), "{error}");
            }
        }
        delete(&pods, name).await?;
    }
    Ok(())
}

/// A pod that passes the pod security admission of the namespace.
fn with_volume(name: &str, mut volume: Value) -> Result<Pod> {
    volume["name"] = json!("data");
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let container = json!({"name": "shell", "image": "shell:1", "securityContext": security,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let user = json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"containers": [container], "volumes": [volume], "securityContext": user,
            "automountServiceAccountToken": false},
    }))?)
}

async fn delete(pods: &Api<Pod>, name: &str) -> Result<()> {
    pods.delete(name, &DeleteParams::default().grace_period(0))
        .await?;
    testkit::measured("the object is gone", SOON, |bound| {
        runtime::client::wait::until_gone(pods, name, bound)
    })
    .await?;
    Ok(())
}
