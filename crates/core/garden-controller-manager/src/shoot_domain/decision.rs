//! The obstacle to the reservation of a domain: pure decisions.

use std::sync::Arc;

use api::gardencore::Seed;
use kube::ResourceExt;
use placement::names;
use psl::Psl as _;

use super::{claim::DomainClaim, index::DomainIndex};
use crate::config::ReservedDomain;

/// Why a domain cannot be reserved for a Shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The operator of the garden keeps the domain for different projects.
    Operator,
    /// Different owners have names below the domain. The value is the kind of the domain.
    PublicSuffix(&'static str),
    /// The domain overlaps this internal or default domain of a Seed.
    Seed { domain: String, seed: String },
    /// The domain overlaps the reserved domain of the Shoot with this uid.
    Reserved(String),
    /// The Shoot with this uid is older, and could get a domain that overlaps.
    Older(String),
}

impl Obstacle {
    /// The text for the members of the project. The text does not identify the Shoot of a different project.
    pub(super) fn explain(&self, domain: &str) -> String {
        let why = match self {
            Self::Operator => {
                "is, or lies above or below, a domain that the operator of the garden keeps for other projects".to_owned()
            }
            Self::PublicSuffix(kind) => format!("is a {kind}, and would keep all names below from other shoots"),
            Self::Seed { domain, seed } => {
                format!("is, or lies above or below, the domain {domain} of Seed {seed}")
            }
            Self::Reserved(_) | Self::Older(_) => {
                "is, or lies above or below, the domain of a second Shoot, which came first".to_owned()
            }
        };
        format!(
            "spec.dns.domain {domain} {why}: delete this Shoot, and create the Shoot with a domain of your own, or without a domain"
        )
    }
}

/// The obstacle to the reservation of the domain. `older`: the Shoots of [`DomainIndex::older`], with the
/// prefix of each Shoot. A Shoot without a reservation has no right where a reserved domain or the domain of
/// a Seed is in the way, or where the Shoot has no Project, so that refused Shoots block no domain.
pub(super) fn obstacle(
    claim: &DomainClaim,
    index: &DomainIndex,
    older: &[DomainClaim],
    seeds: &[Arc<Seed>],
) -> Option<Obstacle> {
    let domain = &claim.domain;
    if let Some(kind) = public_suffix(domain) {
        return Some(Obstacle::PublicSuffix(kind));
    }
    if let Some((domain, seed)) = domain_of_seed(domain, claim.own_prefix.as_deref(), seeds) {
        return Some(Obstacle::Seed { domain, seed });
    }
    if let Some(other) = index.reservation_beside(claim) {
        return Some(Obstacle::Reserved(other.uid.clone()));
    }
    let could_get = |other: &&DomainClaim| {
        other.own_prefix.is_some()
            && public_suffix(&other.domain).is_none()
            && domain_of_seed(&other.domain, other.own_prefix.as_deref(), seeds).is_none()
    };
    let first = older.iter().find(could_get);
    first.map(|other| Obstacle::Older(other.uid.clone()))
}

/// Whether the operator of the garden lets Shoots of the project have the domain. A domain above a reserved
/// domain belongs to no project.
pub(super) fn is_allowed(domain: &str, project: &str, reserved: &[ReservedDomain]) -> bool {
    let overlapping = || reserved.iter().filter(|entry| overlaps(&entry.domain, domain));
    let has = |entry: &ReservedDomain| entry.domain == domain || is_below(domain, &entry.domain);
    overlapping().next().is_none() || overlapping().any(|entry| entry.project == project && has(entry))
}

/// The kind of a domain below which different owners have names, such as `de`, `co.uk` or `github.io`. A
/// reservation would keep all these names from all other Shoots. The public suffix list is compiled in.
fn public_suffix(domain: &str) -> Option<&'static str> {
    if !domain.contains('.') {
        return Some("top-level domain, without a dot");
    }
    let suffix = psl::List.suffix(domain.as_bytes())?;
    (suffix.is_known() && suffix == domain)
        .then_some("public suffix, below which different owners have names")
}

/// The internal or default domain of a Seed that overlaps the domain. The name `<shoot>.<project>` below a
/// default domain belongs to the Shoot, except a name that is equal to a default domain or above. Policy
/// `shoot-domain` applies the rule to the domains that Seeds have at that time.
fn domain_of_seed(domain: &str, own_prefix: Option<&str>, seeds: &[Arc<Seed>]) -> Option<(String, String)> {
    let rest = own_prefix
        .and_then(|own_prefix| domain.strip_prefix(own_prefix))
        .and_then(|rest| rest.strip_prefix('.'));
    let all_defaults = || seeds.iter().flat_map(|seed| &seed.spec.dns.defaults);
    let rest = rest.filter(|rest| all_defaults().any(|dns| dns.domain == *rest));
    // A default domain may lie below the default domain of a different Seed. The shoot's name below the upper
    // domain is valid there, too. But names equal to a default domain, or above, belong to no single shoot.
    let is_own = |default: &str| {
        let is_within = rest.is_some_and(|rest| default == rest || is_below(default, rest));
        is_within && is_below(domain, default)
    };
    seeds.iter().find_map(|seed| {
        let dns = &seed.spec.dns;
        // The domain without shoot and project.
        let internal = dns.internal.iter().map(|dns| {
            let named = names::internal_domain("", "", &dns.domain);
            named.trim_start_matches('.').to_owned()
        });
        let defaults = dns.defaults.iter().map(|dns| dns.domain.clone());
        let foreign = internal.chain(defaults.filter(|default| !is_own(default)));
        let found = foreign.into_iter().find(|other| overlaps(other, domain));
        found.map(|found| (found, seed.name_any()))
    })
}

/// Whether the domains are equal, or the first is above or below the second.
fn overlaps(one: &str, other: &str) -> bool {
    one == other || is_below(one, other) || is_below(other, one)
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .is_some_and(|prefix| prefix.ends_with('.'))
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
