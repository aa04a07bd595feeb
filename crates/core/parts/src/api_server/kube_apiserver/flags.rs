//! The flags of kube-apiserver. Only the address of etcd-events depends on the seed: tokens and certificates
//! stay valid when the shoot moves.

use placement::Names;
use runtime::workload::mounted;

use crate::secrets::config::{
    CA_CLIENT, CA_ETCD, CA_FRONT_PROXY, ETCD_CLIENT, ETCD_ENCRYPTION, KUBE_AGGREGATOR, KUBE_APISERVER,
    KUBELET_CLIENT, SERVICE_ACCOUNT_KEY, STATIC_TOKEN,
};

/// Port in the pod; the Service's port is 443.
pub(super) const PORT: u16 = 6443;
/// ConfigMap that allows requests without credentials only for probes.
pub(super) const AUTHENTICATION: &str = "kube-apiserver-authentication";

/// All flags, sorted by topic. `events`: host and port of etcd-events, or of the gate in front of
/// etcd-events.
pub(super) fn flags(names: &Names, events: &str) -> Vec<String> {
    let mut flags = etcd(events);
    flags.extend(identity(names));
    flags.extend(serving(names));
    flags
}

fn etcd(events: &str) -> Vec<String> {
    vec![
        "--etcd-servers=https://etcd-main-client:2379".into(),
        format!("--etcd-servers-overrides=/events#https://{events}"),
        format!("--etcd-cafile={}", mounted(CA_ETCD, "ca.crt")),
        format!("--etcd-certfile={}", mounted(ETCD_CLIENT, "tls.crt")),
        format!("--etcd-keyfile={}", mounted(ETCD_CLIENT, "tls.key")),
        format!(
            "--encryption-provider-config={}",
            mounted(ETCD_ENCRYPTION, "encryption-configuration.yaml")
        ),
    ]
}

/// Authentication and authorization flags.
fn identity(names: &Names) -> Vec<String> {
    let issuer = names
        .internal_api
        .as_deref()
        .or(names.external_api.as_deref())
        .unwrap_or("kubernetes.default.svc");
    vec![
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--enable-bootstrap-token-auth=true".into(),
        format!(
            "--authentication-config={}",
            mounted(AUTHENTICATION, "config.yaml")
        ),
        format!("--token-auth-file={}", mounted(STATIC_TOKEN, "static_tokens.csv")),
        format!("--client-ca-file={}", mounted(CA_CLIENT, "ca.crt")),
        format!(
            "--requestheader-client-ca-file={}",
            mounted(CA_FRONT_PROXY, "ca.crt")
        ),
        "--requestheader-allowed-names=system:kube-aggregator".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        format!("--proxy-client-cert-file={}", mounted(KUBE_AGGREGATOR, "tls.crt")),
        format!("--proxy-client-key-file={}", mounted(KUBE_AGGREGATOR, "tls.key")),
        format!("--service-account-issuer=https://{issuer}"),
        format!(
            "--service-account-key-file={}",
            mounted(SERVICE_ACCOUNT_KEY, "id_rsa")
        ),
        format!(
            "--service-account-signing-key-file={}",
            mounted(SERVICE_ACCOUNT_KEY, "id_rsa")
        ),
        format!(
            "--kubelet-client-certificate={}",
            mounted(KUBELET_CLIENT, "tls.crt")
        ),
        format!("--kubelet-client-key={}", mounted(KUBELET_CLIENT, "tls.key")),
    ]
}

fn serving(names: &Names) -> Vec<String> {
    let mut flags = vec![
        format!("--secure-port={PORT}"),
        format!("--tls-cert-file={}", mounted(KUBE_APISERVER, "tls.crt")),
        format!("--tls-private-key-file={}", mounted(KUBE_APISERVER, "tls.key")),
        format!("--service-cluster-ip-range={}", names.services),
        "--allow-privileged=true".into(),
        "--enable-aggregator-routing=true".into(),
        "--kubelet-preferred-address-types=InternalIP,Hostname,ExternalIP".into(),
        // The pod's address in the seed is unreachable in the shoot.
        "--endpoint-reconciler-type=none".into(),
        "--profiling=false".into(),
        // No delay is needed: the Service has a single endpoint, and a move needs a fast stop.
        "--shutdown-delay-duration=0s".into(),
    ];
    if let Some(name) = names.public_api() {
        flags.push(format!("--external-hostname={name}"));
    }
    flags
}
