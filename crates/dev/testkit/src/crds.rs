//! Brings custom resources into a cluster.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};

/// Longer than a busy API server takes for some 30 definitions at once.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);

/// Applies CRDs and waits until the API server serves the resources.
pub async fn apply_crds(client: &Client, crds: &[CustomResourceDefinition]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    try_join_all(crds.iter().map(|crd| apply(&api, crd))).await?;
    Ok(())
}

async fn apply(api: &Api<CustomResourceDefinition>, crd: &CustomResourceDefinition) -> Result<()> {
    let name = crd.name_any();
    let params = PatchParams::apply("testkit").force();
    api.patch(&name, &params, &Patch::Apply(crd))
        .await
        .with_context(|| format!("definition {name} was refused"))?;
    crate::wait_bound::timeout(
        ESTABLISHED_WITHIN,
        await_condition(api.clone(), &name, is_crd_established()),
    )
    .await
    .with_context(|| format!("definition {name} was not established within {ESTABLISHED_WITHIN:?}"))??;
    Ok(())
}
