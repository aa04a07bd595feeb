//! The permitted content of a ShootState (R7-22, RX-33): exactly the content that a seed collects.
//!
//! The source seed may be compromised, and the destination applies the ShootState with the rights of the
//! destination's gardenlet. Therefore a single function, [`check`], serves both ends. The source does not
//! collect a piece that fails the check. The destination refuses the whole ShootState for a single failing
//! piece, before any piece is applied. The check promises that a restore creates only Secrets and ConfigMaps
//! in the shoot's namespace. Names are not paths, and the objects have no owners and finalizers. No
//! controller of the seed fills or acts on the types of the Secrets.

use std::collections::BTreeSet;

use api::{
    gardencore::{ExtensionResourceState, GardenerResourceData, ShootState},
    machine::state,
    meta::{CrossVersionObjectReference, ResourceData},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Error, Result};

use super::{
    content::{Referenced, referenced},
    entries,
    piece::{Key, Piece, pieces_of, version},
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

/// Checks that a seed would collect this content. The error names the first piece that fails.
pub fn check(state: &ShootState) -> Result<()> {
    let mut check = Check::new(&state.name_any());
    for piece in pieces_of(state.spec.clone()) {
        check.piece(&piece)?;
    }
    Ok(())
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

    /// Checks that a seed would collect the next piece, together with the pieces so far.
    pub(super) fn piece(&mut self, piece: &Piece) -> Result<()> {
        match piece {
            Piece::Gardener(entry) => self.gardener(entry)?,
            Piece::Extension(entry) => self.extension(entry)?,
            Piece::Resource(entry) => self.resource(entry)?,
        }
        self.seen.insert(piece.key());
        Ok(())
    }

    fn gardener(&mut self, entry: &GardenerResourceData) -> Result<()> {
        let what = format!("entry {:?} in spec.gardener", entry.name);
        if !self.names.insert(("spec.gardener".into(), entry.name.clone())) {
            return Err(self.refused(&what, "there are two of that name"));
        }
        match (entry.type_.as_str(), entry.name.as_str()) {
            (entries::ENTRY_TYPE, _) => {
                let secret = entries::to_secret(&self.state, entry)?;
                why_not_carried(&secret).map_or(Ok(()), |why| Err(self.refused(&what, &why)))
            }
            (state::ENTRY, state::ENTRY) => {
                let labelled = !entry.labels.is_empty();
                let decoded = state::decode(&entry.data).map_err(|error| error.to_string());
                match decoded {
                    Ok(_) if labelled => Err(self.refused(&what, "it has labels")),
                    Ok(_) => Ok(()),
                    Err(why) => Err(self.refused(&what, &why)),
                }
            }
            (type_, _) => Err(self.refused(
                &what,
                &format!(
                    "its type is {type_:?}, not {:?}, nor is it the one entry {:?}",
                    entries::ENTRY_TYPE,
                    state::ENTRY
                ),
            )),
        }
    }

    fn extension(&mut self, entry: &ExtensionResourceState) -> Result<()> {
        let name = entry.name.as_deref().unwrap_or_default();
        let what = format!("the state of {} {name:?} in spec.extensions", entry.kind);
        if !KINDS.contains(&entry.kind.as_str()) {
            let why = "that is no kind of extension object in a shoot's namespace";
            return Err(self.refused(&what, why));
        }
        if !is_name(name) {
            return Err(self.refused(&what, "that is no name of an object"));
        }
        let key = Key::extension(&entry.kind, entry.name.as_deref(), entry.purpose.as_deref());
        if self.seen.contains(&key) {
            return Err(self.refused(&what, "there are two of it"));
        }
        for reference in &entry.resources {
            let target = &reference.resource_ref;
            if !is_kind_of_object(target.api_version.as_deref(), &target.kind) {
                let why = format!(
                    "it refers to {} {}, and only Secrets and ConfigMaps are carried",
                    target.kind, target.name
                );
                return Err(self.refused(&what, &why));
            }
            self.references.insert(Key::resource(target));
        }
        Ok(())
    }

    fn resource(&mut self, resource: &ResourceData) -> Result<()> {
        let what = format!("{} {:?} in spec.resources", resource.kind, resource.name);
        if !is_kind_of_object(resource.api_version.as_deref(), &resource.kind) {
            return Err(self.refused(&what, "only Secrets and ConfigMaps are carried"));
        }
        if !is_name(&resource.name) {
            return Err(self.refused(&what, "that is no name of an object"));
        }
        if !self.names.insert((resource.kind.clone(), resource.name.clone())) {
            return Err(self.refused(&what, "there are two of it"));
        }
        if !self.is_referred_to(resource) {
            return Err(self.refused(&what, "no state of an extension object refers to it"));
        }
        let object = referenced(resource).map_err(|why| self.refused(&what, &why))?;
        if let Referenced::Secret(secret) = &object
            && let Some(why) = why_not_referenced(secret)
        {
            return Err(self.refused(&what, &why));
        }
        Ok(())
    }

    /// Whether a checked state refers to the object, so that the object has a reason to be carried.
    pub(super) fn is_referred_to(&self, resource: &ResourceData) -> bool {
        let key = Key::object(&resource.kind, &resource.name, resource.api_version.as_deref());
        self.references.contains(&key)
    }

    fn refused(&self, what: &str, why: &str) -> Error {
        configuration_problem(format!(
            "{what} of ShootState {} is nothing that a seed collects: {why}. Nothing of this ShootState is applied: put its \
             former content back",
            self.state
        ))
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
    (!is_plain(type_)).then(|| format!("Secrets of type {type_:?} are not carried"))
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
