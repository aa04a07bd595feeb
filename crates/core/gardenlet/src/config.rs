//! Configuration of a gardenlet by flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use http::uri::{Authority, Uri};
use parts::Settings;
use runtime::bounds::SharePercent;

/// Runs the control planes of the shoots of a seed.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct Config {
    /// Kubeconfig of the garden, with the identity `gardener.cloud:system:seed:<seed name>`.
    #[arg(long, env = "GARDEN_KUBECONFIG")]
    pub garden_kubeconfig: PathBuf,

    /// Kubeconfig of the seed. Without this flag the gardenlet uses the ServiceAccount of its pod.
    #[arg(long, env = "SEED_KUBECONFIG")]
    pub seed_kubeconfig: Option<PathBuf>,

    /// Name of the seed; must equal the name in the manifest.
    #[arg(long, env = "SEED_NAME")]
    pub seed_name: String,

    /// Manifest of the Seed (YAML). The gardenlet registers the Seed in the garden at the start.
    #[arg(long)]
    pub seed_config: PathBuf,

    /// Address on which the gardenlet serves `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, default_value = "0.0.0.0:2728")]
    pub health_address: SocketAddr,

    /// Identifies this process among all gardenlets of the seed: the name of the pod. Reported in
    /// `status.gardener.id`.
    #[arg(long, env = "POD_NAME", default_value = "gardenlet")]
    pub instance_id: String,

    /// Maximum number of objects of each kind (shoots, backup entries, …) that are reconciled at the same
    /// time. A quarter more is reserved for projects that hold little of this number.
    #[arg(long, default_value_t = 20)]
    pub concurrent_syncs: u16,

    /// Part of the concurrent syncs, in percent, that the objects of a project may take while a second
    /// project has objects of the same kind. A project alone takes all.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub project_share_percent: u8,

    /// How often a shoot is reconciled without a change.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub shoot_sync_period: Duration,

    /// How long a failing operation is repeated before the state becomes `Failed`. Then the operation waits
    /// for a request or an edit of the Shoot by a user.
    #[arg(long, default_value = "12h", value_parser = duration)]
    pub retry_duration: Duration,

    /// How often the conditions of a shoot are checked. The API of a shoot is probed, since no watch reports
    /// its health; hence a period.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub care_sync_period: Duration,

    /// How long a condition that was `True` is `Progressing` before the condition becomes `False`. Longer
    /// than the restart of a kube-apiserver, so that a roll-out raises no alarm.
    #[arg(long, default_value = "1m", value_parser = duration)]
    pub condition_threshold: Duration,

    /// How long the backups of a deleted shoot are kept.
    #[arg(long, default_value_t = 0)]
    pub backup_entry_deletion_grace_period_hours: u32,

    /// A Deployment of the seed (`namespace/name`) that the seed needs in order to work; may be given several
    /// times.
    #[arg(
        long = "system-component",
        value_parser = component,
        default_values = ["garden/etcd-druid", "extension-provider-local/provider-local", "garden-exposure/edge"]
    )]
    pub system_components: Vec<Component>,

    /// A label of Nodes, in shoots and in the seed, with the ID of the zone at the provider; may be given
    /// several times. By this ID the gardenlet refuses a failover that would cut a shoot off from its own
    /// control plane (docs/operate/zone-isolation.md).
    #[arg(long = "zone-id-label", default_values = ["topology.k8s.aws/zone-id"])]
    pub zone_id_labels: Vec<String>,

    /// How long the failover of a zone may take: machines in healthy zones start, pods leave the zone, the
    /// machines in the zone end. After this time the network of the zone is closed, even if machines or pods
    /// are left in the zone (docs/operate/zone-isolation.md).
    #[arg(long, default_value = "15m", value_parser = duration)]
    pub zone_close_within: Duration,

    /// The number of shoots that the seed may have: resource `shoots` of `status.allocatable` of the Seed.
    /// Moves beyond that number wait. Without the flag the number has no bound.
    #[arg(long)]
    pub max_shoots: Option<u32>,

    /// Lets the seed prepare for shoots of different seeds, each under a grant of garden-controller-manager,
    /// and make keys for the preparation of its own shoots. A move without downtime of the API does not exist
    /// yet: the gardenlet prepares the namespace and the Secrets of an API server, and removes the namespace
    /// at the end of the grant, also without this flag.
    #[arg(long)]
    pub enable_preparation: bool,

    /// Identity of the garden, the last part of a shoot's cluster identity. The same for all seeds of a
    /// garden.
    #[arg(long, default_value = "garden")]
    pub garden_identity: String,

    /// The program that renders charts of extensions.
    #[arg(long, default_value = "/usr/local/bin/helm")]
    pub helm: PathBuf,

    /// How ShootStates are kept up to date.
    #[command(flatten)]
    pub shoot_state: ShootStateFlags,

    /// How control planes are deployed.
    #[command(flatten)]
    pub control_plane: ControlPlaneFlags,

    /// Where traces of moves go.
    #[command(flatten)]
    pub move_traces: MoveTraceFlags,

    /// Locks under which the controllers run.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

/// Where traces of moves go.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MoveTraceFlags {
    /// URL of a collector of OpenTelemetry that receives a trace of each move by OTLP over gRPC, such as
    /// `https://collector.observability:4317`. Without the flag the gardenlet records no trace.
    #[arg(long, value_parser = collector)]
    pub otlp_endpoint: Option<String>,

    /// File with the certificates (PEM) of the authorities that may sign the certificate of the collector.
    /// Needed for a URL with `https`, and refused for a URL with `http`.
    #[arg(long)]
    pub otlp_ca_file: Option<PathBuf>,
}

/// How ShootStates are kept up to date (R7-42).
#[derive(Clone, Debug, clap::Args)]
pub struct ShootStateFlags {
    /// How long a seed must be without further changes before the gardenlet writes the changes into the
    /// ShootState.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub shoot_state_sync_delay: Duration,

    /// Maximum delay between the first change and the write of the ShootState, even if changes continue. A
    /// seed that dies loses the changes of this time.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub shoot_state_sync_max_delay: Duration,

    /// How often a ShootState is compared without a change.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub shoot_state_sync_period: Duration,

    /// Maximum number of ShootStates that are written at the same time. A large ShootState needs some 30 MiB
    /// of memory, a small ShootState little.
    #[arg(long, default_value_t = 3)]
    pub concurrent_shoot_state_syncs: u16,
}

/// How control planes are deployed.
#[derive(Clone, Debug, clap::Args)]
pub struct ControlPlaneFlags {
    /// Prefix of every image name; empty: no registry.
    #[arg(long, default_value = "")]
    pub image_registry: String,

    /// Image of kube-apiserver without tag (the tag is the shoot's version).
    #[arg(long, default_value = "kube-apiserver")]
    pub kube_apiserver_image: String,

    /// Image of kube-controller-manager without tag.
    #[arg(long, default_value = "kube-controller-manager")]
    pub kube_controller_manager_image: String,

    /// Image of kube-scheduler without tag.
    #[arg(long, default_value = "kube-scheduler")]
    pub kube_scheduler_image: String,

    /// Image of kube-proxy on the nodes of shoots, without tag.
    #[arg(long, default_value = "kube-proxy")]
    pub kube_proxy_image: String,

    /// Image of CoreDNS in shoots, without tag.
    #[arg(long, default_value = "coredns")]
    pub coredns_image: String,

    /// Tag of the CoreDNS image. CoreDNS has versions of its own.
    #[arg(long, default_value = parts::COREDNS_TAG)]
    pub coredns_tag: String,

    /// Digest of an image, as NAME:TAG@sha256:DIGEST, with the name and tag that the control plane would have
    /// without the digest. May be repeated.
    #[arg(long = "image-digest", value_parser = image_digest)]
    pub image_digests: Vec<(String, String)>,

    /// Lets API servers reach the nodes of their shoots through a tunnel that agents in the shoots dial. For
    /// seeds without routes to the nodes.
    #[arg(long)]
    pub enable_tunnel: bool,

    /// Image of the tunnel's server and agents without tag.
    #[arg(long, default_value = "repot/tunnel")]
    pub tunnel_image: String,

    /// Tag of the image of the tunnel.
    #[arg(long, default_value = "dev")]
    pub tunnel_tag: String,

    /// Namespace of the edge (SNI proxy) of the seed.
    #[arg(long, default_value = "garden-exposure")]
    pub exposure_namespace: String,

    /// Service whose load balancer is the address of the seed.
    #[arg(long, default_value = "ingress")]
    pub ingress_service: String,

    /// Time in seconds for which resolvers may cache a DNS record of a shoot. Users see a move only after
    /// this time.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(i64).range(1..=600))]
    pub dns_ttl_seconds: i64,

    /// Storage of each etcd.
    #[arg(long, default_value = "10Gi")]
    pub etcd_storage: String,

    /// The most MiB of a ShootState that a restore writes into the etcd of this seed, and that a planned move
    /// takes along. Give all seeds the same value. The etcd of the seed needs this room beside its other
    /// objects.
    #[arg(long, default_value_t = parts::SHOOT_STATE_LIMIT_MEBIBYTES, value_parser = clap::value_parser!(u64).range(2..=10240))]
    pub shoot_state_limit_mebibytes: u64,
}

/// A Deployment by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Config {
    /// The settings of flows.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let flags = self.control_plane.clone();
        Settings {
            image_registry: flags.image_registry,
            kube_apiserver_image: flags.kube_apiserver_image,
            kube_controller_manager_image: flags.kube_controller_manager_image,
            kube_scheduler_image: flags.kube_scheduler_image,
            kube_proxy_image: flags.kube_proxy_image,
            coredns_image: flags.coredns_image,
            coredns_tag: flags.coredns_tag,
            image_digests: flags.image_digests.into_iter().collect(),
            tunnel: flags.enable_tunnel,
            tunnel_image: flags.tunnel_image,
            tunnel_tag: flags.tunnel_tag,
            exposure_namespace: flags.exposure_namespace,
            ingress_service: flags.ingress_service,
            garden_identity: self.garden_identity.clone(),
            dns_ttl: flags.dns_ttl_seconds,
            etcd_storage: flags.etcd_storage,
            shoot_state_limit: flags.shoot_state_limit_mebibytes * parts::MEBIBYTE,
            ..Settings::default()
        }
    }

    /// The part of the concurrent syncs that a project may take beside a second project.
    #[must_use]
    pub fn project_share(&self) -> SharePercent {
        SharePercent::new(self.project_share_percent)
    }

    /// How long the backups of a deleted shoot are kept.
    #[must_use]
    pub fn backup_entry_grace(&self) -> Duration {
        Duration::from_secs(3600) * self.backup_entry_deletion_grace_period_hours
    }
}

/// Reads `90s`, `1h30m`, ….
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .map_err(|e| format!("write it like 30s or 1h30m ({e})"))?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}

fn component(text: &str) -> Result<Component, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Component {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write it as namespace/name".to_owned()),
    }
}

/// The URL of a collector. gRPC has no path, and a password has no place on a command line.
fn collector(text: &str) -> Result<String, String> {
    let url = text.parse::<Uri>().ok();
    let is_valid = url.is_some_and(|url| {
        let has_scheme = matches!(url.scheme_str(), Some("http" | "https"));
        let authority = url.authority().map_or("", Authority::as_str);
        has_scheme && !authority.is_empty() && !authority.contains('@') && url.path() == "/"
    });
    if is_valid {
        Ok(text.to_owned())
    } else {
        Err("write it as http://HOST:PORT or https://HOST:PORT".to_owned())
    }
}

/// Splits `NAME:TAG@sha256:DIGEST` into the name with tag, and the digest.
fn image_digest(text: &str) -> Result<(String, String), String> {
    match text.split_once('@') {
        Some((image, digest)) if image.contains(':') && digest.starts_with("sha256:") => {
            Ok((image.to_owned(), digest.to_owned()))
        }
        _ => Err("write it as NAME:TAG@sha256:DIGEST".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NEEDED: [&str; 7] = [
        "gardenlet",
        "--garden-kubeconfig",
        "/g",
        "--seed-name",
        "a",
        "--seed-config",
        "/s",
    ];

    #[test]
    fn defaults_are_those_of_the_docs() {
        let config = Config::try_parse_from(NEEDED).unwrap();
        assert_eq!(config.retry_duration, Duration::from_secs(12 * 3600));
        assert_eq!(config.shoot_sync_period, Duration::from_secs(3600));
        assert_eq!(config.backup_entry_grace(), Duration::ZERO);
        assert_eq!(config.project_share(), SharePercent::HALF);
        assert_eq!(config.settings().dns_ttl, 120);
        assert_eq!(config.system_components.len(), 3);
        assert_eq!(config.zone_close_within, Duration::from_secs(15 * 60));
        assert_eq!(config.zone_id_labels, ["topology.k8s.aws/zone-id"]);
        assert_eq!(config.move_traces.otlp_endpoint, None);
        assert!(!config.enable_preparation);
    }

    #[test]
    fn a_wrong_flag_is_named() {
        for (flag, value, words) in [
            ("--shoot-sync-period", "soon", "write it like"),
            ("--condition-threshold=-1s", "", "negative"),
            ("--system-component", "druid", "namespace/name"),
            ("--dns-ttl-seconds", "0", "1..=600"),
            ("--project-share-percent", "0", "1..=100"),
            ("--otlp-endpoint", "collector:4317", "https://HOST:PORT"),
            (
                "--otlp-endpoint",
                "http://collector/v1/traces",
                "https://HOST:PORT",
            ),
            ("--otlp-endpoint", "https://a:b@collector", "https://HOST:PORT"),
            (
                "--image-digest",
                "kube-apiserver:v1.34.4",
                "NAME:TAG@sha256:DIGEST",
            ),
        ] {
            let more = [flag, value].into_iter().filter(|f| !f.is_empty());
            let error = Config::try_parse_from(NEEDED.into_iter().chain(more))
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_bounds_of_the_values_are_allowed_flags() {
        let refused = testkit::refused_bounds::<Config>("gardenlet", &NEEDED).unwrap();
        assert!(refused.is_empty(), "{refused:?}");
    }

    #[test]
    fn each_flag_has_a_value_in_the_chart() {
        let unset = testkit::unset_flags::<Config, leader_migration::Flags>("gardenlet").unwrap();
        // The Pod has a ServiceAccount, a variable with the name, and helm in the image. The chart writes the
        // registry before each image.
        assert_eq!(
            unset,
            ["seed-kubeconfig", "instance-id", "helm", "image-registry"]
        );
    }
}
