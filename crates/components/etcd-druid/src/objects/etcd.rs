//! The container with etcd: the upstream binary, configured only by flags, because its image holds no shell.

use k8s_openapi::{
    api::core::v1::{Container, ContainerPort, HTTPGetAction, Probe, ResourceRequirements},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{requests, security, volumes};
use crate::{
    names::{CA_MOUNT, DATA_DIR, ETCD_CONTAINER, PROBE_PORT, SERVER_MOUNT, client_service},
    wanted::ValidatedEtcd,
};

/// etcd in its image.
const BINARY: &str = "/usr/local/bin/etcd";
/// Seconds between two readiness probes of etcd. The smallest period that Kubernetes allows: each second is
/// downtime of a shoot.
const READINESS_PERIOD: i32 = 1;
/// Failed probes before clients are sent away. A linearizable read waits for the disk; a single slow read is
/// no reason.
const READINESS_FAILURES: i32 = 3;

/// Time between two progress notifications of an idle watch, as kubeadm sets. A watch resumes at the revision
/// of the last notification. kube-apiserver compacts revisions that are 5 to 10 minutes old. With etcd's
/// default of 10 minutes an idle watch would resume at a revision that is gone.
const PROGRESS_INTERVAL: &str = "5s";

/// The container.
#[must_use]
pub fn container(wanted: &ValidatedEtcd) -> Container {
    Container {
        name: ETCD_CONTAINER.to_owned(),
        image: Some(wanted.etcd.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec![BINARY.to_owned()]),
        args: Some(args(wanted)),
        ports: Some(ports(wanted)),
        readiness_probe: Some(readiness()),
        resources: Some(wanted.etcd.resources.clone().unwrap_or_else(default_resources)),
        security_context: Some(security::container()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(volumes::mounts_of_etcd(wanted)),
        ..Container::default()
    }
}

/// etcd's default requests.
#[must_use]
pub fn default_resources() -> ResourceRequirements {
    requests("50m", "128Mi")
}

/// The flags. There is a single member, so peers meet on loopback and need no certificates.
fn args(wanted: &ValidatedEtcd) -> Vec<String> {
    let ValidatedEtcd {
        name,
        namespace,
        uid,
        etcd,
        ..
    } = wanted;
    let member = wanted.member_name();
    let peer = wanted.peer_url();
    let mut args = vec![
        format!("--name={member}"),
        format!("--data-dir={DATA_DIR}"),
        format!(
            "--listen-client-urls=https://{}:{}",
            listens_on(wanted),
            wanted.etcd_port()
        ),
        format!(
            "--advertise-client-urls=https://{}.{namespace}.svc:{}",
            client_service(name),
            etcd.client_port
        ),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={member}={peer}"),
        "--initial-cluster-state=new".to_owned(),
        format!("--initial-cluster-token={uid}"),
        format!("--listen-metrics-urls=http://0.0.0.0:{PROBE_PORT}"),
        "--client-cert-auth=true".to_owned(),
        format!("--trusted-ca-file={CA_MOUNT}/{}", etcd.tls.ca_key),
        format!("--cert-file={SERVER_MOUNT}/tls.crt"),
        format!("--key-file={SERVER_MOUNT}/tls.key"),
        format!("--quota-backend-bytes={}", etcd.quota_bytes),
        format!("--metrics={}", etcd.metrics),
        format!("--enable-grpc-gateway={}", etcd.grpc_gateway),
        format!("--auto-compaction-mode={}", etcd.auto_compaction_mode),
        format!("--auto-compaction-retention={}", etcd.auto_compaction_retention),
        format!("--watch-progress-notify-interval={PROGRESS_INTERVAL}"),
    ];
    args.extend(
        etcd.snapshot_count
            .map(|count| format!("--snapshot-count={count}")),
    );
    args.extend(
        etcd.freelist_type
            .map(|freelist| format!("--backend-bbolt-freelist-type={freelist}")),
    );
    args
}

/// The listen address of etcd. Clients of an etcd with an owner check have only the path through the gate
/// (R17-40).
fn listens_on(wanted: &ValidatedEtcd) -> &'static str {
    if wanted.gate().is_some() {
        "127.0.0.1"
    } else {
        "0.0.0.0"
    }
}

fn ports(wanted: &ValidatedEtcd) -> Vec<ContainerPort> {
    let mut ports = Vec::new();
    if wanted.gate().is_none() {
        ports.push(port("client", wanted.etcd.client_port));
    }
    ports.push(port("probes", PROBE_PORT));
    ports
}

/// No liveness probe: a restart helps neither a slow disk nor a full one, and costs the shoot its API.
fn readiness() -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/readyz".to_owned()),
            port: IntOrString::Int(PROBE_PORT),
            scheme: Some("HTTP".to_owned()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(0),
        period_seconds: Some(READINESS_PERIOD),
        timeout_seconds: Some(2),
        failure_threshold: Some(READINESS_FAILURES),
        success_threshold: Some(1),
        ..Probe::default()
    }
}

/// A port that a container serves.
pub(super) fn port(name: &str, port: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: port,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}
