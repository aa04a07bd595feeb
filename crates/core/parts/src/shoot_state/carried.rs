//! The permitted content of a ShootState (R7-22, RX-33): exactly the content that a seed collects.
//!
//! The source seed may be compromised, and the destination applies the ShootState with the rights of the
//! destination's gardenlet. Therefore a single check, `Check`, serves both ends. The source does not
//! collect a piece that fails the check. The destination leaves such a piece out, and restores the keys of
//! the shoot without the check (`own.rs`). The check promises that a restore creates only Secrets
//! and ConfigMaps in the shoot's namespace. Names are not paths, and the objects have no owners and
//! finalizers. No controller of the seed fills or acts on the types of the Secrets.

use std::collections::BTreeSet;

use api::{
    gardencore::{ExtensionResourceState, GardenerResourceData},
    machine::state,
    meta::{CrossVersionObjectReference, ResourceData},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::Result;

use super::{
    content::{Referenced, referenced},
    entries,
    piece::{Key, Piece, version},
};
use crate::{configuration_problem, secrets::config};

/// Kinds of extension objects that live in a shoot's namespace. No controller would receive a state of a
/// different kind.
pub(super) const KINDS: &[&str] = &[
    "Bastion",
    "ContainerRuntime",
    "ControlPlane",
    "DNSRecord",
    "Extension",
    "Infrastructure",
    "Network",
    "OperatingSystemConfig",
    "SelfHostedShootExposure",
    "SubnetIsolation",
    "Worker",
];

/// Secret types of the domain `kubernetes.io` that only hold data. Controllers fill or act on all further
/// types of this domain. For example, a Secret of type `kubernetes.io/service-account-token` receives a token
/// for any service account that the Secret names.
const PLAIN_TYPES: &[&str] = &["tls", "ssh-auth", "basic-auth", "dockercfg", "dockerconfigjson"];

/// Most bytes of data in a Secret, as in the API.
const MOST_DATA: usize = 1024 * 1024;
/// Most bytes of labels, data keys and type of a Secret. An API server also stores each label and key in the
/// managed fields, beside the data.
const MOST_NAMES: usize = 64 * 1024;

/// A piece that no seed collects.
#[derive(Debug)]
pub(super) struct RefusedPiece {
    /// The name of the piece in messages.
    what: String,
    /// The reason.
    why: String,
}

impl RefusedPiece {
    fn new(what: &str, why: impl Into<String>) -> Self {
        Self {
            what: what.to_owned(),
            why: why.into(),
        }
    }

    /// A sentence without an end. `state`: the name of the ShootState.
    pub(super) fn describe(&self, state: &str) -> String {
        format!(
            "{} of ShootState {state} is nothing that a seed collects: {}",
            self.what, self.why
        )
    }
}

/// Checks the pieces of a single ShootState, in their order, from the object or from chunks.
#[derive(Debug)]
pub(super) struct Check {
    state: String,
    seen: BTreeSet<Key>,
    /// Names in `spec.gardener` and, by kind, in `spec.resources`: names must be unique in each list and
    /// kind.
    names: BTreeSet<(String, String)>,
    references: BTreeSet<Key>,
}

impl Check {
    /// A check for the ShootState of this name.
    pub(super) fn new(state: &str) -> Self {
        Self {
            state: state.to_owned(),
            seen: BTreeSet::new(),
            names: BTreeSet::new(),
            references: BTreeSet::new(),
        }
    }

    /// Fails if no seed would collect the next piece, together with the pieces so far.
    pub(super) fn piece(&mut self, piece: &Piece) -> Result<()> {
        self.accept(piece).map_err(|refused| {
            configuration_problem(format!(
                "{}. No seed restores this content: put its former content back",
                refused.describe(&self.state)
            ))
        })
    }

    /// Accepts the next piece, if a seed would collect the piece together with the pieces so far. A refused
    /// piece has no effect on further pieces.
    pub(super) fn accept(&mut self, piece: &Piece) -> Result<(), RefusedPiece> {
        match piece {
            Piece::Gardener(entry) => self.gardener(entry)?,
            Piece::Extension(entry) => self.extension(entry)?,
            Piece::Resource(entry) => self.resource(entry)?,
        }
        self.seen.insert(piece.key());
        Ok(())
    }

    /// Whether a piece with this key was accepted.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.seen.contains(key)
    }

    fn gardener(&mut self, entry: &GardenerResourceData) -> Result<(), RefusedPiece> {
        let what = format!("entry {:?} in spec.gardener", entry.name);
        match (entry.type_.as_str(), entry.name.as_str()) {
            (entries::ENTRY_TYPE, _) => {
                let Some(secret) = entries::decode(entry) else {
                    let why = "it does not decode as a Secret (data, type, immutable)";
                    return Err(RefusedPiece::new(&what, why));
                };
                if let Some(why) = why_not_carried(&secret) {
                    return Err(RefusedPiece::new(&what, why));
                }
            }
            (state::ENTRY, state::ENTRY) => {
                state::decode(&entry.data).map_err(|error| RefusedPiece::new(&what, error.to_string()))?;
                if !entry.labels.is_empty() {
                    return Err(RefusedPiece::new(&what, "it has labels"));
                }
            }
            (type_, _) => {
                let why = format!(
                    "its type is {type_:?}, not {:?}, nor is it the one entry {:?}",
                    entries::ENTRY_TYPE,
                    state::ENTRY
                );
                return Err(RefusedPiece::new(&what, why));
            }
        }
        if !self.names.insert(("spec.gardener".into(), entry.name.clone())) {
            return Err(RefusedPiece::new(&what, "there are two of that name"));
        }
        Ok(())
    }

    fn extension(&mut self, entry: &ExtensionResourceState) -> Result<(), RefusedPiece> {
        let name = entry.name.as_deref().unwrap_or_default();
        let what = format!("the state of {} {name:?} in spec.extensions", entry.kind);
        if !KINDS.contains(&entry.kind.as_str()) {
            let why = "that is no kind of extension object in a shoot's namespace";
            return Err(RefusedPiece::new(&what, why));
        }
        if !is_name(name) {
            return Err(RefusedPiece::new(&what, "that is no name of an object"));
        }
        let key = Key::extension(&entry.kind, entry.name.as_deref(), entry.purpose.as_deref());
        if self.seen.contains(&key) {
            return Err(RefusedPiece::new(&what, "there are two of it"));
        }
        let mut references = Vec::new();
        for reference in &entry.resources {
            let target = &reference.resource_ref;
            if !is_kind_of_object(target.api_version.as_deref(), &target.kind) {
                let why = format!(
                    "it refers to {} {}, and only Secrets and ConfigMaps are carried",
                    target.kind, target.name
                );
                return Err(RefusedPiece::new(&what, why));
            }
            references.push(Key::resource(target));
        }
        self.references.extend(references);
        Ok(())
    }

    fn resource(&mut self, resource: &ResourceData) -> Result<(), RefusedPiece> {
        let what = format!("{} {:?} in spec.resources", resource.kind, resource.name);
        if !is_kind_of_object(resource.api_version.as_deref(), &resource.kind) {
            let why = "only Secrets and ConfigMaps are carried";
            return Err(RefusedPiece::new(&what, why));
        }
        if !is_name(&resource.name) {
            return Err(RefusedPiece::new(&what, "that is no name of an object"));
        }
        if !self.is_referred_to(resource) {
            let why = "no state of an extension object refers to it";
            return Err(RefusedPiece::new(&what, why));
        }
        let object = referenced(resource).map_err(|why| RefusedPiece::new(&what, why))?;
        if let Referenced::Secret(secret) = &object
            && let Some(why) = why_not_referenced(secret)
        {
            return Err(RefusedPiece::new(&what, why));
        }
        if !self.names.insert((resource.kind.clone(), resource.name.clone())) {
            return Err(RefusedPiece::new(&what, "there are two of it"));
        }
        Ok(())
    }

    /// Whether a checked state refers to the object, so that the object has a reason to be carried.
    pub(super) fn is_referred_to(&self, resource: &ResourceData) -> bool {
        let key = Key::object(&resource.kind, &resource.name, resource.api_version.as_deref());
        self.references.contains(&key)
    }
}

/// The reason why a Secret cannot be an entry of `spec.gardener`, if there is a reason.
fn why_not_carried(secret: &Secret) -> Option<String> {
    if !entries::is_carried(secret) {
        return Some("it has no label persist=true".into());
    }
    if is_reserved(&secret.name_any()) {
        return Some("each seed creates the Secret of this name itself".into());
    }
    why_not_made(secret)
}

/// The reason why a Secret cannot be created in a shoot's namespace, if there is a reason.
pub(super) fn why_not_made(secret: &Secret) -> Option<String> {
    if !is_name(&secret.name_any()) {
        return Some("that is no name of an object".into());
    }
    let type_ = secret.type_.as_deref().unwrap_or("Opaque");
    if !is_plain(type_) {
        return Some(format!("Secrets of type {type_:?} are not carried"));
    }
    why_too_large(secret)
}

/// The reason why the Secret does not fit into an API server, if there is a reason. An API server reports
/// such a Secret like a failure of the API server, and a restore would try again without an end.
fn why_too_large(secret: &Secret) -> Option<String> {
    let data = secret.data.iter().flatten();
    let bytes: usize = data.clone().map(|(_, value)| value.0.len()).sum();
    let labels: usize = secret
        .labels()
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let keys: usize = data.map(|(key, _)| key.len()).sum();
    let names = labels + keys + secret.type_.as_ref().map_or(0, String::len);
    (bytes > MOST_DATA || names > MOST_NAMES).then(|| {
        format!(
            "it has {bytes} bytes of data, and {names} bytes of labels, data keys and type (at most {MOST_DATA} and {MOST_NAMES})"
        )
    })
}

fn is_plain(type_: &str) -> bool {
    let Some((domain, name)) = type_.split_once('/') else {
        return type_ == "Opaque";
    };
    let of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    !of_kubernetes || domain == "kubernetes.io" && PLAIN_TYPES.contains(&name)
}

/// Whether the API accepts the name for most kinds. Checked here since a name becomes part of a request path.
fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_outer = |c: char| c != '-' && is_inner(c);
    name.len() <= 253
        && name.split('.').all(|label| {
            label.starts_with(is_outer) && label.ends_with(is_outer) && label.chars().all(is_inner)
        })
}

pub(super) fn is_kind_of_object(api_version: Option<&str>, kind: &str) -> bool {
    version(api_version) == "v1" && matches!(kind, "Secret" | "ConfigMap")
}

/// The reason why a Secret cannot be carried as the target of a reference. The Secret of an extension may
/// also have an entry in `spec.gardener`. A Secret of the gardenlet is never carried as a reference. Former
/// versions carried further Secrets that each seed creates; a restore ignores these.
pub(super) fn why_not_referenced(secret: &Secret) -> Option<String> {
    if is_of_gardenlet(&secret.name_any()) {
        return Some("the gardenlet or the seed creates the Secret of this name, not an extension".into());
    }
    why_not_made(secret)
}

/// Whether each seed creates the Secret of this name. Such a Secret is not carried, with any labels: a
/// restore would replace the content of the destination by the content of the source. All further names are
/// free for extensions.
pub(super) fn is_reserved(name: &str) -> bool {
    config::DERIVED.contains(&name) || is_of_seed(name)
}

/// Whether the gardenlet or the seed creates the object that a state refers to, in each seed. Such an object
/// is neither collected nor restored for the reference.
pub(crate) fn is_created_by_seed(target: &CrossVersionObjectReference) -> bool {
    target.kind == "Secret" && (is_of_gardenlet(&target.name) || is_of_seed(&target.name))
}

fn is_of_gardenlet(name: &str) -> bool {
    config::CARRIED.contains(&name) || config::DERIVED.contains(&name)
}

fn is_of_seed(name: &str) -> bool {
    config::OF_SEED.contains(&name) || name.starts_with(&runtime::workload::manifests::secret_name(""))
}

#[cfg(test)]
#[path = "carried_tests.rs"]
mod tests;
