//! The needs of a Service in the cloud, and the shown address. Pure.

use std::net::Ipv4Addr;

use api::meta::ErrorCode;
use cloud_local::{Port, Traffic};
use k8s_openapi::api::core::v1::{Service, ServicePort};
use kube::ResourceExt;
use runtime::{Error, Result};
use serde_json::{Value, json};

/// The finalizer of Kubernetes' own controller, so that either controller can clean up after the other.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The action for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No action: the Service has no load balancer of this controller.
    Ignore,
    /// Ensure a load balancer.
    Ensure,
    /// Release the load balancer.
    Release,
}

/// Reads a Service. A Service with a `loadBalancerClass` belongs to a different controller, unless the
/// Service has this controller's finalizer.
#[must_use]
pub fn need(service: &Service) -> Need {
    let finalized = service.finalizers().iter().any(|f| f == FINALIZER);
    let wanted = service.metadata.deletion_timestamp.is_none() && wants_load_balancer(service);
    match (wanted, finalized) {
        (true, _) => Need::Ensure,
        (false, true) => Need::Release,
        (false, false) => Need::Ignore,
    }
}

fn wants_load_balancer(service: &Service) -> bool {
    service.spec.as_ref().is_some_and(|spec| {
        spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
    })
}

/// The address requested by the user, if any.
#[must_use]
pub fn wanted_address(service: &Service) -> Option<&str> {
    let wanted = service.spec.as_ref()?.load_balancer_ip.as_deref()?;
    (!wanted.is_empty()).then_some(wanted)
}

/// The traffic of the Service's load balancer. A Service that this cloud would carry only in part is refused.
pub fn traffic(service: &Service) -> Result<Traffic> {
    let Some(spec) = &service.spec else {
        return Ok(Traffic::default());
    };
    if spec.external_traffic_policy.as_deref() == Some("Local") {
        return Err(problem(
            "spec.externalTrafficPolicy Local is not to be had in the local cloud, which sends packets to every machine: \
             set it to Cluster",
        ));
    }
    let ports = spec.ports.iter().flatten().map(port).collect::<Result<_>>()?;
    Ok(Traffic {
        ports,
        sources: spec.load_balancer_source_ranges.clone().unwrap_or_default(),
    })
}

fn port(port: &ServicePort) -> Result<Port> {
    let node_port = port.node_port.filter(|number| *number > 0).ok_or_else(|| {
        problem(&format!(
            "port {} has no node port, by which the local cloud reaches machines: set \
             spec.allocateLoadBalancerNodePorts to true",
            port.port
        ))
    })?;
    Ok(Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        port: port.port,
        node_port,
    })
}

fn problem(what: &str) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, what)
}

/// The addresses in the status of a Service.
#[must_use]
pub fn shown(service: &Service) -> Vec<&str> {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    ingress
        .iter()
        .flat_map(|point| [point.ip.as_deref(), point.hostname.as_deref()])
        .flatten()
        .collect()
}

/// The status with exactly this address; `None` if the status is correct already.
#[must_use]
pub fn status(service: &Service, address: Option<Ipv4Addr>) -> Option<Value> {
    let wanted: Vec<_> = address.iter().map(ToString::to_string).collect();
    if shown(service) == wanted {
        return None;
    }
    let ingress: Vec<_> = wanted.iter().map(|ip| json!({"ip": ip})).collect();
    Some(json!({"loadBalancer": {"ingress": ingress}}))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)] // JSON is written where it is used
mod tests {
    use rstest::rstest;

    use super::*;

    fn service(spec: Value, finalizers: &[&str], deleted: bool, shown: &[&str]) -> Service {
        let mut body = json!({
            "metadata": {"name": "s", "finalizers": finalizers},
            "spec": spec,
            "status": {"loadBalancer": {"ingress": shown.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"})).collect::<Vec<_>>()}},
        });
        if deleted {
            body["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(body).unwrap()
    }

    #[rstest]
    #[case::new(json!({"type": "LoadBalancer"}), &[], false, Need::Ensure)]
    #[case::there(json!({"type": "LoadBalancer"}), &[FINALIZER], false, Need::Ensure)]
    #[case::deleted(json!({"type": "LoadBalancer"}), &[FINALIZER, "other"], true, Need::Release)]
    #[case::deleted_and_released(json!({"type": "LoadBalancer"}), &["other"], true, Need::Ignore)]
    #[case::type_changed(json!({"type": "ClusterIP"}), &[FINALIZER], false, Need::Release)]
    #[case::other_type(json!({"type": "NodePort"}), &["other"], false, Need::Ignore)]
    #[case::of_another_class(json!({"type": "LoadBalancer", "loadBalancerClass": "a/b"}), &[], false, Need::Ignore)]
    fn what_is_done(
        #[case] spec: Value,
        #[case] finalizers: &[&str],
        #[case] deleted: bool,
        #[case] expected: Need,
    ) {
        assert_eq!(need(&service(spec, finalizers, deleted, &[])), expected);
    }

    #[rstest]
    #[case::nothing_yet(&[], Some("10.0.0.1"), true)]
    #[case::shown(&["10.0.0.1"], Some("10.0.0.1"), false)]
    #[case::another(&["10.0.0.2"], Some("10.0.0.1"), true)]
    #[case::one_too_many(&["10.0.0.1", "10.0.0.2"], Some("10.0.0.1"), true)]
    #[case::to_be_taken_away(&["10.0.0.1"], None, true)]
    #[case::taken_away(&[], None, false)]
    fn the_status_is_written_when_it_differs(
        #[case] shown: &[&str],
        #[case] address: Option<&str>,
        #[case] written: bool,
    ) {
        let address = address.map(|text| text.parse().unwrap());
        let body = status(&service(json!({}), &[], false, shown), address);
        assert_eq!(body.is_some(), written);
        if let Some(body) = body {
            let expected: Vec<_> = address
                .iter()
                .map(|ip: &Ipv4Addr| json!({"ip": ip.to_string()}))
                .collect();
            assert_eq!(body["loadBalancer"]["ingress"], json!(expected));
        }
    }

    #[rstest]
    #[case::carried(json!({"ports": [{"port": 80, "nodePort": 30080}]}), None)]
    #[case::without_a_node_port(json!({"ports": [{"port": 80}]}), Some("allocateLoadBalancerNodePorts"))]
    #[case::to_local_pods_only(json!({"externalTrafficPolicy": "Local", "ports": []}), Some("externalTrafficPolicy"))]
    fn what_cannot_be_carried_is_told(#[case] spec: Value, #[case] told: Option<&str>) {
        let carried = traffic(&service(spec, &[], false, &[]));
        match told {
            None => assert_eq!(carried.unwrap().ports[0].protocol, "TCP"),
            Some(words) => assert!(carried.unwrap_err().to_string().contains(words)),
        }
    }

    #[test]
    fn an_empty_wish_is_no_wish() {
        assert_eq!(
            wanted_address(&service(json!({"loadBalancerIP": ""}), &[], false, &[])),
            None
        );
        let asks = service(json!({"loadBalancerIP": "10.0.0.9"}), &[], false, &[]);
        assert_eq!(wanted_address(&asks), Some("10.0.0.9"));
    }
}
