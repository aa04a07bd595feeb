//! Objects of a shoot's users, however large, block no work.

use anyhow::Result;
use api::meta::ConditionStatus;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{World, until};

/// Number of objects with the label and origin of this process. Together these exceed the maximum size of an
/// answer, and so do ten of these.
const LARGE: usize = 12;
/// Parts of an object: some 700 KiB in an answer, including `managedFields`.
const PARTS: usize = 12_000;

/// RX-02: all objects of a kind are listed, in pages as small as necessary. The managed objects are applied,
/// judged, reverted and deleted, although users have written into these objects, too.
pub async fn a_shoot_that_its_users_have_filled(world: &World) -> Result<()> {
    let place = world.shoot("filled").await?;
    let sets: Api<StatefulSet> = place.in_shoot();
    for number in 0..LARGE {
        let mut stranger = set(&format!("stranger-{number}"), &json!({"a": "b"}));
        stranger["metadata"]["labels"] = json!({"resources.gardener.cloud/managed-by": "gardener"});
        stranger["metadata"]["annotations"] = json!({"resources.gardener.cloud/origin": "filled/nobody"});
        stranger["spec"]["template"]["spec"]["containers"][0]["env"] = parts();
        sets.create(&PostParams::default(), &serde_json::from_value(stranger)?)
            .await?;
    }
    place
        .resource("own", json!({}), &[set("own", &json!({"a": "b"}))])
        .await?;
    place.applied("own", None).await?;
    place
        .tells("own", "ResourcesHealthy", ConditionStatus::True, "")
        .await?;

    let containers = json!([{"name": "c", "image": "none", "env": parts()}]);
    let filled = json!({"metadata": {"labels": {"a": "c"}}, "spec": {"template": {"spec": {"containers": containers}}}});
    let (params, filled) = (PatchParams::default(), Patch::Strategic(filled));
    sets.patch("own", &params, &filled).await?;
    until(&sets, "own", "its label is back", |set: &StatefulSet| {
        let labels = set.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get("a"))
            .is_some_and(|value| value == "b")
    })
    .await?;

    place.delete("own").await?;
    place.gone("own").await?;
    anyhow::ensure!(sets.get_opt("own").await?.is_none(), "it is left");
    for number in 0..LARGE {
        sets.delete(&format!("stranger-{number}"), &kube::api::DeleteParams::default())
            .await?;
    }
    Ok(())
}

/// A StatefulSet without pods.
fn set(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "filled", "labels": labels},
        "spec": {
            "replicas": 0, "serviceName": "none", "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "none"}]},
            },
        },
    })
}

fn parts() -> Value {
    Value::Array(
        (0..PARTS)
            .map(|number| json!({"name": format!("A{number}")}))
            .collect(),
    )
}
