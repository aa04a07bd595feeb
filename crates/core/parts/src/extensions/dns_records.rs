//! The shoot's names in DNS. The records point to the SNI proxy of the seed that hosts the shoot, so a move
//! changes only the values. A move never deletes the records (I9).

use std::net::IpAddr;

use api::{
    extensions::{DNSRecord, DNSRecordSpec, DefaultSpec, RecordType},
    gardencore::{Seed as SeedObject, seed::SeedDNSProviderConfig, shoot::DNSProvider},
    meta::SecretReference,
};
use futures::future::try_join_all;
use kube::{ResourceExt, api::DynamicObject};
use placement::{
    credentials::{own_secret, primary_dns_provider, seed_namespace},
    names,
};
use runtime::Result;
use tracing::warn;

use crate::{
    ExtensionResource, Facts, Residency,
    api_server::kube_apiserver_exposure::front_address,
    configuration_problem,
    extensions::kinds::{Kinds, OfKinds, is_owner_record},
    task::{DNS, ExternalSystems, NONE, PartTask},
    verbs::Tasks,
};

/// The DNS provider and zone of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Provider {
    type_: String,
    zone: Option<String>,
    secret_namespace: String,
    secret_name: String,
}

/// Selects a name of the shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// The name for gardenlets and nodes.
    Internal,
    /// The name for users.
    External,
}

/// The records of the shoot's names.
#[derive(Debug)]
pub struct DnsRecords;

impl DnsRecords {
    /// [`Self::deploy_internal`], as a task.
    pub const DEPLOY_INTERNAL: PartTask<Facts> =
        PartTask::new("Deploying internal domain DNS record", DNS, |input| {
            Box::pin(Self::deploy_internal(input))
        });
    /// [`Self::deploy_external`], as a task.
    pub const DEPLOY_EXTERNAL: PartTask<Facts> =
        PartTask::new("Deploying external domain DNS record", DNS, |input| {
            Box::pin(Self::deploy_external(input))
        });
    /// [`Self::ready`], as a task.
    pub const READY: PartTask<Facts> = PartTask::new("Waiting until DNS records are ready", DNS, |input| {
        Box::pin(Self::ready(input))
    });
    /// [`Self::refresh_credentials`], as a task.
    pub const REFRESH_CREDENTIALS: PartTask<Facts> =
        PartTask::new("Refreshing credentials of DNS records", NONE, |input| {
            Box::pin(Self::refresh_credentials(input))
        });

    /// "Deploying internal domain DNS record".
    pub async fn deploy_internal(f: &Facts) -> Result<()> {
        deploy(f, Which::Internal).await
    }

    /// "Deploying external domain DNS record".
    pub async fn deploy_external(f: &Facts) -> Result<()> {
        deploy(f, Which::External).await
    }

    /// "Refreshing credentials of DNS records": before a flow deletes records. A planned move deletes the
    /// owner record while the shoot has no API. A key that was rotated since the last reconciliation would
    /// stop the move there.
    ///
    /// Best effort: without a new copy the provider uses the former copy.
    pub async fn refresh_credentials(f: &Facts) -> Result<()> {
        let shoot = f.shoot.name_any();
        let owner = || {
            let dns = f.seed_object.spec.dns.internal.as_ref();
            let provider = of_seed(&f.seed_object, dns?).ok()?;
            Some((format!("{shoot}-owner"), provider))
        };
        let named = [Which::Internal, Which::External]
            .into_iter()
            .filter(|which| is_kept(f, *which))
            .filter_map(|which| {
                let provider = match which {
                    Which::Internal => internal(f),
                    Which::External => external(f),
                };
                provider.ok().map(|(_, provider)| (name(f, which), provider))
            });
        for (record, provider) in named.chain(owner()) {
            let refreshed = refresh_copy(f, &record, &provider).await;
            if let Err(error) = refreshed {
                warn!(
                    error = format_args!("{error:#}"),
                    record, "the credentials of a DNSRecord are not refreshed"
                );
            }
        }
        Ok(())
    }

    /// "Waiting until DNS records are ready": until the shoot's names point to this seed.
    pub async fn ready(f: &Facts) -> Result<()> {
        let records = [Which::Internal, Which::External]
            .into_iter()
            .filter(|which| is_kept(f, *which));
        try_join_all(records.map(|which| async move { object(f, which).wait_until_ready().await }))
            .await
            .map(|_| ())
    }
}

impl OfKinds for DnsRecords {
    const KINDS: Kinds = Kinds::Only(&["DNSRecord"]);

    /// All DNSRecords except the owner record, which a flow handles at a different time.
    fn is_meant(object: &DynamicObject) -> bool {
        !is_owner_record(object)
    }

    const MIGRATION: Tasks = [
        "Migrating DNS records",
        "Waiting until DNS records have been migrated",
    ];
    const REMOVAL: Tasks = [
        "Destroying DNS records",
        "Waiting until DNSRecords have been deleted",
    ];
    const REMOVAL_TOUCHES: ExternalSystems = DNS;
}

/// Whether the shoot has the name, and Repot manages the name.
fn is_kept(f: &Facts, which: Which) -> bool {
    let unmanaged = || {
        primary_dns_provider(&f.shoot).is_some_and(|provider| provider.type_.as_deref() == Some("unmanaged"))
    };
    match which {
        Which::Internal => f.names.internal_api.is_some(),
        Which::External => f.names.external_api.is_some() && !unmanaged(),
    }
}

fn name(f: &Facts, which: Which) -> String {
    let which = match which {
        Which::Internal => "internal",
        Which::External => "external",
    };
    format!("{}-{which}", f.shoot.name_any())
}

fn object(f: &Facts, which: Which) -> ExtensionResource<'_, DNSRecord> {
    ExtensionResource::new(
        &f.residency,
        name(f, which),
        f.residency.settings.timeouts.dns_record,
    )
}

async fn deploy(f: &Facts, which: Which) -> Result<()> {
    if !is_kept(f, which) {
        return Ok(());
    }
    let (domain, provider) = match which {
        Which::Internal => internal(f)?,
        Which::External => external(f)?,
    };
    let secret = format!("dnsrecord-{}", name(f, which));
    copy_credentials(f, &provider, &secret).await?;
    let address = front_address(&f.residency).await?;
    let value = (record_type(&address), address);
    object(f, which)
        .deploy(f, record(&f.residency, &domain, provider, &secret, value))
        .await
}

/// Only for an existing record.
async fn refresh_copy(f: &Facts, record: &str, provider: &Provider) -> Result<()> {
    let object =
        ExtensionResource::<DNSRecord>::new(&f.residency, record, f.residency.settings.timeouts.dns_record);
    if object.get().await?.is_none() {
        return Ok(());
    }
    copy_credentials(f, provider, &format!("dnsrecord-{record}")).await
}

/// Copies the credentials for a name into the shoot's namespace.
pub(crate) async fn copy_credentials(f: &Facts, provider: &Provider, to: &str) -> Result<()> {
    f.copy_garden_secret(&provider.secret_namespace, &provider.secret_name, to)
        .await
}

/// A record with a single value; the caller sets the object name later. The owner record is made here, too,
/// and providers refuse an owner record with several values.
pub(crate) fn record(
    residency: &Residency,
    domain: &str,
    provider: Provider,
    secret: &str,
    (record_type, value): (RecordType, String),
) -> DNSRecord {
    DNSRecord::new(
        "",
        DNSRecordSpec {
            default: DefaultSpec {
                type_: provider.type_,
                ..DefaultSpec::default()
            },
            secret_ref: SecretReference::new(&residency.namespace, secret),
            region: None,
            zone: provider.zone,
            name: domain.to_owned(),
            record_type,
            values: vec![value],
            ttl: Some(residency.settings.dns_ttl),
        },
    )
}

/// The record type for an address of a load balancer.
fn record_type(address: &str) -> RecordType {
    match address.parse() {
        Ok(IpAddr::V4(_)) => RecordType::A,
        Ok(IpAddr::V6(_)) => RecordType::AAAA,
        Err(_) => RecordType::CNAME,
    }
}

fn internal(f: &Facts) -> Result<(String, Provider)> {
    let seed = &f.seed_object;
    let (Some(name), Some(dns)) = (&f.names.internal_api, &seed.spec.dns.internal) else {
        return Err(configuration_problem(format!(
            "Seed {} has no spec.dns.internal: add it",
            seed.name_any()
        )));
    };
    Ok((name.clone(), of_seed(seed, dns)?))
}

fn external(f: &Facts) -> Result<(String, Provider)> {
    let shoot = &f.shoot;
    let domain = names::external_domain(shoot, &f.project.name_any(), &f.seed_object).unwrap_or_default();
    let name = f.names.external_api.clone().unwrap_or_default();
    if let Some(provider) = primary_dns_provider(shoot)
        && let (Some(type_), Some(secret)) = (&provider.type_, credentials(provider)?)
    {
        let provider = Provider {
            type_: type_.clone(),
            zone: None,
            secret_namespace: f.shoot_namespace(),
            secret_name: secret.to_owned(),
        };
        return Ok((name, provider));
    }
    let defaults = &f.seed_object.spec.dns.defaults;
    let default = defaults
        .iter()
        .find(|default| domain.ends_with(&format!(".{}", default.domain)));
    let default = default.ok_or_else(|| {
        configuration_problem(format!(
            "spec.dns.domain {domain} is not below a default domain of Seed {}: name the provider of its DNS and a Secret \
             in spec.dns.providers, or of type \"unmanaged\" if nobody is to keep the name",
            f.seed_object.name_any()
        ))
    })?;
    Ok((name, of_seed(&f.seed_object, default)?))
}

/// The DNS provider from the Seed. The Secret is in the namespace of the seed.
pub(crate) fn of_seed(seed: &SeedObject, dns: &SeedDNSProviderConfig) -> Result<Provider> {
    let name = seed.name_any();
    let secret = own_secret(&name, &dns.credentials_ref)
        .map_err(|why| configuration_problem(format!("Seed {name}, domain {}: {why}", dns.domain)))?;
    Ok(Provider {
        type_: dns.type_.clone(),
        zone: dns.zone.clone(),
        secret_namespace: seed_namespace(&name),
        secret_name: secret.to_owned(),
    })
}

/// The Secret with the credentials of the Shoot's own provider: of `credentialsRef`, which replaces
/// `secretName`.
fn credentials(provider: &DNSProvider) -> Result<Option<&str>> {
    match &provider.credentials_ref {
        Some(reference) if reference.kind == "Secret" => Ok(Some(&reference.name)),
        Some(reference) => Err(configuration_problem(format!(
            "spec.dns.providers[].credentialsRef names {} {}, and only a Secret can hold the credentials: name a Secret of the Shoot's \
             namespace (apiVersion v1, kind Secret)",
            reference.kind, reference.name
        ))),
        None => Ok(provider.secret_name.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn secret_of(provider: Value) -> Result<Option<String>> {
        let provider: DNSProvider = serde_json::from_value(provider).unwrap();
        credentials(&provider).map(|name| name.map(str::to_owned))
    }

    #[test]
    fn the_credentials_of_a_shoots_own_dns_are_those_of_its_reference_and_else_of_its_secret_name() {
        let reference = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "dns"});
        let new = json!({"type": "local", "credentialsRef": reference("Secret")});
        assert_eq!(secret_of(new).unwrap().as_deref(), Some("dns"));
        let both = json!({"type": "local", "secretName": "old", "credentialsRef": reference("Secret")});
        assert_eq!(secret_of(both).unwrap().as_deref(), Some("dns"));
        let old = json!({"type": "local", "secretName": "old"});
        assert_eq!(secret_of(old).unwrap().as_deref(), Some("old"));
        assert_eq!(secret_of(json!({"type": "unmanaged"})).unwrap(), None);
        let other = secret_of(json!({"type": "local", "credentialsRef": reference("WorkloadIdentity")}));
        let message = other.unwrap_err().to_string();
        assert!(
            message.contains("WorkloadIdentity dns") && message.contains("name a Secret"),
            "{message}"
        );
    }

    #[test]
    fn the_address_decides_on_the_kind_of_record() {
        assert_eq!(record_type("172.18.0.5"), RecordType::A);
        assert_eq!(record_type("fd00::5"), RecordType::AAAA);
        assert_eq!(record_type("front.example.test"), RecordType::CNAME);
    }
}
