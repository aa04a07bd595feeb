//! The table of all Secrets of a control plane: the recipe of each Secret, and whether the Secret moves with
//! the shoot (R7-10, R7-11).
//!
//! The order is the order of issue: a certificate authority comes before the certificates that the authority
//! signs. Names are fixed, so that parts of the control plane and further processes can refer to the Secrets.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use api::constants;
use placement::Names;

/// Value of the label for the manager of the Secrets.
pub(super) const IDENTITY: &str = "gardenlet";
/// Signs the serving certificate of kube-apiserver. Every client of the shoot trusts this CA.
pub const CA: &str = "ca";
/// Signs client certificates for kube-apiserver.
pub const CA_CLIENT: &str = "ca-client";
/// Signs all certificates of etcd, of etcd-backup-restore and of the clients of both.
pub const CA_ETCD: &str = "ca-etcd";
/// Signs the client certificate of kube-apiserver for extension API servers, which accept forwarded user
/// requests.
pub const CA_FRONT_PROXY: &str = "ca-front-proxy";
/// Signs both sides of the connection between kube-apiserver and kubelets.
pub const CA_KUBELET: &str = "ca-kubelet";
/// Signs both sides of the tunnel to the shoot's nodes, and no further certificate: no other key of the shoot
/// authenticates at the tunnel.
pub const CA_VPN: &str = "ca-vpn";
/// Signs the serving certificate of metrics-server.
pub const CA_METRICS_SERVER: &str = "ca-metrics-server";
/// Token of the health check.
pub const STATIC_TOKEN: &str = "static-token";
/// Configuration of the encryption of Secrets in etcd.
pub const ETCD_ENCRYPTION: &str = "etcd-encryption-secret";
/// Client certificate of kube-apiserver's aggregation layer.
pub const KUBE_AGGREGATOR: &str = "kube-aggregator";
/// Serving certificate of kube-apiserver.
pub const KUBE_APISERVER: &str = "kube-apiserver";
/// Key that signs service account tokens.
pub const SERVICE_ACCOUNT_KEY: &str = "service-account-key";
/// SSH key for the login of an administrator on machines.
pub const SSH_KEY_PAIR: &str = "ssh-keypair";
/// Certificate of the tunnel agents in the shoot. The shoot stores this certificate, so the certificate stays
/// the same when the shoot moves.
pub const TUNNEL_AGENT: &str = "tunnel-agent";
/// Serving certificate of the tunnel.
pub const TUNNEL_SERVER: &str = "tunnel-server";
/// Client certificate of kube-apiserver at the tunnel.
pub const TUNNEL_CLIENT: &str = "kube-apiserver-tunnel";
/// Common name in the certificate of the tunnel agents.
pub(crate) const TUNNEL_AGENT_NAME: &str = "gardener.cloud:tunnel-agent";
/// Common name in the client certificate of kube-apiserver for the tunnel.
pub(crate) const TUNNEL_CLIENT_NAME: &str = "system:kube-apiserver:tunnel";
/// Service of the tunnel; the serving certificate has the names of this Service.
pub(crate) const TUNNEL_SERVICE: &str = "tunnel";
/// Serving certificate of etcd and of etcd-backup-restore.
pub const ETCD_SERVER: &str = "etcd-server";
/// Client certificate for etcd and for etcd-backup-restore.
pub const ETCD_CLIENT: &str = "etcd-client";
/// Client certificate of kube-apiserver at kubelets.
pub const KUBELET_CLIENT: &str = "kube-apiserver-kubelet";
/// Kubeconfig of kube-controller-manager.
pub const KUBE_CONTROLLER_MANAGER: &str = "kube-controller-manager";
/// Kubeconfig of the cloud-controller-manager, which the provider deploys.
pub const CLOUD_CONTROLLER_MANAGER: &str = "cloud-controller-manager";
/// Common name in the certificate of kube-controller-manager.
pub(crate) const KUBE_CONTROLLER_MANAGER_USER: &str = "system:kube-controller-manager";
/// Common name in the certificate of the cloud-controller-manager.
pub(crate) const CLOUD_CONTROLLER_MANAGER_USER: &str = "system:cloud-controller-manager";
/// Kubeconfig of the machine-controller-manager, which the provider deploys.
pub const MACHINE_CONTROLLER_MANAGER: &str = "machine-controller-manager";
/// Kubeconfig of the resource manager, which applies objects of all kinds in the shoot.
pub const RESOURCE_MANAGER: &str = "resource-manager";
/// Common name in the certificate of the machine-controller-manager.
pub(crate) const MACHINE_CONTROLLER_MANAGER_USER: &str = "system:machine-controller-manager";
/// Common name in the client certificate of kube-apiserver for kubelets.
pub(crate) const KUBELET_CLIENT_USER: &str = "system:kube-apiserver:kubelet";
/// Kubeconfig of kube-scheduler.
pub const KUBE_SCHEDULER: &str = "kube-scheduler";
/// Kubeconfig of the gardenlet itself.
pub const GARDENLET: &str = "gardenlet";

/// Credentials of the bucket, put into the shoot's namespace by the BackupEntry.
pub(crate) const BACKUP_SECRET: &str = "etcd-backup";
/// Credentials of the former seed's bucket, put into the shoot's namespace by the source BackupEntry.
pub(crate) const SOURCE_SECRET: &str = "source-etcd-backup";
/// Credentials of the provider's account, copied from the garden.
pub(crate) const CLOUD_PROVIDER_SECRET: &str = "cloudprovider";
/// The Secrets that each seed puts into the shoot's namespace and that the table below does not create.
pub(crate) const OF_SEED: &[&str] = &[BACKUP_SECRET, SOURCE_SECRET, CLOUD_PROVIDER_SECRET];

/// Created once in the shoot's life and carried from seed to seed.
pub const CARRIED: &[&str] = &[
    CA,
    CA_CLIENT,
    CA_ETCD,
    CA_FRONT_PROXY,
    CA_KUBELET,
    CA_METRICS_SERVER,
    STATIC_TOKEN,
    ETCD_ENCRYPTION,
    SERVICE_ACCOUNT_KEY,
    SSH_KEY_PAIR,
    KUBE_AGGREGATOR,
    KUBE_APISERVER,
    CA_VPN,
    TUNNEL_AGENT,
];

/// Created by each seed from the carried Secrets.
pub const DERIVED: &[&str] = &[
    ETCD_SERVER,
    ETCD_CLIENT,
    KUBELET_CLIENT,
    KUBE_CONTROLLER_MANAGER,
    CLOUD_CONTROLLER_MANAGER,
    MACHINE_CONTROLLER_MANAGER,
    RESOURCE_MANAGER,
    KUBE_SCHEDULER,
    GARDENLET,
    TUNNEL_SERVER,
    TUNNEL_CLIENT,
];

/// Content of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A key and a CA certificate: `ca.crt`, `ca.key`.
    CertificateAuthority,
    /// A key and a certificate: `tls.crt`, `tls.key`, and the authority's `ca.crt`.
    Certificate {
        /// Name of the authority that signs the certificate.
        ca: &'static str,
        /// Common name of the subject.
        common_name: String,
        /// Organization of the subject, which Kubernetes reads as a group.
        organization: Option<&'static str>,
        /// Subject alternative names; empty: a client certificate only.
        serves: Vec<String>,
        /// URL of the server in a `kubeconfig`, which trusts [`CA`].
        kubeconfig: Option<String>,
    },
    /// `static_tokens.csv` for kube-apiserver.
    StaticToken,
    /// `encryption-configuration.yaml` for kube-apiserver.
    EncryptionConfiguration,
    /// A private key in PEM: `id_rsa`.
    SigningKey,
    /// An OpenSSH key pair: `id_rsa`, `id_rsa.pub`.
    SshKeyPair,
}

impl Recipe {
    /// Data keys of the Secret. No other process has a reason to write a further key.
    pub(super) fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::CertificateAuthority => &["ca.crt", "ca.key"],
            Self::Certificate { kubeconfig: None, .. } => CERTIFICATE_KEYS,
            Self::Certificate { .. } => &["ca.crt", "kubeconfig", "tls.crt", "tls.key"],
            Self::StaticToken => &["static_tokens.csv"],
            Self::EncryptionConfiguration => &["encryption-configuration.yaml"],
            Self::SigningKey => &["id_rsa"],
            Self::SshKeyPair => &["id_rsa", "id_rsa.pub"],
        }
    }
}

/// The labels that each carried Secret of the gardenlet has.
pub(crate) fn carried_labels(name: &str) -> BTreeMap<String, String> {
    [
        (constants::SECRET_NAME, name),
        (constants::MANAGED_BY, constants::SECRETS_MANAGER),
        (constants::MANAGER_IDENTITY, IDENTITY),
        (constants::PERSIST, "true"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// Data keys of a certificate without a kubeconfig.
const CERTIFICATE_KEYS: &[&str] = &["ca.crt", "tls.crt", "tls.key"];

/// Data keys of a carried Secret, or `None` for a different name. The same keys as in the table, without the
/// names of a shoot.
pub(crate) fn carried_keys(name: &str) -> Option<&'static [&'static str]> {
    match name {
        CA | CA_CLIENT | CA_ETCD | CA_FRONT_PROXY | CA_KUBELET | CA_METRICS_SERVER | CA_VPN => {
            Some(Recipe::CertificateAuthority.keys())
        }
        KUBE_AGGREGATOR | KUBE_APISERVER | TUNNEL_AGENT => Some(CERTIFICATE_KEYS),
        STATIC_TOKEN => Some(Recipe::StaticToken.keys()),
        ETCD_ENCRYPTION => Some(Recipe::EncryptionConfiguration.keys()),
        SERVICE_ACCOUNT_KEY => Some(Recipe::SigningKey.keys()),
        SSH_KEY_PAIR => Some(Recipe::SshKeyPair.keys()),
        _ => None,
    }
}

/// The part of a Secret that the destination of a preparation gets, for a second API server of the shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedShare {
    /// The destination gets no part of the Secret.
    Nothing,
    /// The certificate of an authority, without the key.
    Authority,
    /// The content, which all API servers of a shoot have in common.
    Content,
    /// A new key with a certificate of the same recipe, which ends with the grant.
    OwnCertificate,
}

/// The share of a preparation in the Secret of this name. The key of an authority is in no share: such a key
/// goes to the destination with the ShootState, after the hand-over.
pub(crate) fn prepared_share(name: &str) -> PreparedShare {
    match name {
        CA_CLIENT | CA_ETCD | CA_FRONT_PROXY | CA_VPN => PreparedShare::Authority,
        ETCD_ENCRYPTION | SERVICE_ACCOUNT_KEY | STATIC_TOKEN => PreparedShare::Content,
        ETCD_CLIENT | KUBE_AGGREGATOR | KUBE_APISERVER | KUBELET_CLIENT | TUNNEL_CLIENT => {
            PreparedShare::OwnCertificate
        }
        _ => PreparedShare::Nothing,
    }
}

/// Data keys of the share in the Secret of this name. Policy `gardenlet-internalsecret` repeats the keys.
pub(crate) fn prepared_keys(name: &str) -> &'static [&'static str] {
    match prepared_share(name) {
        PreparedShare::Nothing => &[],
        PreparedShare::Authority => &["ca.crt"],
        PreparedShare::Content => carried_keys(name).unwrap_or_default(),
        PreparedShare::OwnCertificate => CERTIFICATE_KEYS,
    }
}

/// Names of the Secrets in which a preparation has a share.
pub(crate) fn prepared_names() -> impl Iterator<Item = &'static str> {
    let all = CARRIED.iter().chain(DERIVED).copied();
    all.filter(|name| prepared_share(name) != PreparedShare::Nothing)
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the Secret.
    pub name: &'static str,
    /// Content of the Secret.
    pub recipe: Recipe,
    /// Created once in the shoot's life and carried from seed to seed; otherwise each seed derives the Secret
    /// from the carried Secrets.
    pub carried: bool,
    /// Carried, but created again when neither the seed nor the ShootState has the Secret. The clients
    /// receive the new Secret through the shoot's API, so no client is cut off.
    pub replaceable: bool,
    /// The part for the destination of a preparation, while the source serves.
    pub prepared: PreparedShare,
}

/// The table for a shoot.
#[must_use]
pub fn table(names: &Names) -> Vec<Config> {
    let carried = |name, recipe| Config {
        name,
        recipe,
        carried: true,
        replaceable: false,
        prepared: prepared_share(name),
    };
    let ca = |name| carried(name, Recipe::CertificateAuthority);
    let derived = |name, recipe| Config {
        name,
        recipe,
        carried: false,
        replaceable: false,
        prepared: prepared_share(name),
    };
    // A shoot that is older than the tunnel has none of these Secrets.
    let replaceable = |config| Config {
        replaceable: true,
        ..config
    };
    vec![
        ca(CA),
        ca(CA_CLIENT),
        ca(CA_ETCD),
        ca(CA_FRONT_PROXY),
        ca(CA_KUBELET),
        ca(CA_METRICS_SERVER),
        carried(STATIC_TOKEN, Recipe::StaticToken),
        carried(ETCD_ENCRYPTION, Recipe::EncryptionConfiguration),
        carried(SERVICE_ACCOUNT_KEY, Recipe::SigningKey),
        carried(SSH_KEY_PAIR, Recipe::SshKeyPair),
        carried(
            KUBE_AGGREGATOR,
            client(CA_FRONT_PROXY, "system:kube-aggregator", None),
        ),
        carried(
            KUBE_APISERVER,
            server(CA, "system:apiserver:apiserver", kube_apiserver_names(names)),
        ),
        derived(
            ETCD_SERVER,
            server(CA_ETCD, "etcd-server", etcd_names(&names.technical_id)),
        ),
        derived(ETCD_CLIENT, client(CA_ETCD, "etcd-client", None)),
        derived(KUBELET_CLIENT, client(CA_KUBELET, KUBELET_CLIENT_USER, None)),
        derived(KUBE_CONTROLLER_MANAGER, login(KUBE_CONTROLLER_MANAGER_USER, None)),
        derived(
            CLOUD_CONTROLLER_MANAGER,
            login(CLOUD_CONTROLLER_MANAGER_USER, None),
        ),
        derived(
            MACHINE_CONTROLLER_MANAGER,
            login(MACHINE_CONTROLLER_MANAGER_USER, None),
        ),
        derived(
            RESOURCE_MANAGER,
            login_from_elsewhere(
                "gardener.cloud:system:resource-manager",
                Some("system:masters"),
                &names.technical_id,
            ),
        ),
        derived(KUBE_SCHEDULER, login("system:kube-scheduler", None)),
        derived(
            GARDENLET,
            login("gardener.cloud:system:gardenlet", Some("system:masters")),
        ),
        replaceable(ca(CA_VPN)),
        replaceable(carried(TUNNEL_AGENT, client(CA_VPN, TUNNEL_AGENT_NAME, None))),
        derived(
            TUNNEL_SERVER,
            server(
                CA_VPN,
                "tunnel-server",
                service_names(TUNNEL_SERVICE, &names.technical_id).into(),
            ),
        ),
        derived(TUNNEL_CLIENT, client(CA_VPN, TUNNEL_CLIENT_NAME, None)),
    ]
}

fn client(ca: &'static str, common_name: &str, organization: Option<&'static str>) -> Recipe {
    Recipe::Certificate {
        ca,
        common_name: common_name.into(),
        organization,
        serves: Vec::new(),
        kubeconfig: None,
    }
}

fn server(ca: &'static str, common_name: &str, serves: Vec<String>) -> Recipe {
    Recipe::Certificate {
        ca,
        common_name: common_name.into(),
        organization: None,
        serves,
        kubeconfig: None,
    }
}

/// A client certificate with a kubeconfig for the API inside the shoot's namespace.
fn login(common_name: &str, organization: Option<&'static str>) -> Recipe {
    Recipe::Certificate {
        ca: CA_CLIENT,
        common_name: common_name.into(),
        organization,
        serves: Vec::new(),
        kubeconfig: Some(format!("https://{KUBE_APISERVER}")),
    }
}

/// The same for a process in a different namespace of the seed.
fn login_from_elsewhere(common_name: &str, organization: Option<&'static str>, namespace: &str) -> Recipe {
    Recipe::Certificate {
        ca: CA_CLIENT,
        common_name: common_name.into(),
        organization,
        serves: Vec::new(),
        kubeconfig: Some(format!("https://{KUBE_APISERVER}.{namespace}.svc")),
    }
}

/// All names of kube-apiserver. No name depends on the seed, because the certificate is carried.
fn kube_apiserver_names(names: &Names) -> Vec<String> {
    let mut all = local();
    all.extend(service_names("kubernetes", "default"));
    all.extend(service_names(KUBE_APISERVER, &names.technical_id));
    all.extend(names.apis().map(str::to_owned));
    all.push(names.first_service_ip.to_string());
    all
}

fn etcd_names(namespace: &str) -> Vec<String> {
    let mut all = local();
    for etcd in ["etcd-main", "etcd-events"] {
        all.push(format!("{etcd}-local"));
        all.extend(service_names(&format!("{etcd}-client"), namespace));
        let peer = format!("{etcd}-peer");
        all.extend(service_names(&peer, namespace));
        all.extend(
            service_names(&peer, namespace)
                .iter()
                .map(|name| format!("*.{name}")),
        );
    }
    all
}

fn local() -> Vec<String> {
    vec!["localhost".into(), IpAddr::V4(Ipv4Addr::LOCALHOST).to_string()]
}

/// The names of a Service, from short to long.
fn service_names(service: &str, namespace: &str) -> [String; 4] {
    [
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
    ]
}
