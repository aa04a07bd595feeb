//! The values that a seed provides for fields that the shoot leaves unset: names and networks. These values
//! are part of the issuer of its service account tokens, of certificates, of kubeconfigs and of the address
//! of every Service. So a move must not change these values.
//!
//! | field of the seed | relevance |
//! |---|---|
//! | `spec.dns.internal` | always: nodes reach the API by this name, and it is the issuer |
//! | first of `spec.dns.defaults` | for a shoot without `spec.dns.domain` |
//! | the `spec.dns.defaults` entry above the shoot's domain | unless the shoot names its own DNS provider |
//! | `spec.networks.shootDefaults` | for pods or services without a network in the shoot |

use api::gardencore::{
    Seed, Shoot,
    seed::{SeedDNSProviderConfig, ShootNetworks},
    shoot::DNSProvider,
};
use kube::ResourceExt;

/// A value that the destination would provide differently than the source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The reason in CamelCase.
    pub(super) reason: &'static str,
    /// Both sides, as the beginning of a sentence.
    pub(super) what: String,
}

/// The first difference that matters to this shoot.
pub(super) fn difference(shoot: &Shoot, source: &Seed, destination: &Seed) -> Option<Difference> {
    internal_domain(source, destination)
        .or_else(|| default_domain(shoot, source, destination))
        .or_else(|| networks(shoot, source, destination))
}

fn internal_domain(source: &Seed, destination: &Seed) -> Option<Difference> {
    let internal = |seed: &Seed| seed.spec.dns.internal.clone();
    let (from, to) = (internal(source), internal(destination));
    (!same_place(from.as_ref(), to.as_ref())).then(|| Difference {
        reason: "InternalDomainsDiffer",
        what: format!(
            "The internal domain of the shoot would change from {} to {}",
            describe_zone(from.as_ref()),
            describe_zone(to.as_ref())
        ),
    })
}

/// Compares the default domain: the domain below which users find the shoot, or the DNS provider of that
/// domain, comes from the seed unless the shoot sets its own.
fn default_domain(shoot: &Shoot, source: &Seed, destination: &Seed) -> Option<Difference> {
    let dns = shoot.spec.dns.as_ref();
    let own_domain = dns.and_then(|dns| dns.domain.as_deref());
    if own_domain.is_some() && dns.is_some_and(|dns| keeps_its_own(&dns.providers)) {
        return None;
    }
    let of = |seed: &Seed| {
        let mut defaults = seed.spec.dns.defaults.iter();
        match own_domain {
            Some(domain) => defaults.find(|default| domain.ends_with(&format!(".{}", default.domain))),
            None => defaults.next(),
        }
        .cloned()
    };
    let (from, to) = (of(source), of(destination));
    (!same_place(from.as_ref(), to.as_ref())).then(|| Difference {
        reason: "DefaultDomainsDiffer",
        what: match own_domain {
            Some(domain) => format!(
                "The shoot's domain {domain} would be kept below {} instead of {}",
                describe_zone(to.as_ref()),
                describe_zone(from.as_ref())
            ),
            None => format!(
                "The default domain of the shoot would change from {} to {}",
                describe_zone(from.as_ref()),
                describe_zone(to.as_ref())
            ),
        },
    })
}

/// Whether the shoot itself names the DNS provider of its domain; `unmanaged` means without a provider.
fn keeps_its_own(providers: &[DNSProvider]) -> bool {
    let primary = providers.iter().find(|provider| provider.primary == Some(true));
    let primary = primary.or(match providers {
        [only] => Some(only),
        _ => None,
    });
    primary.is_some_and(|provider| {
        provider.type_.as_deref() == Some("unmanaged")
            || provider.type_.is_some()
                && (provider.secret_name.is_some() || provider.credentials_ref.is_some())
    })
}

fn networks(shoot: &Shoot, source: &Seed, destination: &Seed) -> Option<Difference> {
    let own = shoot.spec.networking.clone().unwrap_or_default();
    let defaults = |seed: &Seed| seed.spec.networks.shoot_defaults.clone().unwrap_or_default();
    let (from, to) = (defaults(source), defaults(destination));
    let services = |of: &ShootNetworks| {
        of.services
            .clone()
            .unwrap_or_else(|| ShootNetworks::SERVICES.into())
    };
    let pods = |of: &ShootNetworks| of.pods.clone().unwrap_or_else(|| ShootNetworks::PODS.into());
    [
        ("services", own.services.is_some(), services(&from), services(&to)),
        ("pods", own.pods.is_some(), pods(&from), pods(&to)),
    ]
    .into_iter()
    .find(|(_, is_named, from, to)| !is_named && from != to)
    .map(|(of, _, from, to)| Difference {
        reason: "ShootDefaultsDiffer",
        what: format!(
            "The shoot names no network for its {of}, and the seeds' spec.networks.shootDefaults.{of} would change it from {from} to {to}"
        ),
    })
}

/// The same domain at the same provider, and not in two zones. The credentials may differ.
fn same_place(from: Option<&SeedDNSProviderConfig>, to: Option<&SeedDNSProviderConfig>) -> bool {
    match (from, to) {
        (None, None) => true,
        (Some(from), Some(to)) => {
            let zones_agree = match (&from.zone, &to.zone) {
                (Some(from), Some(to)) => from == to,
                // A zone without a name is found by the domain.
                _ => true,
            };
            from.domain == to.domain && from.type_ == to.type_ && zones_agree
        }
        _ => false,
    }
}

fn describe_zone(dns: Option<&SeedDNSProviderConfig>) -> String {
    match dns {
        None => "none".to_owned(),
        Some(SeedDNSProviderConfig {
            domain,
            type_,
            zone: None,
            ..
        }) => format!("{domain} ({type_})"),
        Some(SeedDNSProviderConfig {
            domain,
            type_,
            zone: Some(zone),
            ..
        }) => format!("{domain} ({type_}, zone {zone})"),
    }
}

/// The remedy, for the end of the sentence.
pub(super) fn remedy(source: &Seed, destination: &Seed) -> String {
    format!(
        "configure seed {} as seed {} is",
        destination.name_any(),
        source.name_any()
    )
}

#[cfg(test)]
#[path = "seed_defaults_tests.rs"]
mod tests;
