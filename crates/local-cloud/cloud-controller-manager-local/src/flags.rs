//! The command line and the resulting options.

use std::{collections::BTreeSet, ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser};
use cloud_local::{Source, range::around};
use ipnet::Ipv4Net;
use leader_migration::Locks;
use owner_checks::OwnerFlags;

use crate::{
    MANAGER,
    names::{self, AS_MANAGER, Name},
    node_ipam::book::Book,
};

/// Runs the cloud controllers of one shoot in the local cloud.
#[derive(Parser)]
#[command(name = MANAGER.0, version)]
pub struct Config {
    /// Kubeconfig of the shoot. Required, because the ServiceAccount of the pod belongs to the seed.
    #[arg(long, required_unless_present = "print_leader_migration")]
    kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    cloud: Cloud,

    /// Name of the cluster in the cloud: the shoot's technical id.
    #[arg(long, required_unless_present = "print_leader_migration")]
    cluster_name: Option<String>,

    /// Controllers that run: `*` for all, `name` to add a controller, `-name` to exclude a controller.
    /// Present and former names.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    controllers: Vec<String>,

    /// Give Nodes ranges of pod addresses: without this flag, node-ipam-controller does not run.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
          action = ArgAction::Set)]
    allocate_node_cidrs: bool,

    /// The cluster's range of pod addresses (IPv4), e.g. 100.96.0.0/11.
    #[arg(long, value_parser = around)]
    cluster_cidr: Option<Ipv4Net>,

    /// Prefix length of the range of a Node.
    #[arg(long, default_value_t = 24)]
    node_cidr_mask_size: u8,

    /// The range of Services: excluded from the ranges of Nodes where the ranges overlap.
    #[arg(long, value_parser = around)]
    service_cluster_ip_range: Option<Ipv4Net>,

    /// Range for addresses of load balancers. All clusters of an account may have the same range.
    #[arg(long, default_value = "10.184.0.0/16", value_parser = around)]
    load_balancer_range: Ipv4Net,

    /// Interval in which the addresses of a Node are compared with the cloud.
    #[arg(long, default_value = "5m", value_parser = duration)]
    node_status_update_frequency: Duration,

    /// Interval in which the cloud is queried for a Node that is not ready.
    #[arg(long, default_value = "5s", value_parser = duration)]
    node_monitor_period: Duration,

    /// Maximum number of objects of each controller that are reconciled at the same time.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    concurrent_syncs: u16,

    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub health_address: SocketAddr,

    /// Locks.
    #[command(flatten)]
    pub lease: leader_migration::Flags,

    /// The expected owner of the shoot.
    #[command(flatten)]
    pub owner: OwnerFlags,
}

/// The account in the cloud, in two possible forms.
#[derive(Args)]
#[allow(clippy::struct_field_names)] // they are the names of the flags
struct Cloud {
    /// Folder with the files `kubeconfig` and `namespace` of the account in the cloud: the mounted Secret
    /// `cloudprovider`.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["cloud_kubeconfig", "cloud_namespace"],
          required_unless_present_any = ["cloud_kubeconfig", "print_leader_migration"])]
    cloud_credentials: Option<PathBuf>,

    /// Kubeconfig of the account in the cloud.
    #[arg(long, requires = "cloud_namespace")]
    cloud_kubeconfig: Option<PathBuf>,

    /// Namespace that is the account in the cloud.
    #[arg(long, requires = "cloud_kubeconfig")]
    cloud_namespace: Option<String>,
}

/// The parsed flags.
#[derive(Debug)]
pub struct Options {
    /// Kubeconfig of the shoot.
    pub kubeconfig: PathBuf,
    /// The account in the cloud.
    pub cloud: Source,
    /// Name of the cluster in the cloud.
    pub cluster: String,
    /// Controllers that run, under any lock.
    pub controllers: BTreeSet<Name>,
    /// Ranges for node IPAM; `None` if node IPAM does not run.
    pub pods: Option<PodRanges>,
    /// Range for addresses of load balancers.
    pub load_balancer_range: Ipv4Net,
    /// Interval in which the addresses of a Node are compared with the cloud.
    pub refresh_every: Duration,
    /// Interval in which the cloud is queried for a Node that is not ready.
    pub look_every: Duration,
    /// Maximum number of objects at the same time.
    pub concurrency: u16,
}

/// The ranges for node IPAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRanges {
    /// The cluster's range.
    pub range: Ipv4Net,
    /// Prefix length of the range of a Node.
    pub size: u8,
    /// Ranges that are never assigned.
    pub blocked: Vec<Ipv4Net>,
}

impl Options {
    /// A new book for node IPAM, if node IPAM runs.
    pub fn book(&self) -> Result<Option<Book>, String> {
        let pods = self.pods.as_ref();
        pods.map(|pods| Book::new(pods.range, pods.size, &pods.blocked))
            .transpose()
    }
}

impl Config {
    /// Reads the command line; ends the process with advice after an error. Locks are in the shoot's
    /// `kube-system`, like the locks of Kubernetes' own controller managers.
    #[must_use]
    pub fn read() -> Self {
        Self::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads this command line; the first word is the program.
    pub fn from_arguments<T: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let matches = Self::command_line().try_get_matches_from(words)?;
        Self::from_arg_matches(&matches)
    }

    fn command_line() -> clap::Command {
        Self::command()
            .mut_arg("leader_elect_resource_namespace", |flag| {
                flag.default_value("kube-system")
            })
            // Not the name of the component, because all cloud controller managers share that name.
            .mut_arg("leader_elect_resource_name", |flag| flag.default_value(MANAGER.0))
    }

    /// The lock of each chosen controller. Without leader migration, `--allocate-node-cidrs` runs node IPAM
    /// under the main lock; then no further manager may run node IPAM (RK-23). With leader migration, node
    /// IPAM runs here only if the configuration names node IPAM.
    pub fn locks(&self) -> Result<Locks, String> {
        let chosen = self.controllers()?;
        let is_chosen = |name: &str| Name::parse(name).is_some_and(|name| chosen.contains(&name));
        manager::assign_chosen(&self.lease, &AS_MANAGER, is_chosen).map_err(|error| error.to_string())
    }

    /// The parsed flags.
    pub fn options(&self) -> Result<Options, String> {
        let missing = |flag: &str| format!("give {flag}");
        let cloud = match &self.cloud {
            Cloud {
                cloud_credentials: Some(folder),
                ..
            } => Source::Folder(folder.clone()),
            Cloud {
                cloud_kubeconfig: Some(path),
                cloud_namespace: Some(namespace),
                ..
            } => Source::Kubeconfig {
                path: path.clone(),
                namespace: namespace.clone(),
            },
            Cloud { .. } => {
                return Err(missing(
                    "--cloud-credentials, or --cloud-kubeconfig and --cloud-namespace",
                ));
            }
        };
        let options = Options {
            kubeconfig: self.kubeconfig.clone().ok_or_else(|| missing("--kubeconfig"))?,
            cloud,
            cluster: self
                .cluster_name
                .clone()
                .ok_or_else(|| missing("--cluster-name"))?,
            controllers: self.controllers()?,
            pods: self.pods()?,
            load_balancer_range: self.load_balancer_range,
            refresh_every: self.node_status_update_frequency,
            look_every: self.node_monitor_period,
            concurrency: self.concurrent_syncs,
        };
        options
            .book()
            .map_err(|why| format!("--cluster-cidr, --node-cidr-mask-size: {why}"))?;
        Ok(options)
    }

    /// Controllers that run, under any lock.
    fn controllers(&self) -> Result<BTreeSet<Name>, String> {
        let mut chosen = names::select(&self.controllers)?;
        if !self.allocate_node_cidrs {
            chosen.remove(&Name::NodeIpam);
        }
        Ok(chosen)
    }

    fn pods(&self) -> Result<Option<PodRanges>, String> {
        if !self.allocate_node_cidrs {
            return Ok(None);
        }
        let range = self
            .cluster_cidr
            .ok_or("--allocate-node-cidrs needs --cluster-cidr, the range of pod addresses")?;
        Ok(Some(PodRanges {
            range,
            size: self.node_cidr_mask_size,
            blocked: self.service_cluster_ip_range.into_iter().collect(),
        }))
    }
}

/// Reads `5s`, `1m30s`, ….
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .map_err(|error| format!("write it like 5s or 1m30s ({error})"))?;
    match Duration::try_from(parsed) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("it must be longer than nothing".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NEEDED: &[&str] = &[
        "--kubeconfig=k",
        "--cluster-name=shoot--dev--one",
        "--cloud-credentials=c",
    ];

    fn read(more: &[&str]) -> Result<Options, String> {
        let args = [MANAGER.0].iter().chain(more);
        Config::from_arguments(args).map_err(|e| e.to_string())?.options()
    }

    fn with(more: &[&str]) -> Result<Options, String> {
        read(&[NEEDED, more].concat())
    }

    #[test]
    fn the_definition_holds_together() {
        Config::command_line().debug_assert();
    }

    #[test]
    fn without_ranges_node_ipam_does_not_run() {
        let options = with(&[]).unwrap();
        assert_eq!(options.pods, None);
        assert_eq!(options.controllers.len(), 3);
        assert!(!options.controllers.contains(&Name::NodeIpam));
    }

    #[rstest]
    #[case::by_star(&[])]
    #[case::by_name(&["--controllers=nodeipam"])]
    fn node_ipam_runs_where_ranges_are_given(#[case] more: &[&str]) {
        let flags = [&["--allocate-node-cidrs", "--cluster-cidr=100.96.0.0/11"], more].concat();
        let options = with(&flags).unwrap();
        assert!(options.controllers.contains(&Name::NodeIpam));
        assert_eq!(options.pods.unwrap().size, 24);
    }

    /// kube-controller-manager accepts both forms, so a shoot may have such ranges when node IPAM is handed
    /// over.
    #[test]
    fn ranges_need_not_begin_at_their_boundary() {
        let options = with(&[
            "--allocate-node-cidrs",
            "--cluster-cidr=100.97.0.0/11",
            "--service-cluster-ip-range=100.65.0.0/13",
        ])
        .unwrap();
        let pods = options.pods.unwrap();
        assert_eq!(pods.range.to_string(), "100.96.0.0/11");
        assert_eq!(pods.blocked[0].to_string(), "100.64.0.0/13");
    }

    #[rstest]
    #[case::no_range(&["--allocate-node-cidrs"], "--cluster-cidr")]
    #[case::does_not_fit(&["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/24", "--node-cidr-mask-size=23"], "does not fit")]
    #[case::no_ipv4(&["--allocate-node-cidrs", "--cluster-cidr=fd00::/48"], "no IPv4 range")]
    #[case::unknown_controller(&["--controllers=*,route"], "there is no controller")]
    #[case::two_accounts(&["--cloud-kubeconfig=x", "--cloud-namespace=y"], "cannot be used with")]
    #[case::no_time(&["--node-monitor-period=0s"], "longer than nothing")]
    fn what_makes_no_sense_is_refused(#[case] more: &[&str], #[case] part: &str) {
        let why = with(more).unwrap_err();
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn an_account_needs_its_namespace() {
        let flags = ["--kubeconfig=k", "--cluster-name=c", "--cloud-kubeconfig=x"];
        assert!(read(&flags).unwrap_err().contains("--cloud-namespace"));
        assert!(read(&[&flags[..], &["--cloud-namespace=n"]].concat()).is_ok());
        assert!(read(&flags[..2]).unwrap_err().contains("--cloud-credentials"));
    }

    #[test]
    fn locks_are_where_those_of_kubernetes_are() {
        let flags = Config::from_arguments([&[MANAGER.0], NEEDED].concat()).unwrap();
        assert_eq!(flags.lease.leader_elect_resource_namespace, "kube-system");
        assert_eq!(
            flags.lease.main_lock(&AS_MANAGER),
            "cloud-controller-manager-local"
        );
    }
}
