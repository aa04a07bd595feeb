//! Carries packets from a load balancer's address to the machines of a cluster: a Service of the account,
//! whose pods are the cluster's instances. The kube-proxy of the cluster that simulates the cloud forwards
//! the packets, even without a control plane of the shoot. So outside traffic does not notice a move.

use std::net::Ipv4Addr;

use api::meta::ErrorCode;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use runtime::{Error, Result};
use serde_json::{Value, json};

use crate::{
    cloud::{self, Cloud},
    pod::CLUSTER,
};

/// The `loadBalancerClass` that keeps further controllers of the simulating cluster away from the Service.
const CLASS: &str = "local.provider.extensions.gardener.cloud/load-balancer";
/// Annotation with the Service of the shoot, for people.
const SERVICE: &str = "local.provider.extensions.gardener.cloud/service";

/// The traffic of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// The ports of the load balancer, each with the node port of the machines.
    pub ports: Vec<Port>,
    /// Ranges of accepted sources; an empty list accepts all sources.
    pub sources: Vec<String>,
}

/// A port of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// The name of the port; unique among several ports.
    pub name: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The port of the load balancer.
    pub port: i32,
    /// The port of every machine.
    pub node_port: i32,
}

/// Name of the Service in the account: uids are unique in all clusters.
fn name_of(uid: &str) -> String {
    format!("lb-{uid}")
}

/// Forwards the address to the machines, or changes the forwarding.
pub(crate) async fn carry(
    cloud: &Cloud,
    cluster: &str,
    (uid, service): (&str, &str),
    address: Ipv4Addr,
    traffic: &Traffic,
) -> Result<()> {
    let (services, name): (Api<Service>, _) = (cloud.api(), name_of(uid));
    let doing = || format!("could not lead {address} to the machines of {cluster}");
    let params = PatchParams::apply(cloud.writer().0).force();
    let wanted = object(cluster, &name, service, traffic);
    let made = services.patch(&name, &params, &Patch::Apply(&wanted)).await;
    let made = made.map_err(|error| refused(doing(), error))?;
    if shows(&made, address) {
        return Ok(());
    }
    let status = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}));
    let shown = services.patch_status(&name, &cloud.changing(), &status).await;
    shown.map(drop).map_err(|error| cloud::error(doing(), error))
}

/// Removes the forwarding.
pub(crate) async fn end(cloud: &Cloud, uid: &str) -> Result<()> {
    let services: Api<Service> = cloud.api();
    cloud::delete(&services, &name_of(uid), "could not take a load balancer away").await
}

/// A refusal of the content is for the user to fix: the user wrote the ports and the ranges.
fn refused(doing: String, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if status.code == 422 => Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("{doing}: {}; correct the Service", status.message),
        ),
        other => cloud::error(doing, other),
    }
}

fn shows(service: &Service, address: Ipv4Addr) -> bool {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let points = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    matches!(points, [point] if point.ip.as_deref() == Some(address.to_string().as_str()))
}

fn object(cluster: &str, name: &str, service: &str, traffic: &Traffic) -> Value {
    let ports: Vec<_> = traffic
        .ports
        .iter()
        .map(|port| {
            json!({"name": port.name, "protocol": port.protocol, "port": port.port, "targetPort": port.node_port})
        })
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {CLUSTER: cluster}, "annotations": {SERVICE: service}},
        "spec": {
            "type": "LoadBalancer",
            "loadBalancerClass": CLASS,
            "allocateLoadBalancerNodePorts": false,
            "loadBalancerSourceRanges": traffic.sources,
            "selector": {CLUSTER: cluster},
            "ports": ports,
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_leads_to_the_machines_of_its_cluster_and_of_no_other() {
        let traffic = Traffic {
            ports: vec![Port {
                name: "https".into(),
                protocol: "TCP".into(),
                port: 443,
                node_port: 30443,
            }],
            sources: vec!["192.0.2.0/24".into()],
        };
        let made = object("shoot--dev--one", &name_of("1-2"), "default/web", &traffic);
        let made: Service = serde_json::from_value(made).unwrap();
        assert_eq!(made.metadata.name.as_deref(), Some("lb-1-2"));
        let spec = made.spec.unwrap();
        assert_eq!(spec.selector.unwrap()[CLUSTER], "shoot--dev--one");
        assert_eq!(spec.load_balancer_source_ranges.unwrap(), ["192.0.2.0/24"]);
        let port = &spec.ports.unwrap()[0];
        assert_eq!((port.port, port.node_port), (443, None));
        assert_eq!(serde_json::to_value(&port.target_port).unwrap(), json!(30443));
    }
}
