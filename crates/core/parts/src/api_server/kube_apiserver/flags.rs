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
/// Seconds for which an ending kube-apiserver serves as before: the edge and the Service leave an ending pod
/// a moment late. Shorter than the grace period of the pod, so that requests under way are answered in the
/// rest of that period.
const SHUTDOWN_DELAY_SECONDS: i64 = 1;

/// The flags, sorted by topic. With a tunnel, `workload` in `mod.rs` adds a flag. `events`: host and port of
/// etcd-events, or of the gate in front of etcd-events.
pub(super) fn flags(names: &Names, events: &str) -> Vec<String> {
    let mut flags = etcd(events);
    flags.extend(identity(names));
    flags.extend(serving(names));
    flags.extend(draining());
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
    ];
    if let Some(name) = names.public_api() {
        flags.push(format!("--external-hostname={name}"));
    }
    flags
}

/// How clients pass to a different kube-apiserver (decision 46). A live move needs these flags, and cannot
/// change flags. `--shutdown-watch-termination-grace-period` is left out: kube-apiserver would refuse
/// requests for as long as watches end.
fn draining() -> [String; 3] {
    [
        // The share of requests after which a client opens a new connection, as Kubernetes recommends.
        "--goaway-chance=0.001".into(),
        format!("--shutdown-delay-duration={SHUTDOWN_DELAY_SECONDS}s"),
        // After the delay a late request gets 429 in place of a refused connection, and client-go repeats
        // the request.
        "--shutdown-send-retry-after=true".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::GRACE_SECONDS;
    use super::*;

    #[test]
    fn clients_pass_to_a_different_kube_apiserver() {
        let names = Names {
            technical_id: "shoot--dev--one".into(),
            internal_api: Some("api.one.dev.internal.example.com".into()),
            external_api: None,
            first_service_ip: [10, 0, 0, 1].into(),
            services: "10.0.0.0/16".into(),
            pods: "10.1.0.0/16".into(),
        };
        let flags = flags(&names, "etcd-events-client:2379");
        for flag in [
            "--goaway-chance=0.001",
            "--shutdown-delay-duration=1s",
            "--shutdown-send-retry-after=true",
        ] {
            assert!(flags.iter().any(|found| found == flag), "{flag}: {flags:?}");
        }
        let mut names: Vec<_> = flags.iter().filter_map(|flag| flag.split('=').next()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a flag is given twice: {flags:?}");
    }

    /// A longer delay would be cut by SIGKILL in the middle of requests. A longer grace period would add to
    /// the time in which a moved shoot cannot be written.
    #[test]
    fn a_stop_answers_requests_under_way_within_two_seconds() {
        let delay = draining().iter().find_map(|flag| {
            let seconds = flag
                .strip_prefix("--shutdown-delay-duration=")?
                .strip_suffix('s')?;
            seconds.parse::<i64>().ok()
        });
        assert!(delay.is_some_and(|delay| delay < GRACE_SECONDS), "{delay:?}");
        assert_eq!(GRACE_SECONDS, 2);
    }
}
