//! The two Services of an Etcd: a Service for clients, without unready pods, and a headless Service, which
//! includes unready pods.
//!
//! The headless Service exists because a pod is not ready by design once its final snapshot is taken
//! (R17-40). At that time its backup-restore is asked for the latest snapshot (R17-52, R17-53).

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::meta;
use crate::{
    names::{self, MEMBER_COMPONENT},
    wanted::ValidatedEtcd,
};

/// `<name>-client`: etcd for clients and, where there are backups, backup-restore and a gate to the etcd with
/// the Events.
#[must_use]
pub fn client_service(wanted: &ValidatedEtcd) -> Service {
    let mut ports = vec![port("client", wanted.etcd.client_port)];
    ports.extend(
        wanted
            .backup
            .as_ref()
            .map(|backup| port("backuprestore", backup.port)),
    );
    ports.extend(wanted.events_gate().map(|gate| ServicePort {
        target_port: Some(IntOrString::Int(gate.pod_port)),
        ..port("events", gate.service_port)
    }));
    let mut metadata = meta(wanted, &names::client_service(&wanted.name), MEMBER_COMPONENT);
    if let Some(labels) = &mut metadata.labels {
        labels.extend(wanted.client_service_labels.clone());
    }
    metadata.annotations = Some(wanted.client_service_annotations.clone()).filter(|a| !a.is_empty());
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            traffic_distribution: wanted.traffic_distribution.map(str::to_owned),
            ports: Some(ports),
            ..spec(wanted)
        }),
        status: None,
    }
}

/// `<name>-peer`: every pod, ready or not.
#[must_use]
pub fn peer_service(wanted: &ValidatedEtcd) -> Service {
    let mut ports = vec![port("peer", wanted.etcd.peer_port)];
    ports.extend(
        wanted
            .backup
            .as_ref()
            .map(|backup| port("backuprestore", backup.port)),
    );
    Service {
        metadata: meta(wanted, &names::peer_service(&wanted.name), MEMBER_COMPONENT),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            ports: Some(ports),
            ..spec(wanted)
        }),
        status: None,
    }
}

fn spec(wanted: &ValidatedEtcd) -> ServiceSpec {
    ServiceSpec {
        selector: Some(names::labels(&wanted.name, MEMBER_COMPONENT)),
        ..ServiceSpec::default()
    }
}

fn port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(port)),
        ..ServicePort::default()
    }
}
