//! What a gardenlet is told by its flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use parts::Settings;

/// Looks after the shoots of one seed.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct Config {
    /// Kubeconfig of the garden, with the identity `gardener.cloud:system:seed:<seed name>`.
    #[arg(long, env = "GARDEN_KUBECONFIG")]
    pub garden_kubeconfig: PathBuf,

    /// Kubeconfig of the seed; the pod's own ServiceAccount without it.
    #[arg(long, env = "SEED_KUBECONFIG")]
    pub seed_kubeconfig: Option<PathBuf>,

    /// Name of the seed; must be that of the manifest.
    #[arg(long, env = "SEED_NAME")]
    pub seed_name: String,

    /// Manifest of the Seed (YAML), which is registered in the garden at the start.
    #[arg(long)]
    pub seed_config: PathBuf,

    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    #[arg(long, default_value = "0.0.0.0:2728")]
    pub health_address: SocketAddr,

    /// Tells this process apart from others of the seed: the pod's name. Stands in `status.gardener.id`.
    #[arg(long, env = "POD_NAME", default_value = "gardenlet")]
    pub instance_id: String,

    /// At most so many shoots, backup entries, … of a kind at the same time.
    #[arg(long, default_value_t = 20)]
    pub concurrent_syncs: u16,

    /// How often a shoot is reconciled although nothing changed.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub shoot_sync_period: Duration,

    /// How long an operation is tried again before it is given up until somebody asks for more.
    #[arg(long, default_value = "12h", value_parser = duration)]
    pub retry_duration: Duration,

    /// How often the conditions of a shoot are looked at. A probe of a shoot's API cannot be watched, so this
    /// is a period.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub care_sync_period: Duration,

    /// How long a condition that held is `Progressing` before it is `False`. Longer than the restart of a
    /// kube-apiserver, so that a roll-out raises no alarm.
    #[arg(long, default_value = "1m", value_parser = duration)]
    pub condition_threshold: Duration,

    /// How long the backups of a deleted shoot are kept.
    #[arg(long, default_value_t = 0)]
    pub backup_entry_deletion_grace_period_hours: u32,

    /// A Deployment of the seed (`namespace/name`) without which it does not work; may be given several
    /// times.
    #[arg(
        long = "system-component",
        value_parser = component,
        default_values = ["garden/etcd-druid", "extension-provider-local/provider-local", "garden-exposure/edge"]
    )]
    pub system_components: Vec<Component>,

    /// A label of Nodes, in shoots and in the seed, with their provider's ID of their zone; may be given
    /// several times. By it a failover is refused that would cut a shoot off from its own control plane
    /// (docs/operate/zone-isolation.md).
    #[arg(long = "zone-id-label", default_values = ["topology.k8s.aws/zone-id"])]
    pub zone_id_labels: Vec<String>,

    /// How long the failover of a zone may take: machines elsewhere come, pods leave the zone, its machines
    /// end. Then the network of the zone is closed, whatever is left in the zone
    /// (docs/operate/zone-isolation.md).
    #[arg(long, default_value = "15m", value_parser = duration)]
    pub zone_close_within: Duration,

    /// The number of shoots that the seed may have: resource `shoots` of `status.allocatable` of the Seed.
    /// Moves beyond that number wait. Without the flag the number has no bound.
    #[arg(long)]
    pub max_shoots: Option<u32>,

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

    /// Under which locks the controllers run.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

/// How ShootStates are kept up to date (R7-42).
#[derive(Clone, Debug, clap::Args)]
pub struct ShootStateFlags {
    /// How long nothing must have changed before what changed is written into the ShootState.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub shoot_state_sync_delay: Duration,

    /// How long after the first change it is written at the latest, although there are further ones. What a
    /// seed takes with it when it dies is what changed within this time.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub shoot_state_sync_max_delay: Duration,

    /// How often a ShootState is compared although nothing changed.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub shoot_state_sync_period: Duration,

    /// At most so many ShootStates at the same time. Each takes some 30 MiB of memory if it is large, and
    /// little if not.
    #[arg(long, default_value_t = 3)]
    pub concurrent_shoot_state_syncs: u16,
}

/// How control planes are deployed.
#[derive(Clone, Debug, clap::Args)]
pub struct ControlPlaneFlags {
    /// In front of every image name; empty: no registry.
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

    /// Tag of the image of CoreDNS, which has versions of its own.
    #[arg(long, default_value = parts::COREDNS_TAG)]
    pub coredns_tag: String,

    /// Lets API servers reach the nodes of their shoots through a tunnel that agents in the shoots dial: for
    /// seeds without roads to the nodes.
    #[arg(long)]
    pub enable_tunnel: bool,

    /// Image of the tunnel's server and agents without tag.
    #[arg(long, default_value = "repot/tunnel")]
    pub tunnel_image: String,

    /// Tag of the image of the tunnel.
    #[arg(long, default_value = "dev")]
    pub tunnel_tag: String,

    /// Namespace of the seed's front.
    #[arg(long, default_value = "garden-exposure")]
    pub exposure_namespace: String,

    /// Service whose load balancer is the seed's address.
    #[arg(long, default_value = "ingress")]
    pub ingress_service: String,

    /// For how many seconds resolvers may keep a record of a shoot. A move is visible to users only after
    /// that.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(i64).range(1..=600))]
    pub dns_ttl_seconds: i64,

    /// Storage of each etcd.
    #[arg(long, default_value = "10Gi")]
    pub etcd_storage: String,
}

/// A Deployment by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
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
            tunnel: flags.enable_tunnel,
            tunnel_image: flags.tunnel_image,
            tunnel_tag: flags.tunnel_tag,
            exposure_namespace: flags.exposure_namespace,
            ingress_service: flags.ingress_service,
            garden_identity: self.garden_identity.clone(),
            dns_ttl: flags.dns_ttl_seconds,
            etcd_storage: flags.etcd_storage,
            ..Settings::default()
        }
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
        assert_eq!(config.settings().dns_ttl, 120);
        assert_eq!(config.system_components.len(), 3);
        assert_eq!(config.zone_close_within, Duration::from_secs(15 * 60));
        assert_eq!(config.zone_id_labels, ["topology.k8s.aws/zone-id"]);
    }

    #[test]
    fn a_wrong_flag_is_named() {
        for (flag, value, words) in [
            ("--shoot-sync-period", "soon", "write it like"),
            ("--condition-threshold=-1s", "", "negative"),
            ("--system-component", "druid", "namespace/name"),
            ("--dns-ttl-seconds", "0", "1..=600"),
        ] {
            let more = [flag, value].into_iter().filter(|f| !f.is_empty());
            let error = Config::try_parse_from(NEEDED.into_iter().chain(more))
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
