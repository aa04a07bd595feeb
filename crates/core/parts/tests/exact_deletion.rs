//! `runtime::client::apply::delete_exactly`, which removes Deployments of the control plane, on a real API
//! server. The function removes the object that was read, and never a later object of the same name.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use runtime::client::{apply::delete_exactly, wait::until_gone};
use serde_json::json;
use testkit::ControlPlane;

/// Longer than the garbage collector needs on a busy machine: the garbage collector completes a foreground
/// deletion, even without dependents.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn only_the_object_that_was_read_is_deleted() -> Result<()> {
    let plane = ControlPlane::start("deletion").await?;
    let api: Api<ConfigMap> = Api::namespaced(plane.admin(), "default");
    let wanted: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "web"}, "data": {"k": "v"}}))?;
    let params = PostParams::default();
    let create = || api.create(&params, &wanted);

    let first = create().await?;
    delete_exactly(&api, &first).await?;
    until_gone(&api, "web", SOON).await?;
    delete_exactly(&api, &first).await?;

    // A second object has the name now: the second object stays, and the deletion of the first object
    // succeeds.
    let second = create().await?;
    assert_ne!(first.uid(), second.uid());
    let exactly = DeleteParams {
        preconditions: Some(Preconditions {
            uid: first.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let answer = api.delete("web", &exactly).await.unwrap_err();
    assert!(
        matches!(&answer, kube::Error::Api(status) if status.is_conflict() && status.code == 409),
        "{answer}"
    );
    delete_exactly(&api, &first).await?;
    assert_eq!(api.get("web").await?.uid(), second.uid());
    delete_exactly(&api, &second).await?;
    until_gone(&api, "web", SOON).await?;
    Ok(())
}
