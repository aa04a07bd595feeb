//! The configuration of the process, from flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;

/// Looks after projects, the life of seeds and the preconditions of moves.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct Config {
    /// Kubeconfig of the garden; without this flag the process uses the pod's own ServiceAccount.
    #[arg(long, env = "GARDEN_KUBECONFIG")]
    pub garden_kubeconfig: Option<PathBuf>,

    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, default_value = "0.0.0.0:2728")]
    pub health_address: SocketAddr,

    /// Maximum number of objects of a kind that are reconciled at the same time. A quarter more, at least 1,
    /// is reserved for projects that hold little of this number.
    #[arg(long, default_value_t = 5)]
    pub concurrent_syncs: u16,

    /// Part of the concurrent syncs, in percent, that the objects of a project may take while a second
    /// project has objects of the same kind. A project alone takes all.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub project_share_percent: u8,

    /// Maximum number of shoots on their way to a seed at the same time; further shoots wait at their source.
    /// The chart sets a smaller number, since many moves at once make the downtime of each longer.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_migrations: u16,

    /// Maximum number of shoots for which a seed may prepare at the same time, each on request of a user
    /// (annotation `migration.gardener.cloud/prepare`); 0: no seed prepares. A move without downtime of the
    /// API does not exist yet, so a preparation shortens no move.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub preparations_per_seed: u16,

    /// Seconds after which a preparation ends. The destination then removes what it has prepared, and the
    /// user may request the preparation again.
    #[arg(long, default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(60..=604_800))]
    pub preparation_validity_seconds: u32,

    /// A seed whose Lease was not renewed for this time is unknown. Longer than three renewals of a gardenlet
    /// (10 s each), so that a single lost request has no effect.
    #[arg(long, default_value_t = 40)]
    pub seed_monitor_period_seconds: u64,

    /// Seconds of silence beyond the seed monitor period after which the conditions of the seed's Shoots turn
    /// `Unknown`. Longer than a restart of a gardenlet, so that conditions stay while a new version rolls
    /// out.
    #[arg(long, default_value_t = 200)]
    pub shoot_monitor_period_seconds: u64,

    /// How often Leases are checked. Shorter than the monitor period: silence may be detected late by this
    /// time.
    #[arg(long, default_value_t = 10)]
    pub seed_sync_period_seconds: u64,

    /// A shoot that is to move away from a seed whose Lease was not renewed for this time is taken over
    /// without that seed's help; 0: never, an operator decides. Much longer than an outage that ends without
    /// action, because changes that were not uploaded are lost.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=2_592_000))]
    pub takeover_after_seconds: u64,

    /// A bound of each project, as RESOURCE=NUMBER, in ResourceQuota `gardener` of the namespace of the
    /// project. Repeatable. The resource is the count of a kind of a group of Gardener, like
    /// `count/shoots.core.gardener.cloud`. Resources of Kubernetes that members of a project create are
    /// allowed, too, like `pods` or `count/secrets`. The namespace of this process gets no such bound.
    #[arg(long, value_parser = project_quota)]
    pub project_quota: Vec<ProjectQuota>,

    /// A domain that only Shoots of a project get, together with all names below, as DOMAIN=PROJECT.
    /// Repeatable, also with further projects for a domain.
    #[arg(long, value_parser = reserved_domain)]
    pub reserved_domain: Vec<ReservedDomain>,

    /// The locks under which the controllers run.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

/// A domain that the operator of the garden reserves for a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedDomain {
    /// The domain, in small letters.
    pub domain: String,
    /// The name of the Project.
    pub project: String,
}

fn reserved_domain(text: &str) -> Result<ReservedDomain, String> {
    let invalid = || format!("{text:?} is not like example.com=dev, in small letters");
    let (domain, project) = text.split_once('=').ok_or_else(invalid)?;
    let is_name = |name: &str| {
        let is_valid = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        !name.is_empty() && name.chars().all(is_valid)
    };
    if !domain.split('.').all(is_name) || !is_name(project) {
        return Err(invalid());
    }
    Ok(ReservedDomain {
        domain: domain.to_owned(),
        project: project.to_owned(),
    })
}

/// The resources of Kubernetes that a quota may bound: objects that role `admin` of Kubernetes may create.
/// The garden runs no workload of projects, and each object is in the etcd of the garden.
///
/// This list is the source. Tests compare policy `garden-controller-manager-quota` and the value
/// `projectQuotas` with the list, and the list with role `admin` of a real API server.
pub const KUBERNETES_RESOURCES: [&str; 26] = [
    "pods",
    "persistentvolumeclaims",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "count/configmaps",
    "count/secrets",
    "count/serviceaccounts",
    "count/roles.rbac.authorization.k8s.io",
    "count/rolebindings.rbac.authorization.k8s.io",
    "count/leases.coordination.k8s.io",
    "count/endpoints",
    "count/endpointslices.discovery.k8s.io",
    "count/replicationcontrollers",
    "count/deployments.apps",
    "count/daemonsets.apps",
    "count/statefulsets.apps",
    "count/replicasets.apps",
    "count/jobs.batch",
    "count/cronjobs.batch",
    "count/horizontalpodautoscalers.autoscaling",
    "count/ingresses.networking.k8s.io",
    "count/networkpolicies.networking.k8s.io",
    "count/poddisruptionbudgets.policy",
    "count/resourceclaims.resource.k8s.io",
    "count/resourceclaimtemplates.resource.k8s.io",
];

/// A bound in the ResourceQuota of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectQuota {
    /// The bounded resource, in the format of a ResourceQuota.
    pub resource: String,
    /// The most objects of the resource.
    pub number: u32,
}

impl ProjectQuota {
    /// Whether the bound is for a resource of Kubernetes, and not for a kind of Gardener.
    #[must_use]
    pub fn is_for_kubernetes(&self) -> bool {
        KUBERNETES_RESOURCES.contains(&self.resource.as_str())
    }
}

fn project_quota(text: &str) -> Result<ProjectQuota, String> {
    let invalid = || {
        format!(
            "{text:?} is not like count/shoots.core.gardener.cloud=20, and has none of the resources {}",
            KUBERNETES_RESOURCES.join(", ")
        )
    };
    let (resource, number) = text.split_once('=').ok_or_else(invalid)?;
    // Policy garden-controller-manager-quota refuses other resources.
    let kind = resource.strip_prefix("count/");
    let is_of_gardener = kind
        .and_then(|kind| kind.strip_suffix(".gardener.cloud"))
        .is_some_and(|kind| !kind.is_empty());
    if !is_of_gardener && !KUBERNETES_RESOURCES.contains(&resource) {
        return Err(invalid());
    }
    Ok(ProjectQuota {
        resource: resource.to_owned(),
        number: number.parse().map_err(|_| invalid())?,
    })
}

impl Config {
    /// How long a seed may be silent.
    #[must_use]
    pub fn seed_monitor_period(&self) -> Duration {
        Duration::from_secs(self.seed_monitor_period_seconds)
    }

    /// The silence beyond [`Self::seed_monitor_period`] after which conditions of Shoots turn `Unknown`.
    #[must_use]
    pub fn shoot_monitor_period(&self) -> Duration {
        Duration::from_secs(self.shoot_monitor_period_seconds)
    }

    /// The silence after which shoots are taken over without an operator; `None`: never.
    #[must_use]
    pub fn takeover_after(&self) -> Option<Duration> {
        let grace = self.takeover_after_seconds;
        (grace > 0).then(|| Duration::from_secs(grace))
    }

    /// How often Leases are checked.
    #[must_use]
    pub fn seed_sync_period(&self) -> Duration {
        Duration::from_secs(self.seed_sync_period_seconds)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The policy would refuse the whole ResourceQuota.
    #[test]
    fn the_policy_has_the_resources_of_kubernetes() {
        let policy = include_str!("../../../../charts/garden/files/policies/garden-controller-manager.yaml");
        let list = policy.split("- name: kubernetesResources").nth(1).unwrap();
        let list = list.split_once("[] : [").unwrap().1;
        let list = list.split_once(']').unwrap().0;
        let names: Vec<_> = list
            .split(',')
            .map(|name| name.trim().trim_matches('\''))
            .collect();
        assert_eq!(names, KUBERNETES_RESOURCES);
    }

    /// The process ends at a flag that it does not know.
    #[test]
    fn the_defaults_of_the_chart_are_valid() {
        let values = include_str!("../../../../charts/garden-controller-manager/values.yaml");
        let values: serde_json::Value = serde_yaml_ng::from_str(values).unwrap();
        let quotas: Vec<_> = values["projectQuotas"].as_array().unwrap().iter().collect();
        let number = |resource: &str| {
            let mut parsed = quotas
                .iter()
                .map(|quota| project_quota(quota.as_str().unwrap()).unwrap());
            parsed
                .find(|quota| quota.resource == resource)
                .map(|quota| quota.number)
        };
        assert_eq!(number("count/shoots.core.gardener.cloud"), Some(20));
        for resource in KUBERNETES_RESOURCES {
            assert!(number(resource).is_some(), "{resource} has no bound");
        }
        for resource in [
            "pods",
            "services",
            "persistentvolumeclaims",
            "count/deployments.apps",
        ] {
            assert_eq!(number(resource), Some(0), "{resource}");
        }
    }

    /// A live move does not exist yet: no seed gets a right that no move uses.
    #[test]
    fn no_seed_prepares_by_default() {
        let config = Config::parse_from(["garden-controller-manager"]);
        assert_eq!(config.preparations_per_seed, 0);
        assert_eq!(config.preparation_validity_seconds, 86_400);
    }

    #[test]
    fn a_reserved_domain_has_a_project() {
        let reserved = reserved_domain("example.com=dev").unwrap();
        let (domain, project) = ("example.com".to_owned(), "dev".to_owned());
        assert_eq!(reserved, ReservedDomain { domain, project });
        for invalid in [
            "example.com",
            "=dev",
            "example.com=",
            "Example.com=dev",
            ".com=dev",
            "example.com.=dev",
            "example.com=a,b",
        ] {
            let refused = reserved_domain(invalid).unwrap_err();
            assert!(refused.contains("is not like example.com=dev"), "{refused}");
        }
    }

    #[test]
    fn a_quota_bounds_the_count_of_a_kind() {
        let quota = project_quota("count/shoots.core.gardener.cloud=20").unwrap();
        assert_eq!(quota.resource, "count/shoots.core.gardener.cloud");
        assert_eq!(quota.number, 20);
        assert!(!quota.is_for_kubernetes());
        for resource in KUBERNETES_RESOURCES {
            let quota = project_quota(&format!("{resource}=0")).unwrap();
            assert!(quota.is_for_kubernetes(), "{resource}");
        }
        for invalid in [
            "count/shoots",
            "shoots=1",
            "count/=1",
            "requests.cpu=1",
            "count/resourcequotas=1",
            "count/.gardener.cloud=1",
            "count/shoots.core.gardener.cloud=many",
            "count/shoots.core.gardener.cloud=-1",
        ] {
            let refused = project_quota(invalid).unwrap_err();
            assert!(refused.contains("is not like count/shoots"), "{refused}");
        }
    }

    #[test]
    fn the_bounds_of_the_values_are_allowed_flags() {
        let refused =
            testkit::refused_bounds::<Config>("garden-controller-manager", &["garden-controller-manager"])
                .unwrap();
        assert!(refused.is_empty(), "{refused:?}");
    }

    #[test]
    fn each_flag_has_a_value_in_the_chart() {
        let unset =
            testkit::unset_flags::<Config, leader_migration::Flags>("garden-controller-manager").unwrap();
        // The Pod has a ServiceAccount. The sync period is shorter than each allowed monitor period.
        assert_eq!(unset, ["garden-kubeconfig", "seed-sync-period-seconds"]);
    }
}
