//! Whether a cloud-controller-manager removes the taint of new Nodes. A kubelet with
//! `--cloud-provider=external` registers the Node with this taint. Without a cloud-controller-manager, no
//! ordinary pod could ever start on the Node.
//!
//! The provider owns the Deployment ([`crate::ControlPlane`]), so the existence of the Deployment is the
//! answer. A provider that reports a ready ControlPlane without the Deployment has no such process.

use std::time::Duration;

use api::extensions::OperatingSystemConfig;
use futures::future::{Either, select};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use runtime::{
    Result,
    client::{
        Cluster,
        wait::{self, WaitState},
    },
    error::Explain,
};
use tokio::time::timeout;

use crate::{ControlPlane, Facts, Operation, secrets::config::CLOUD_CONTROLLER_MANAGER};

/// The flag of the kubelet.
pub(super) const EXTERNAL: &str = "--cloud-provider=external";
/// Upper bound of the wait for the Deployment: a provider writes the Deployment before the wait for pods. A
/// failing ControlPlane must not delay the closing of a zone, because the Worker follows this step.
const DEPLOYED_WITHIN: Duration = Duration::from_secs(30);

/// Whether kubelets of new machines start with [`EXTERNAL`]. `before`: the configuration that exists, if any.
pub(super) async fn describes_nodes(f: &Facts, before: Option<&OperatingSystemConfig>) -> Result<bool> {
    let deployments: Api<Deployment> = f.residency.seed.namespaced(&f.residency.namespace);
    let is_deployed = async || {
        let found = deployments.get_opt(CLOUD_CONTROLLER_MANAGER).await;
        found.map(|found| found.is_some()).context(format_args!(
            "could not read Deployment {CLOUD_CONTROLLER_MANAGER}"
        ))
    };
    if is_deployed().await? {
        return Ok(true);
    }
    let known = before.map(is_external);
    let control_plane = ControlPlane::object(&f.residency);
    if f.is_to_sleep() || control_plane.get().await?.is_none() {
        // No machine starts until the shoot wakes up, and then the flow writes the configuration again.
        return Ok(known.unwrap_or_default());
    }
    let name = CLOUD_CONTROLLER_MANAGER;
    let deployed = wait::until(&deployments, name, DEPLOYED_WITHIN, |found| match found {
        Some(_) => WaitState::Done,
        None => WaitState::Wait("its provider has not deployed it".into()),
    });
    let ready = timeout(DEPLOYED_WITHIN, control_plane.wait_until_ready());
    let outcome = match select(Box::pin(deployed), Box::pin(ready)).await {
        Either::Left((deployed, _)) => deployed.map(drop),
        Either::Right((Ok(ready), _)) => ready,
        Either::Right((Err(_), deployed)) => deployed.await.map(drop),
    };
    match outcome {
        Ok(()) => is_deployed().await,
        // The first machines must not start on a guess: no data are lost while the machines wait.
        Err(error) if f.operation == Operation::Create => Err(error),
        Err(error) => {
            tracing::warn!(
                error = format_args!("{error:#}"),
                "kubelets keep their flag for the cloud-controller-manager"
            );
            Ok(known.unwrap_or_default())
        }
    }
}

fn is_external(config: &OperatingSystemConfig) -> bool {
    let units = config.spec.units.iter();
    let mut drop_ins = units.flat_map(|unit| &unit.drop_ins);
    drop_ins.any(|drop_in| drop_in.content.contains(EXTERNAL))
}
