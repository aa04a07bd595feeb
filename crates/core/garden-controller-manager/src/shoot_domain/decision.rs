//! The obstacle to the reservation of a domain: pure decisions.

use api::gardencore::Seed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use placement::names;
use psl::Psl as _;

use crate::config::ReservedDomain;

/// A Shoot with a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainClaim {
    /// uid of the Shoot.
    pub(super) uid: String,
    /// `spec.dns.domain`.
    pub(super) domain: String,
    /// The domain is reserved for the Shoot, or a seed has deployed the Shoot with the domain.
    pub(super) is_reserved: bool,
    /// Creation of the Shoot.
    pub(super) created: Option<Time>,
    /// The Shoot is being deleted.
    pub(super) is_deleting: bool,
    /// `<shoot>.<project>`, for domains below a default domain. `None` without a Project that may have the
    /// domain: no domain is reserved for the Shoot.
    pub(super) own_prefix: Option<String>,
}

/// Why a domain cannot be reserved for a Shoot. The text is for the members of the project, and does not
/// identify the Shoot of a different project.
pub(super) fn obstacle(claim: &DomainClaim, others: &[DomainClaim], seeds: &[Seed]) -> Option<String> {
    let domain = &claim.domain;
    if let Some(suffix) = public_suffix(domain) {
        return Some(format!(
            "spec.dns.domain {domain} is a {suffix}, and would keep all names below from other shoots: delete this Shoot, and create the \
             Shoot with a domain of your own, or without a domain"
        ));
    }
    if let Some((of_seed, seed)) = domain_of_seed(domain, claim.own_prefix.as_deref(), seeds) {
        return Some(format!(
            "spec.dns.domain {domain} is, or lies above or below, the domain {of_seed} of Seed {seed}: delete this Shoot, and create the \
             Shoot with a domain of your own, or without a domain"
        ));
    }
    let taken = others.iter().any(|other| precedes(other, claim, others, seeds));
    taken.then(|| {
        format!(
            "spec.dns.domain {domain} is, or lies above or below, the domain of a second Shoot, which came first: delete this Shoot, and \
             create the Shoot with a domain of your own, or without a domain"
        )
    })
}

/// Whether the operator of the garden lets Shoots of the project have the domain. A domain above a reserved
/// domain belongs to no project.
pub(super) fn is_allowed(domain: &str, project: &str, reserved: &[ReservedDomain]) -> bool {
    let overlapping = || reserved.iter().filter(|entry| overlaps(&entry.domain, domain));
    let has = |entry: &ReservedDomain| entry.domain == domain || is_below(domain, &entry.domain);
    overlapping().next().is_none() || overlapping().any(|entry| entry.project == project && has(entry))
}

/// The refusal of a domain that the operator reserves for different projects.
pub(super) fn refusal_by_operator(domain: &str) -> String {
    format!(
        "spec.dns.domain {domain} is, or lies above or below, a domain that the operator of the garden keeps for other projects: delete \
         this Shoot, and create the Shoot with a domain of your own, or without a domain"
    )
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

/// Whether `other` has a better right to the domain of `claim`. A Shoot without a reservation has no right
/// where a reserved domain or the domain of a Seed is in the way, or where the Shoot has no Project, so that
/// refused Shoots block no domain.
fn precedes(other: &DomainClaim, claim: &DomainClaim, others: &[DomainClaim], seeds: &[Seed]) -> bool {
    if other.uid != claim.uid && other.is_reserved {
        return overlaps(&other.domain, &claim.domain);
    }
    if !may_precede(other, claim) {
        return false;
    }
    let is_taken = others.iter().any(|reserved| {
        reserved.is_reserved && reserved.uid != other.uid && overlaps(&reserved.domain, &other.domain)
    });
    !is_taken
        && other.own_prefix.is_some()
        && public_suffix(&other.domain).is_none()
        && domain_of_seed(&other.domain, other.own_prefix.as_deref(), seeds).is_none()
}

/// Whether `other` is an older Shoot without a reservation that could get a domain in the way of `claim`. No
/// domain is reserved for a Shoot in deletion.
pub(super) fn may_precede(other: &DomainClaim, claim: &DomainClaim) -> bool {
    let age = |claim: &DomainClaim| (claim.created.as_ref().map(|time| time.0), claim.uid.clone());
    !other.is_reserved
        && !other.is_deleting
        && other.uid != claim.uid
        && overlaps(&other.domain, &claim.domain)
        && age(other) < age(claim)
}

/// The internal or default domain of a Seed that overlaps the domain. The name `<shoot>.<project>` below a
/// default domain belongs to the Shoot, except a name that is equal to a default domain or above. Policy
/// `shoot-domain` applies the rule to the domains that Seeds have at that time.
fn domain_of_seed(domain: &str, own_prefix: Option<&str>, seeds: &[Seed]) -> Option<(String, String)> {
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
