//! The Secrets of the garden that a seed reads for a Shoot, and the Secrets of the seed itself. The gardenlet
//! reads these Secrets, and garden-controller-manager grants the rights to the same Secrets.

use api::{
    gardencore::{Seed, Shoot, shoot::DNSProvider},
    meta::ObjectReference,
};
use kube::ResourceExt as _;

/// Prefix of the namespace with the credentials of a seed.
const SEED_NAMESPACE: &str = "seed-";
/// Suffix of the name of the Secret with the kubeconfig of a Shoot.
const KUBECONFIG: &str = ".kubeconfig";

/// Namespace of the garden with the credentials of a seed.
#[must_use]
pub fn seed_namespace(seed: &str) -> String {
    format!("{SEED_NAMESPACE}{seed}")
}

/// The seed to whose credentials a namespace belongs, by the name of the namespace.
#[must_use]
pub fn seed_of_namespace(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(SEED_NAMESPACE)
}

/// Name of the Secret with the kubeconfig of a Shoot, in the namespace of the Shoot.
#[must_use]
pub fn kubeconfig_secret(shoot: &str) -> String {
    format!("{shoot}{KUBECONFIG}")
}

/// Name of the Secret in namespace `seed-<seed>` to which a Seed or BackupBucket refers. A reference without
/// a namespace means this namespace.
///
/// # Errors
/// The reason why the reference is refused. A gardenlet writes these references, so a reference to a
/// different namespace would give the seed any Secret of the garden.
pub fn own_secret<'a>(seed: &str, reference: &'a ObjectReference) -> Result<&'a str, String> {
    let kind = reference.kind.as_deref().unwrap_or("Secret");
    if kind != "Secret" {
        return Err(format!(
            "credentialsRef refers to a {kind}: only a Secret can hold the credentials"
        ));
    }
    let home = seed_namespace(seed);
    let name = reference.name.as_deref().filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(format!(
            "credentialsRef has no name: name a Secret in namespace {home} of the garden"
        ));
    };
    match reference.namespace.as_deref().filter(|found| !found.is_empty()) {
        Some(found) if found != home => Err(format!(
            "credentialsRef refers to Secret {found}/{name}, and seed {seed} reads its own credentials only in namespace {home} of \
             the garden: copy the Secret to namespace {home}, and set credentialsRef.namespace to {home}"
        )),
        _ => Ok(name),
    }
}

/// Why a Seed cannot read its own credentials: the first reference to a Secret of a different namespace, with
/// the field.
#[must_use]
pub fn foreign_credentials(seed: &Seed) -> Option<String> {
    let (name, spec) = (seed.name_any(), &seed.spec);
    let backup = spec
        .backup
        .as_ref()
        .and_then(|backup| backup.credentials_ref.as_ref());
    let domains = spec.dns.internal.iter().map(|dns| ("spec.dns.internal", dns));
    let domains = domains.chain(spec.dns.defaults.iter().map(|dns| ("spec.dns.defaults", dns)));
    let domains = domains.map(|(field, dns)| (field, &dns.credentials_ref));
    let references = backup.map(|of| ("spec.backup", of)).into_iter().chain(domains);
    let mut named = references.filter(|(_, reference)| reference.namespace.is_some());
    named.find_map(|(field, reference)| {
        let why = own_secret(&name, reference).err()?;
        Some(format!("{field}.{why}"))
    })
}

/// The DNS provider of the Shoot's own domain: the primary provider, or the only provider.
#[must_use]
pub fn primary_dns_provider(shoot: &Shoot) -> Option<&DNSProvider> {
    let providers = &shoot.spec.dns.as_ref()?.providers;
    let primary = providers.iter().find(|provider| provider.primary == Some(true));
    primary.or(match providers.as_slice() {
        [only] => Some(only),
        _ => None,
    })
}

/// Name of the Secret in the Shoot's namespace with the credentials of the Shoot's own DNS provider.
#[must_use]
pub fn dns_secret(shoot: &Shoot) -> Option<&str> {
    let provider = primary_dns_provider(shoot)?;
    match &provider.credentials_ref {
        Some(reference) if reference.kind == "Secret" => Some(&reference.name),
        Some(_) => None,
        None => provider.secret_name.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn reference(reference: Value) -> ObjectReference {
        serde_json::from_value(reference).unwrap()
    }

    #[test]
    fn a_seed_reads_its_own_credentials_in_its_own_namespace_alone() {
        for own in [
            json!({"apiVersion": "v1", "kind": "Secret", "namespace": "seed-a", "name": "dns"}),
            json!({"name": "dns"}),
        ] {
            assert_eq!(own_secret("a", &reference(own)), Ok("dns"));
        }
        for (refused, words) in [
            (
                json!({"kind": "Secret", "namespace": "garden", "name": "dns"}),
                "copy the Secret to namespace seed-a",
            ),
            (
                json!({"namespace": "seed-b", "name": "dns"}),
                "refers to Secret seed-b/dns",
            ),
            (
                json!({"kind": "WorkloadIdentity", "namespace": "seed-a", "name": "dns"}),
                "only a Secret",
            ),
            (json!({"namespace": "seed-a"}), "has no name"),
        ] {
            let why = own_secret("a", &reference(refused)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn the_first_reference_of_a_seed_to_a_foreign_secret_is_reported() {
        let seed = |backup: &str, internal: &str, default: &str| -> Seed {
            let secret = |namespace: &str| json!({"kind": "Secret", "namespace": namespace, "name": "s"});
            let domain =
                |namespace: &str| json!({"type": "t", "domain": "d", "credentialsRef": secret(namespace)});
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {
                "provider": {"type": "t", "region": "r"}, "networks": {"pods": "p", "services": "s"},
                "backup": {"provider": "t", "credentialsRef": secret(backup)},
                "dns": {"internal": domain(internal), "defaults": [domain("seed-a"), domain(default)]},
            }}))
            .unwrap()
        };
        assert_eq!(foreign_credentials(&seed("seed-a", "seed-a", "seed-a")), None);
        for (foreign, field) in [
            (seed("garden", "seed-a", "seed-a"), "spec.backup.credentialsRef"),
            (
                seed("seed-a", "garden", "seed-a"),
                "spec.dns.internal.credentialsRef",
            ),
            (
                seed("seed-a", "seed-a", "seed-b"),
                "spec.dns.defaults.credentialsRef",
            ),
        ] {
            let why = foreign_credentials(&foreign).unwrap();
            assert!(why.starts_with(field), "{why}");
        }
    }

    fn shoot(dns: &Value, status: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}, "dns": dns},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn the_secret_of_the_primary_dns_provider_is_read() {
        let of = |providers: Value| {
            let shoot = shoot(&json!({"providers": providers}), &json!({}));
            dns_secret(&shoot).map(str::to_owned)
        };
        let named = |name: &str| json!({"type": "t", "secretName": name});
        assert_eq!(of(json!([named("only")])).as_deref(), Some("only"));
        assert_eq!(of(json!([named("a"), named("b")])), None);
        let primary = json!({"type": "t", "primary": true, "secretName": "old",
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "new"}});
        assert_eq!(of(json!([named("a"), primary])).as_deref(), Some("new"));
        let other = json!({"type": "t", "secretName": "old",
            "credentialsRef": {"apiVersion": "x/v1", "kind": "WorkloadIdentity", "name": "new"}});
        assert_eq!(of(json!([other])), None);
    }
}
