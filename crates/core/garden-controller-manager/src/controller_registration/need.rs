//! The kinds and types of extension objects that a seed must serve. Pure.
//!
//! A moving shoot has these needs in both seeds: the source needs the providers to migrate and delete the
//! shoot's objects.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
    sync::Arc,
};

use api::gardencore::{BackupBucket, BackupEntry, ClusterType, ControllerRegistration, Seed, Shoot};
use kube::ResourceExt;
use placement::{
    credentials::primary_dns_provider,
    extensions::{Extensions, KIND},
    is_hosted, is_released, isolation, registered,
    seed_use::has_obstacle,
    unreserved_domain,
};

/// A kind and a type of extension objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// E.g. `Infrastructure`.
    pub kind: String,
    /// E.g. `local`.
    pub type_: String,
}

impl Need {
    /// Of these.
    #[must_use]
    pub fn new(kind: &str, type_: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            type_: type_.to_owned(),
        }
    }
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of type {}", self.kind, self.type_)
    }
}

/// A set of needed kinds and types.
pub type Needs = BTreeSet<Need>;

/// Seeds with objects of a shoot: the seed in the spec, the seed in the status, and former seeds that still
/// clean up. A Shoot that no seed can take needs no extension: a user could install each extension in each
/// seed by a Shoot that is refused or held back. Nor does a released Shoot, except in former seeds.
#[must_use]
pub fn seeds_of(shoot: &Shoot) -> BTreeSet<String> {
    let status = shoot.status.as_ref();
    let can_be_taken = is_hosted(shoot) || !has_obstacle(shoot) && unreserved_domain(shoot).is_none();
    let former = status.into_iter().flat_map(|status| &status.former_seeds);
    let named = [
        shoot.spec.seed_name.as_ref().filter(|_| can_be_taken),
        status.and_then(|status| status.seed_name.as_ref()),
    ];
    let is_kept = !is_released(shoot);
    named
        .into_iter()
        .flatten()
        .filter(|_| is_kept)
        .chain(former.map(|former| &former.name))
        .filter(|name| !name.is_empty())
        .cloned()
        .collect()
}

/// The needs of a shoot in each seed with objects of the shoot.
#[must_use]
pub fn of_shoot(shoot: &Shoot, registrations: &[Arc<ControllerRegistration>]) -> Needs {
    let spec = &shoot.spec;
    let mut needs = Needs::new();
    let mut add = |kind: &str, type_: &str| {
        if !type_.is_empty() {
            needs.insert(Need::new(kind, type_));
        }
    };
    for (kind, type_) in registered::needs_of(shoot) {
        add(kind, &type_);
    }
    if isolation::needs_provider(shoot, registrations.iter().map(Arc::as_ref)) {
        add(isolation::KIND, &spec.provider.type_);
    }
    // No DNSRecord follows from further providers. A tenant could name any type there, and no seed could take
    // the shoot over.
    let provider = primary_dns_provider(shoot).and_then(|provider| provider.type_.as_deref());
    if let Some(type_) = provider.filter(|type_| *type_ != "unmanaged") {
        add("DNSRecord", type_);
    }
    let further = Extensions::for_shoot(shoot, registrations.iter().map(Arc::as_ref));
    for extension in further.wanted() {
        add(KIND, &extension.type_);
    }
    needs
}

/// The needs of a seed itself: DNS for its shoots, a bucket for backups, its own extensions. A seed that is
/// being deleted has no such needs any more; [`of_backups`] and [`of_shoot`] cover its remaining objects.
#[must_use]
pub fn of_seed(seed: &Seed, registrations: &[Arc<ControllerRegistration>]) -> Needs {
    let mut needs = Needs::new();
    if seed.metadata.deletion_timestamp.is_some() {
        return needs;
    }
    let dns = &seed.spec.dns;
    let own = dns.provider.iter().map(|provider| &provider.type_);
    let kept = dns.internal.iter().chain(&dns.defaults).map(|kept| &kept.type_);
    needs.extend(own.chain(kept).map(|type_| Need::new("DNSRecord", type_)));
    if let Some(backup) = &seed.spec.backup {
        needs.extend(backups(&backup.provider));
    }
    let off = |type_: &str| {
        let mut named = seed.spec.extensions.iter();
        named.any(|extension| extension.type_ == type_ && extension.disabled == Some(true))
    };
    let asked = seed.spec.extensions.iter().map(|extension| &extension.type_);
    let resources = registrations
        .iter()
        .flat_map(|registration| &registration.spec.resources);
    let switched_on = resources
        .filter(|resource| resource.kind == KIND && resource.auto_enable.contains(&ClusterType::Seed));
    let all = asked.chain(switched_on.map(|resource| &resource.type_));
    needs.extend(
        all.filter(|type_| !off(type_))
            .map(|type_| Need::new(KIND, type_)),
    );
    needs.retain(|need| !need.type_.is_empty());
    needs
}

/// The needs of the buckets and backups that a seed has or must get, also while the seed is being deleted.
#[must_use]
pub fn of_backups(seed: &str, buckets: &[Arc<BackupBucket>], entries: &[Arc<BackupEntry>]) -> Needs {
    let here = |name: Option<&String>| name.is_some_and(|name| name == seed);
    let of_buckets = buckets
        .iter()
        .filter(|bucket| here(bucket.spec.seed_name.as_ref()));
    let mut needs: Needs = of_buckets
        .flat_map(|bucket| backups(&bucket.spec.provider.type_))
        .collect();
    for entry in entries {
        let has = entry.status.as_ref().and_then(|status| status.seed_name.as_ref());
        if here(entry.spec.seed_name.as_ref()) || here(has) {
            let bucket = buckets
                .iter()
                .find(|bucket| bucket.name_any() == entry.spec.bucket_name);
            needs.extend(
                bucket
                    .into_iter()
                    .flat_map(|bucket| backups(&bucket.spec.provider.type_)),
            );
        }
    }
    needs
}

fn backups(provider: &str) -> [Need; 2] {
    ["BackupBucket", "BackupEntry"].map(|kind| Need::new(kind, provider))
}

#[cfg(test)]
#[path = "need_tests.rs"]
mod tests;
