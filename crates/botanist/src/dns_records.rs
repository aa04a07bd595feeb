//! The shoot's names in DNS. They lead to the front of the seed that hosts the shoot, so that a move changes their value
//! and nothing else; the records themselves are never deleted by a move (I9).

use std::net::IpAddr;

use api::{
    extensions::{DNSRecord, DNSRecordSpec, DefaultSpec, RecordType},
    gardencore::shoot::DNSProvider,
    meta::SecretReference,
};
use futures::{FutureExt, future::try_join_all};
use kube::ResourceExt;
use placement::names;
use runtime::Result;

use crate::{Botanist, ExtensionResource, Kinds, Stay, configuration_problem};

/// Where a name is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Provider {
    type_: String,
    zone: Option<String>,
    secret_namespace: String,
    secret_name: String,
}

impl Botanist {
    /// The record of the name by which gardenlets and nodes reach the API.
    #[must_use]
    pub fn internal_dns_record(&self) -> Option<ExtensionResource<'_, DNSRecord>> {
        self.names.internal_api.as_ref()?;
        Some(self.dns_record("internal"))
    }

    /// The record of the name by which users reach the API.
    #[must_use]
    pub fn external_dns_record(&self) -> Option<ExtensionResource<'_, DNSRecord>> {
        self.names.external_api.as_ref()?;
        let unmanaged = primary(self).is_some_and(|provider| provider.type_.as_deref() == Some("unmanaged"));
        (!unmanaged).then(|| self.dns_record("external"))
    }

    /// "Deploying internal domain DNS record".
    pub async fn deploy_internal_dns_record(&self) -> Result<()> {
        match self.internal_dns_record() {
            Some(record) => record.deploy().await,
            None => Ok(()),
        }
    }

    /// "Deploying external domain DNS record".
    pub async fn deploy_external_dns_record(&self) -> Result<()> {
        match self.external_dns_record() {
            Some(record) => record.deploy().await,
            None => Ok(()),
        }
    }

    /// Waits until the shoot's names lead to this seed.
    pub async fn wait_until_dns_records_ready(&self) -> Result<()> {
        let records = self
            .internal_dns_record()
            .into_iter()
            .chain(self.external_dns_record());
        try_join_all(records.map(|record| async move { record.wait_until_ready().await }))
            .await
            .map(|_| ())
    }

    fn dns_record(&self, which: &'static str) -> ExtensionResource<'_, DNSRecord> {
        let name = format!("{}-{which}", self.shoot.name_any());
        ExtensionResource::new(self, name.clone(), self.settings.timeouts.dns_record, move || {
            let name = name.clone();
            async move {
                let (domain, provider) = if which == "internal" {
                    internal(self)?
                } else {
                    external(self)?
                };
                let secret = format!("dnsrecord-{name}");
                self.copy_garden_secret(&provider.secret_namespace, &provider.secret_name, &secret)
                    .await?;
                Ok(record(
                    self,
                    &domain,
                    provider,
                    &secret,
                    &self.front_address().await?,
                ))
            }
            .boxed()
        })
    }
}

impl Stay {
    /// Tells the provider to let go of all records of the shoot. The names stay (I9).
    pub async fn migrate_dns_records(&self) -> Result<()> {
        self.migrate_kinds(Kinds::DNS_RECORDS).await
    }

    /// Waits until the provider has let go of all records.
    pub async fn wait_until_dns_records_migrated(&self) -> Result<()> {
        self.wait_until_kinds_migrated(Kinds::DNS_RECORDS).await
    }

    /// "Deleting DNSRecords from the Shoot namespace". The names go with them, unless they were migrated before.
    pub async fn delete_dns_records(&self) -> Result<()> {
        self.delete_kinds(Kinds::DNS_RECORDS).await
    }

    /// Waits until all records of the shoot are gone from the seed.
    pub async fn wait_until_dns_records_deleted(&self) -> Result<()> {
        self.wait_until_kinds_deleted(Kinds::DNS_RECORDS).await
    }
}

fn record(botanist: &Botanist, domain: &str, provider: Provider, secret: &str, address: &str) -> DNSRecord {
    DNSRecord::new(
        "",
        DNSRecordSpec {
            default: DefaultSpec {
                type_: provider.type_,
                ..DefaultSpec::default()
            },
            secret_ref: SecretReference::new(&botanist.namespace, secret),
            region: None,
            zone: provider.zone,
            name: domain.to_owned(),
            record_type: record_type(address),
            values: vec![address.to_owned()],
            ttl: Some(botanist.settings.dns_ttl),
        },
    )
}

/// What kind of record an address of a load balancer needs.
fn record_type(address: &str) -> RecordType {
    match address.parse() {
        Ok(IpAddr::V4(_)) => RecordType::A,
        Ok(IpAddr::V6(_)) => RecordType::AAAA,
        Err(_) => RecordType::CNAME,
    }
}

fn internal(botanist: &Botanist) -> Result<(String, Provider)> {
    let seed = &botanist.seed_object;
    let (Some(name), Some(dns)) = (&botanist.names.internal_api, &seed.spec.dns.internal) else {
        return Err(configuration_problem(format!(
            "Seed {} has no spec.dns.internal: add it",
            seed.name_any()
        )));
    };
    Ok((name.clone(), of_seed(dns)))
}

fn external(botanist: &Botanist) -> Result<(String, Provider)> {
    let shoot = &botanist.shoot;
    let domain = names::external_domain(shoot, &botanist.project.name_any(), &botanist.seed_object)
        .unwrap_or_default();
    let name = botanist.names.external_api.clone().unwrap_or_default();
    if let Some(DNSProvider {
        type_: Some(type_),
        secret_name: Some(secret),
        ..
    }) = primary(botanist)
    {
        let provider = Provider {
            type_: type_.clone(),
            zone: None,
            secret_namespace: botanist.shoot_namespace(),
            secret_name: secret.clone(),
        };
        return Ok((name, provider));
    }
    let defaults = &botanist.seed_object.spec.dns.defaults;
    let default = defaults
        .iter()
        .find(|default| domain.ends_with(&format!(".{}", default.domain)));
    default.map(|default| (name, of_seed(default))).ok_or_else(|| {
        configuration_problem(format!(
            "spec.dns.domain {domain} is not below a default domain of Seed {}: name the provider of its DNS and a Secret \
             in spec.dns.providers, or of type \"unmanaged\" if nobody is to keep the name",
            botanist.seed_object.name_any()
        ))
    })
}

fn of_seed(dns: &api::gardencore::seed::SeedDNSProviderConfig) -> Provider {
    Provider {
        type_: dns.type_.clone(),
        zone: dns.zone.clone(),
        secret_namespace: dns
            .credentials_ref
            .namespace
            .clone()
            .unwrap_or_else(|| "garden".into()),
        secret_name: dns.credentials_ref.name.clone().unwrap_or_default(),
    }
}

/// The DNS provider of the Shoot itself: the primary one, or the only one.
fn primary(botanist: &Botanist) -> Option<&DNSProvider> {
    let providers = &botanist.shoot.spec.dns.as_ref()?.providers;
    let primary = providers.iter().find(|provider| provider.primary == Some(true));
    primary.or(if let [only] = providers.as_slice() {
        Some(only)
    } else {
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_decides_on_the_kind_of_record() {
        assert_eq!(record_type("172.18.0.5"), RecordType::A);
        assert_eq!(record_type("fd00::5"), RecordType::AAAA);
        assert_eq!(record_type("front.example.test"), RecordType::CNAME);
    }
}
