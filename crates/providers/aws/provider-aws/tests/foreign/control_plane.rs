//! The cloud-controller-manager deletes Nodes without a visible instance. So keys of a different account
//! never get into the Secret of the process, also when the pod restarts.

use anyhow::{Context as _, Result, ensure};
use api::{extensions::ControlPlane, meta::ErrorCode};
use aws_fixture::{
    keys::{HOME, OTHER, issue},
    region::{Region, SHOOT, credentials},
};
use extension::control_plane::ControlPlaneActuator;
use extension_contract::run_until_ready;
use k8s_openapi::{
    ByteString,
    api::{apps::v1::Deployment, core::v1::Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
};
use provider_aws::control_plane::{
    AwsControlPlane,
    cloud_controller_manager::{ACCOUNT, CloudControllerManagerSettings, NAME},
};
use provider_aws_fixture::{TEST, build_access, object, of_kind, reconciler};
use serde_json::{Value, json};
use testkit::{Moto, PlayedKubelet};

use crate::{REGION, again, asking, set_keys};

pub async fn keeps_the_keys_of_the_recorded_account(
    client: &Client,
    moto: &Moto,
    region: &Region,
    infrastructure: &Value,
) -> Result<()> {
    let _pods = PlayedKubelet::start(client);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SHOOT);
    let kubeconfig =
        of_kind::<Secret>(json!({"metadata": {"name": NAME}, "stringData": {"kubeconfig": "k"}}))?;
    secrets.create(&PostParams::default(), &kubeconfig).await?;
    let parts = AwsControlPlane {
        cloud_controller_manager: Some(CloudControllerManagerSettings {
            image: "cloud-controller-manager-aws:test".into(),
            endpoint: None,
            environment: Vec::new(),
        }),
        place: build_access(region),
    };
    let by = reconciler(client, ControlPlaneActuator(parts));
    let control_planes: Api<ControlPlane> = Api::namespaced(client.clone(), SHOOT);
    let created: ControlPlane = object(
        "one",
        REGION,
        json!({"infrastructureProviderStatus": infrastructure}),
    )?;
    let created = control_planes
        .create(&PostParams::default(), &asking(created))
        .await?;
    run_until_ready(&by, &created).await?;
    ensure!(
        key_id(&secrets).await? == *b"AKIATEST",
        "the keys are not deployed"
    );
    let before = versions(client).await?;

    // A recorded account, and an Infrastructure from before the record.
    let mut old = infrastructure.clone();
    old["accountID"] = Value::Null;
    set_keys(client, issue(moto, OTHER).await?.data()).await?;
    for (status, named) in [(infrastructure, HOME), (&old, "no account is recorded")] {
        let patch = json!({"spec": {"infrastructureProviderStatus": status}});
        TEST.merge(&control_planes, "one", &patch).await?;
        TEST.merge(&control_planes, "one", &again()).await?;
        let refused = run_until_ready(&by, &created).await;
        let error = refused
            .err()
            .context("keys of a different account are deployed")?;
        ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error}");
        let text = error.to_string();
        for part in [named, OTHER, "into the Secret"] {
            ensure!(text.contains(part), "{part}: {text}");
        }
        ensure!(
            versions(client).await? == before,
            "the Secret or the process has changed"
        );
    }

    // New keys of the recorded account are passed on.
    let renewed = issue(moto, HOME).await?;
    set_keys(client, renewed.data()).await?;
    TEST.merge(&control_planes, "one", &again()).await?;
    run_until_ready(&by, &created).await?;
    ensure!(
        key_id(&secrets).await? == renewed.data()["accessKeyID"],
        "the former keys are left"
    );
    ensure!(
        versions(client).await? != before,
        "the process keeps the former keys"
    );

    control_planes.delete("one", &DeleteParams::default()).await?;
    run_until_ready(&by, &created).await?;
    ensure!(secrets.get_opt(ACCOUNT).await?.is_none(), "the Secret is left");
    secrets.delete(NAME, &DeleteParams::default()).await?;
    set_keys(client, credentials().data()).await
}

/// The key that the process reads.
async fn key_id(secrets: &Api<Secret>) -> Result<Vec<u8>> {
    let data = secrets.get(ACCOUNT).await?.data.unwrap_or_default();
    let ByteString(key) = data.get("accessKeyID").context("no key")?;
    Ok(key.clone())
}

/// Changes whenever the Secret or the specification of the process changes.
async fn versions(client: &Client) -> Result<(Option<String>, Option<i64>)> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SHOOT);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), SHOOT);
    Ok((
        secrets.get(ACCOUNT).await?.resource_version(),
        deployments.get(NAME).await?.metadata.generation,
    ))
}
