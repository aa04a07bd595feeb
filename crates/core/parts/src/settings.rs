//! Settings that an operator sets once for a gardenlet: images, the SNI proxy of the seed, and timeouts.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ownership::Terms;

/// Tag of CoreDNS: the version that kubeadm 1.34 installs.
pub const COREDNS_TAG: &str = "v1.12.1";

/// The default of [`Settings::shoot_state_limit`], in MiB: a quarter of the default size of an etcd.
pub const SHOOT_STATE_LIMIT_MEBIBYTES: u64 = 512;
/// Bytes of a MiB.
pub const MEBIBYTE: u64 = 1024 * 1024;

/// Settings of the flow steps on this seed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Prefix of every image name, followed by a slash; empty: image names without a registry.
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
    /// Tag of the image of CoreDNS.
    pub coredns_tag: String,
    /// Digests of images by full name with tag. A container runtime pulls such an image by the digest.
    pub image_digests: BTreeMap<String, String>,
    /// Whether API servers reach nodes through a tunnel. Not needed where the seed has routes to all nodes.
    pub tunnel: bool,
    /// Image of the tunnel's server and agents without tag.
    pub tunnel_image: String,
    /// Tag of the image of the tunnel.
    pub tunnel_tag: String,
    /// Namespace of the seed's SNI proxy, for the proxy's Service and the Services that route host names.
    pub exposure_namespace: String,
    /// Service of the SNI proxy, whose load balancer is the seed's address for all shoots.
    pub ingress_service: String,
    /// Identity of the garden: last part of a shoot's cluster identity.
    pub garden_identity: String,
    /// TTL in seconds of a shoot's DNS records. Bounded below by the load that a DNS server can bear per
    /// shoot. Bounded above by the acceptable outage of a moved shoot for clients with a cached record.
    pub dns_ttl: i64,
    /// Storage of each etcd.
    pub etcd_storage: String,
    /// The most bytes of a ShootState that a restore writes into the etcd of this seed. The etcd also holds
    /// all further objects of the seed, and has 2 GiB by default.
    pub shoot_state_limit: u64,
    /// URL of a shoot's API inside the seed, by namespace.
    pub shoot_api_url: UrlOf,
    /// URL of etcd-backup-restore of etcd-main inside the seed, by namespace. The default is the Service that
    /// also leads to unready pods: the pod is unready after the final snapshot.
    pub etcd_backup_url: UrlOf,
    /// Intervals and bounds of owner checks, unless the Seed sets values. No destination waits for less than
    /// this fence.
    pub owner_check: Terms,
    /// Timeouts of the steps.
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
            image_digests: BTreeMap::new(),
            tunnel: false,
            tunnel_image: "repot/tunnel".into(),
            tunnel_tag: "dev".into(),
            exposure_namespace: "garden-exposure".into(),
            ingress_service: "ingress".into(),
            garden_identity: "garden".into(),
            dns_ttl: 120,
            etcd_storage: "10Gi".into(),
            shoot_state_limit: SHOOT_STATE_LIMIT_MEBIBYTES * MEBIBYTE,
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

    /// The full name of an image with this tag, and with the digest if the settings have the digest.
    pub(crate) fn image_of(&self, name: &str, tag: &str) -> String {
        let image = match self.image_registry.trim_end_matches('/') {
            "" => format!("{name}:{tag}"),
            registry => format!("{registry}/{name}:{tag}"),
        };
        match self.image_digests.get(&image) {
            Some(digest) => format!("{image}@{digest}"),
            None => image,
        }
    }
}

/// A URL that depends on the shoot's namespace.
#[derive(Clone)]
pub struct UrlOf(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl UrlOf {
    /// Builds the URL from a template with the placeholder `{namespace}`.
    #[must_use]
    pub fn template(template: impl Into<String>) -> Self {
        let template = template.into();
        Self::new(move |namespace| template.replace("{namespace}", namespace))
    }

    /// Builds the URL with a function: for tests, where each shoot listens on a separate port.
    pub fn new(url: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(url))
    }

    /// The URL for a namespace.
    #[must_use]
    pub fn build(&self, namespace: &str) -> String {
        (self.0)(namespace)
    }
}

impl fmt::Debug for UrlOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.build("{namespace}"))
    }
}

/// Timeouts of a wait for an object.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// An error that the object reports for this long is the step's error. Longer than a provider's own
    /// retries.
    pub severe: Duration,
    /// The step ends. Longer than `severe`, shorter than the timeout of the flow.
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

/// Timeouts of the steps. Each timeout is longer than the slowest healthy start of the awaited part.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Infrastructure, and deletion of the Infrastructure.
    pub infrastructure: Wait,
    /// Worker.
    pub worker: Wait,
    /// Machines of a shoot with a forced deletion: the time that the machine manager gets to delete the
    /// instances. Machines that are left after this time are named, and no longer awaited.
    pub forced_machines: Duration,
    /// SubnetIsolation. Longer than the provider's wait for the machines of a zone, so that a single attempt
    /// closes the zone.
    pub subnet_isolation: Wait,
    /// ControlPlane and all further extension kinds.
    pub extension: Wait,
    /// DNSRecord.
    pub dns_record: Wait,
    /// The garden's BackupEntry.
    pub backup_entry: Wait,
    /// Etcd: start with restoration from a backup, and deletion.
    pub etcd: Wait,
    /// Copy of backups between buckets. Longer than the copy Job's own wait for a final snapshot, so that the
    /// step never ends just when the Job would start to copy.
    pub etcd_copy: Wait,
    /// A full snapshot on request. Longer than the upload of the largest database.
    pub snapshot: Duration,
    /// kube-apiserver, and deletion of kube-apiserver.
    pub kube_apiserver: Duration,
    /// kube-controller-manager and kube-scheduler.
    pub controllers: Duration,
    /// The address of the seed's SNI proxy.
    pub kube_apiserver_service: Duration,
    /// The first answer of the shoot's API.
    pub shoot_client: Duration,
    /// ManagedResources, and deletion of the ManagedResources.
    pub managed_resources: Duration,
    /// Clean-up of objects in a shoot that is being deleted.
    pub cleanup: Duration,
    /// The shoot's namespace. Longer than the interval between two attempts of the namespace controller.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_with_a_digest_is_named_by_tag_and_digest() {
        let image = "registry.example/kube-proxy:v1.34.4".to_owned();
        let settings = Settings {
            image_registry: "registry.example".into(),
            image_digests: BTreeMap::from([(image, "sha256:1".to_owned())]),
            ..Settings::default()
        };
        assert_eq!(
            settings.image("kube-proxy", "1.34.4"),
            "registry.example/kube-proxy:v1.34.4@sha256:1"
        );
        assert_eq!(
            settings.image("kube-proxy", "1.34.5"),
            "registry.example/kube-proxy:v1.34.5"
        );
    }
}
