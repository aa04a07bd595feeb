//! Names that follow from a Shoot: namespace, domains, addresses, backup entry. All names are the same on
//! every seed.

use std::net::IpAddr;

use api::gardencore::{Seed, Shoot, seed::ShootNetworks};
use ipnet::IpNet;
use kube::ResourceExt;

/// Services network of a shoot without a services network.
const DEFAULT_SERVICES: &str = ShootNetworks::SERVICES;
/// Pods network of a shoot without a pods network.
const DEFAULT_PODS: &str = ShootNetworks::PODS;

/// Prefix of the name of a source BackupEntry.
const SOURCE_ENTRY: &str = "source-";

/// The names of a single shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Namespace in the seed.
    pub technical_id: String,
    /// Name under which gardenlets and nodes reach the API.
    pub internal_api: Option<String>,
    /// Name under which users reach the API.
    pub external_api: Option<String>,
    /// Address of the Service `kubernetes` in the shoot.
    pub first_service_ip: IpAddr,
    /// The services network.
    pub services: String,
    /// The pods network.
    pub pods: String,
}

impl Names {
    /// Derives the names.
    ///
    /// # Errors
    /// The services network is invalid.
    pub fn for_shoot(shoot: &Shoot, project: &str, seed: &Seed) -> Result<Self, NoNetwork> {
        let shoot_name = shoot.name_any();
        let defaults = seed.spec.networks.shoot_defaults.clone().unwrap_or_default();
        let networking = shoot.spec.networking.clone().unwrap_or_default();
        let services = networking
            .services
            .or(defaults.services)
            .unwrap_or_else(|| DEFAULT_SERVICES.into());
        let Some(first_service_ip) = first_address(&services) else {
            return Err(NoNetwork(services));
        };
        Ok(Self {
            technical_id: technical_id(shoot, project),
            internal_api: seed
                .spec
                .dns
                .internal
                .as_ref()
                .map(|dns| format!("api.{}", internal_domain(&shoot_name, project, &dns.domain))),
            external_api: external_domain(shoot, project, seed).map(|domain| format!("api.{domain}")),
            first_service_ip,
            services,
            pods: networking
                .pods
                .or(defaults.pods)
                .unwrap_or_else(|| DEFAULT_PODS.into()),
        })
    }

    /// The name in a user's kubeconfig.
    #[must_use]
    pub fn public_api(&self) -> Option<&str> {
        self.external_api.as_deref().or(self.internal_api.as_deref())
    }

    /// The name of the owner record in DNS (R17-10).
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        owner_record(self.internal_api.as_deref()?)
    }

    /// The names under which clients outside the shoot reach the API.
    pub fn apis(&self) -> impl Iterator<Item = &str> {
        self.internal_api
            .as_deref()
            .into_iter()
            .chain(self.external_api.as_deref())
    }
}

/// The services network of a Shoot is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.networking.services is {0:?}, which is no network with room for a service: write one like {DEFAULT_SERVICES}"
)]
pub struct NoNetwork(String);

/// Namespace of the shoot in a seed. The name never changes once the status has recorded the name. `project`:
/// the Project of the Shoot's namespace in the garden.
#[must_use]
pub fn technical_id(shoot: &Shoot, project: &str) -> String {
    recorded_technical_id(shoot).map_or_else(
        || format!("shoot--{project}--{}", shoot.name_any()),
        str::to_owned,
    )
}

/// The project in a technical id, or in the name of a BackupEntry or source BackupEntry, which has a
/// technical id. `None` for further names.
#[must_use]
pub fn project_in(name: &str) -> Option<&str> {
    let technical_id = name.strip_prefix(SOURCE_ENTRY).unwrap_or(name);
    let (project, _) = technical_id.strip_prefix("shoot--")?.split_once("--")?;
    Some(project)
}

/// The technical id, if a seed has begun the shoot.
#[must_use]
pub fn recorded_technical_id(shoot: &Shoot) -> Option<&str> {
    let status = shoot.status.as_ref()?;
    Some(status.technical_id.as_str()).filter(|id| !id.is_empty())
}

/// The uid that identifies the shoot: the uid at the first reconciliation.
#[must_use]
pub fn uid(shoot: &Shoot) -> String {
    match shoot.status.as_ref().map(|status| status.uid.as_str()) {
        Some(uid) if !uid.is_empty() => uid.to_owned(),
        _ => shoot.uid().unwrap_or_default(),
    }
}

/// Name of the shoot's BackupEntry.
#[must_use]
pub fn backup_entry(technical_id: &str, uid: &str) -> String {
    format!("{technical_id}--{uid}")
}

/// The name of the owner record, derived from the internal name of the shoot's API.
#[must_use]
pub fn owner_record(internal_api: &str) -> Option<String> {
    let domain = internal_api.strip_prefix("api.")?;
    Some(format!("owner.{domain}"))
}

/// The parent domain of the shoot's internal names.
#[must_use]
pub fn internal_domain(shoot: &str, project: &str, domain: &str) -> String {
    if domain.split('.').any(|label| label == "internal") {
        format!("{shoot}.{project}.{domain}")
    } else {
        format!("{shoot}.{project}.internal.{domain}")
    }
}

/// The parent domain of the shoot's names for users: the shoot's own domain, or a domain below the seed's
/// first default domain.
#[must_use]
pub fn external_domain(shoot: &Shoot, project: &str, seed: &Seed) -> Option<String> {
    shoot
        .spec
        .dns
        .as_ref()
        .and_then(|dns| dns.domain.clone())
        .or_else(|| {
            let default = seed.spec.dns.defaults.first()?;
            Some(format!("{}.{project}.{}", shoot.name_any(), default.domain))
        })
}

/// The first usable address of a network: Kubernetes assigns this address to the Service `kubernetes`.
fn first_address(network: &str) -> Option<IpAddr> {
    let network: IpNet = network.parse().ok()?;
    if network.prefix_len() > network.max_prefix_len() - 2 {
        return None;
    }
    // In IPv6 the network's own address counts among the hosts.
    match network.trunc() {
        IpNet::V4(network) => network.hosts().next().map(IpAddr::V4),
        IpNet::V6(network) => network.hosts().nth(1).map(IpAddr::V6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_internal_is_put_in_once() {
        assert_eq!(
            internal_domain("web", "dev", "example.test"),
            "web.dev.internal.example.test"
        );
        assert_eq!(
            internal_domain("web", "dev", "internal.example.test"),
            "web.dev.internal.example.test"
        );
    }

    #[test]
    fn the_project_is_in_the_technical_id_and_in_the_name_of_the_backups() {
        for (name, project) in [
            ("shoot--dev--web", Some("dev")),
            ("shoot--dev--web--5f1c-uid", Some("dev")),
            ("source-shoot--dev--web--5f1c-uid", Some("dev")),
            ("source-garden", None),
            ("shoot--my-team--a-b", Some("my-team")),
            ("shoot--dev", None),
            ("garden-dev", None),
            ("garden", None),
        ] {
            assert_eq!(project_in(name), project, "{name}");
        }
    }

    #[test]
    fn the_first_address_of_a_network() {
        assert_eq!(
            first_address("100.64.0.0/13").map(|a| a.to_string()).as_deref(),
            Some("100.64.0.1")
        );
        assert_eq!(
            first_address("10.1.2.3/16").map(|a| a.to_string()).as_deref(),
            Some("10.1.0.1")
        );
        assert_eq!(
            first_address("fd00::/112").map(|a| a.to_string()).as_deref(),
            Some("fd00::1")
        );
        assert_eq!(first_address("10.0.0.0/31"), None);
        assert_eq!(first_address("10.0.0.0"), None);
        assert_eq!(first_address("10.0.0.0/33"), None);
    }
}
