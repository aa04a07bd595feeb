//! The etcd address for Events: etcd-events, through the gate of etcd-main if etcd-main has the gate
//! (docs/understand/decisions/0036-events-need-the-gate.md).

use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt};
use runtime::{Result, client::Cluster, error::Explain};

use crate::{
    Facts,
    etcd::{etcds::MAIN, owner::EVENTS_DIRECT},
};

/// The Service of etcd-main for clients.
const MAIN_SERVICE: &str = "etcd-main-client";

/// Host and port for `--etcd-servers-overrides`. Must be called after the wait for etcd-main: the Etcd then
/// has the gate that the flow requested, and the Service the ports that etcd-druid opened.
pub(super) async fn address(f: &Facts) -> Result<String> {
    let found = f.residency.etcds().get_opt(MAIN).await;
    let found = found.context("could not read Etcd etcd-main")?;
    let check = found.and_then(|found| found.spec.backup.owner_check);
    let Some(gate) = check.and_then(|check| check.events_gate) else {
        return Ok(EVENTS_DIRECT.to_owned());
    };
    let services: Api<Service> = f.residency.seed.namespaced(&f.residency.namespace);
    let service = services.get_opt(MAIN_SERVICE).await;
    let service = service.context("could not read Service etcd-main-client")?;
    let ports = service.and_then(|service| service.spec?.ports);
    if ports
        .unwrap_or_default()
        .iter()
        .any(|port| port.port == gate.port)
    {
        return Ok(format!("{MAIN_SERVICE}:{}", gate.port));
    }
    // A takeover must not wait for an upgrade of etcd-druid.
    tracing::warn!(
        shoot = %f.shoot.name_any(),
        port = gate.port,
        "Service etcd-main-client has no port for Events: after a fence kube-apiserver acknowledges Events until the kubelet ends it. \
         Upgrade the etcd-druid of this seed to the release of the gardenlet, then reconcile the shoot"
    );
    Ok(EVENTS_DIRECT.to_owned())
}
