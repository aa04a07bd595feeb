//! What users of a shoot make there keeps nobody from working, however large it is.

use anyhow::Result;
use api::meta::ConditionStatus;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::world::{World, until};

/// Objects that look as if they were ours. Together they are larger than an answer may be, and so are ten of
/// them.
const LARGE: usize = 12;
/// Parts of one of them, some 700 KiB in an answer, with who has written what.
const PARTS: usize = 12_000;

/// RX-02: all of one kind is listed, in as small parts as it takes; what is ours is applied, judged, put
/// right and deleted, although users have written into it, too.
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

/// One that runs nothing.
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
