//! What an operator sets once for a gardenlet: images, where the seed is entered, and how long is waited for
//! what.

use std::{fmt, sync::Arc, time::Duration};

use ownership::Terms;

/// Of CoreDNS: what kubeadm 1.34 installs.
pub const COREDNS_TAG: &str = "v1.12.1";

/// How the steps of a flow are done on this seed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In front of every image name, with a slash in between; empty: images are named without a registry.
    pub image_registry: String,
    /// Image of kube-apiserver without tag; the tag is `v` and the Shoot's version.
    pub kube_apiserver_image: String,
    /// Image of kube-controller-manager without tag.
    pub kube_controller_manager_image: String,
    /// Image of kube-scheduler without tag.
    pub kube_scheduler_image: String,
    /// Image of kube-proxy without tag; the tag is `v` and the Shoot's version.
    pub kube_proxy_image: String,
    /// Image of CoreDNS without tag.
    pub coredns_image: String,
    /// Its tag.
    pub coredns_tag: String,
    /// Whether API servers reach nodes through a tunnel. Not where the seed has roads to all of them.
    pub tunnel: bool,
    /// Image of the tunnel's server and agents without tag.
    pub tunnel_image: String,
    /// Its tag.
    pub tunnel_tag: String,
    /// Namespace of the seed's front: its Service and the names of the SNI scheme.
    pub exposure_namespace: String,
    /// The front's Service, whose load balancer is the seed's address for all shoots.
    pub ingress_service: String,
    /// Identity of the garden: last part of a shoot's cluster identity.
    pub garden_identity: String,
    /// For how many seconds resolvers may keep a record of a shoot. Longer than what a DNS server bears per
    /// shoot, shorter than the time for which a moved shoot may look dead to clients that resolved it just
    /// before.
    pub dns_ttl: i64,
    /// Storage of each etcd.
    pub etcd_storage: String,
    /// Where a shoot's API answers inside the seed, by namespace.
    pub shoot_api_url: UrlOf,
    /// Where etcd-backup-restore of etcd-main answers inside the seed, by namespace. By default at the
    /// Service that leads to a pod that is not ready, too: it is not once its final snapshot was taken.
    pub etcd_backup_url: UrlOf,
    /// Intervals and bounds of owner checks, where the Seed gives none. No destination waits for less than
    /// this fence.
    pub owner_check: Terms,
    /// How long is waited for what.
    pub timeouts: Timeouts,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image_registry: String::new(),
            kube_apiserver_image: "kube-apiserver".into(),
            kube_controller_manager_image: "kube-controller-manager".into(),
            kube_scheduler_image: "kube-scheduler".into(),
            kube_proxy_image: "kube-proxy".into(),
            coredns_image: "coredns".into(),
            coredns_tag: COREDNS_TAG.into(),
            tunnel: false,
            tunnel_image: "repot/tunnel".into(),
            tunnel_tag: "dev".into(),
            exposure_namespace: "garden-exposure".into(),
            ingress_service: "ingress".into(),
            garden_identity: "garden".into(),
            dns_ttl: 120,
            etcd_storage: "10Gi".into(),
            shoot_api_url: UrlOf::template("https://kube-apiserver.{namespace}.svc"),
            etcd_backup_url: UrlOf::template("https://etcd-main-peer.{namespace}.svc:8080"),
            owner_check: Terms::default(),
            timeouts: Timeouts::default(),
        }
    }
}

impl Settings {
    /// The full name of a control plane image for a Kubernetes version (`1.34.4`).
    pub(crate) fn image(&self, name: &str, version: &str) -> String {
        self.image_of(name, &format!("v{version}"))
    }

    /// The full name of an image with this tag.
    pub(crate) fn image_of(&self, name: &str, tag: &str) -> String {
        match self.image_registry.trim_end_matches('/') {
            "" => format!("{name}:{tag}"),
            registry => format!("{registry}/{name}:{tag}"),
        }
    }
}

/// A URL that depends on the shoot's namespace.
#[derive(Clone)]
pub struct UrlOf(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl UrlOf {
    /// Puts the namespace where the template says `{namespace}`.
    #[must_use]
    pub fn template(template: impl Into<String>) -> Self {
        let template = template.into();
        Self::new(move |namespace| template.replace("{namespace}", namespace))
    }

    /// Asks a function: for tests, where each shoot listens on a port of its own.
    pub fn new(url: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(url))
    }

    /// The URL for a namespace.
    #[must_use]
    pub fn of(&self, namespace: &str) -> String {
        (self.0)(namespace)
    }
}

impl fmt::Debug for UrlOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of("{namespace}"))
    }
}

/// How long one object is awaited.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// An error that the object shows for this long is the step's error. Longer than a provider's own
    /// retries.
    pub severe: Duration,
    /// The step ends. Longer than `severe`, shorter than the flow's patience.
    pub timeout: Duration,
}

impl Wait {
    const fn seconds(severe: u64, timeout: u64) -> Self {
        Self {
            severe: Duration::from_secs(severe),
            timeout: Duration::from_secs(timeout),
        }
    }
}

/// How long is waited for what. Each is longer than the awaited part's own slowest healthy start.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Infrastructure, and its deletion.
    pub infrastructure: Wait,
    /// Worker.
    pub worker: Wait,
    /// Machines of a shoot with a forced deletion: the time that the machine manager gets to delete the
    /// instances. Machines that are left after this time are named, and no longer awaited.
    pub forced_machines: Duration,
    /// SubnetIsolation. Longer than its provider waits for the machines of a zone to go, so that the zone is
    /// closed in one try.
    pub subnet_isolation: Wait,
    /// ControlPlane and any other extension kind.
    pub extension: Wait,
    /// DNSRecord.
    pub dns_record: Wait,
    /// The garden's BackupEntry.
    pub backup_entry: Wait,
    /// Etcd: start with restoration from a backup, and deletion.
    pub etcd: Wait,
    /// Copy of backups between buckets. Longer than the copy Job's own wait for a final snapshot, so that the
    /// Job is never given up when it would just start to copy.
    pub etcd_copy: Wait,
    /// One full snapshot on request. Longer than the upload of the largest database.
    pub snapshot: Duration,
    /// kube-apiserver, and its deletion.
    pub kube_apiserver: Duration,
    /// kube-controller-manager and kube-scheduler.
    pub controllers: Duration,
    /// The address of the seed's front.
    pub kube_apiserver_service: Duration,
    /// The first answer of the shoot's API.
    pub shoot_client: Duration,
    /// ManagedResources and their deletion.
    pub managed_resources: Duration,
    /// Objects in the shoot, when it is deleted.
    pub cleanup: Duration,
    /// The shoot's namespace. Longer than the namespace controller's pause between two tries.
    pub namespace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            infrastructure: Wait::seconds(180, 600),
            worker: Wait::seconds(30, 600),
            forced_machines: Duration::from_secs(5 * 60),
            subnet_isolation: Wait::seconds(30, 900),
            extension: Wait::seconds(30, 180),
            dns_record: Wait::seconds(15, 120),
            backup_entry: Wait::seconds(30, 600),
            etcd: Wait::seconds(60, 300),
            etcd_copy: Wait::seconds(60, 900),
            snapshot: Duration::from_secs(600),
            kube_apiserver: Duration::from_secs(300),
            controllers: Duration::from_secs(180),
            kube_apiserver_service: Duration::from_secs(600),
            shoot_client: Duration::from_secs(120),
            managed_resources: Duration::from_secs(600),
            cleanup: Duration::from_secs(600),
            namespace: Duration::from_secs(300),
        }
    }
}
