//! The further extensions of a shoot (objects of kind `Extension`), and the phase of each in a flow (api.md
//! 4.3).
//!
//! The result depends only on the Shoot and the ControllerRegistrations of the garden. So every caller gets
//! the same result: the seed that deploys the extensions, and the controller that derives the installations
//! of a seed. An extension in the Shoot brings a configuration. A registration can enable an extension for
//! all shoots, unless the Shoot disables the extension. A type without a registration is deployed too,
//! because the provider may have been installed by hand.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    gardencore::{
        ClusterType, ControllerRegistration, ControllerResource, ControllerResourceLifecycle,
        LifecycleStrategy as Phase, Shoot, shoot::Extension,
    },
    meta::PackedExtension,
};
use kube::ResourceExt;

/// The kind of the extension objects.
pub const KIND: &str = "Extension";

/// The further extensions of a single shoot.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    wanted: BTreeMap<String, WantedExtension>,
    lifecycles: BTreeMap<String, ControllerResourceLifecycle>,
    refused: BTreeMap<String, String>,
}

/// An extension of the shoot.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedExtension {
    /// The type, also the name of the extension object.
    pub type_: String,
    /// The configuration from the Shoot.
    pub provider_config: Option<PackedExtension>,
    /// Time limit of the provider, as written in the registration.
    pub reconcile_timeout: Option<String>,
}

impl Extensions {
    /// The extensions of this shoot.
    #[must_use]
    pub fn for_shoot<'a>(
        shoot: &Shoot,
        registrations: impl IntoIterator<Item = &'a ControllerRegistration>,
    ) -> Self {
        let registered = registered(registrations);
        let workerless = shoot.spec.provider.workers.is_empty();
        let mut this = Self::default();
        for (type_, resource) in &registered {
            if let Some(lifecycle) = &resource.lifecycle {
                this.lifecycles.insert((*type_).to_owned(), lifecycle.clone());
            }
            if is_for_all_shoots(resource) && why_not(resource, workerless).is_none() {
                this.want(type_, None, Some(resource));
            }
        }
        let mut named = BTreeSet::new();
        for extension in &shoot.spec.extensions {
            this.take(
                extension,
                registered.get(extension.type_.as_str()).copied(),
                workerless,
            );
            if !named.insert(&extension.type_) {
                let why = "is there twice: take one of the two away";
                this.refuse(&extension.type_, why);
            }
        }
        this
    }

    /// All extensions of the shoot, in the order of the types.
    pub fn wanted(&self) -> impl Iterator<Item = &WantedExtension> {
        self.wanted.values()
    }

    /// The extensions that are reconciled, or restored, in this phase.
    pub fn reconciled(&self, phase: Phase) -> impl Iterator<Item = &WantedExtension> {
        self.wanted().filter(move |wanted| {
            let lifecycle = self.lifecycles.get(&wanted.type_);
            let told = lifecycle.and_then(|lifecycle| lifecycle.reconcile);
            told.unwrap_or(Phase::AfterKubeAPIServer) == phase
        })
    }

    /// The phase of a move in which an object of this type is released.
    #[must_use]
    pub fn migrated(&self, type_: &str) -> Phase {
        let lifecycle = self.lifecycles.get(type_);
        before_or_after(lifecycle.and_then(|lifecycle| lifecycle.migrate))
    }

    /// The phase of a deletion in which an object of this type is deleted.
    #[must_use]
    pub fn deleted(&self, type_: &str) -> Phase {
        let lifecycle = self.lifecycles.get(type_);
        before_or_after(lifecycle.and_then(|lifecycle| lifecycle.delete))
    }

    /// Whether an object of this type exists without a reason. A refused request of the Shoot is a reason:
    /// the object stays until the user has fixed the request.
    #[must_use]
    pub fn is_stale(&self, type_: &str) -> bool {
        !self.wanted.contains_key(type_) && !self.refused.contains_key(type_)
    }

    /// The extensions in the Shoot's list that cannot be deployed, with the remedy.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let all: Vec<_> = self
            .refused
            .iter()
            .map(|(type_, why)| format!("extension {type_:?} in spec.extensions {why}"))
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn take(&mut self, extension: &Extension, resource: Option<&ControllerResource>, workerless: bool) {
        let type_ = &extension.type_;
        if extension.disabled == Some(true) {
            self.wanted.remove(type_);
        } else if let Some(why) = resource.and_then(|resource| why_not(resource, workerless)) {
            self.refuse(type_, why);
        } else {
            self.want(type_, extension.provider_config.clone(), resource);
        }
    }

    fn want(
        &mut self,
        type_: &str,
        provider_config: Option<PackedExtension>,
        resource: Option<&ControllerResource>,
    ) {
        let wanted = WantedExtension {
            type_: type_.to_owned(),
            provider_config,
            reconcile_timeout: resource.and_then(|resource| resource.reconcile_timeout.clone()),
        };
        self.wanted.insert(type_.to_owned(), wanted);
    }

    fn refuse(&mut self, type_: &str, why: &str) {
        self.wanted.remove(type_);
        self.refused.insert(type_.to_owned(), why.to_owned());
    }
}

/// The registered resources by type. Of two resources of a type the primary resource counts, and of two
/// primary resources the first by name.
fn registered<'a>(
    registrations: impl IntoIterator<Item = &'a ControllerRegistration>,
) -> BTreeMap<&'a str, &'a ControllerResource> {
    let mut all: Vec<_> = registrations
        .into_iter()
        .flat_map(|registration| {
            let resources = registration.spec.resources.iter();
            let of_kind = resources.filter(|resource| resource.kind == KIND);
            of_kind.map(|resource| (resource.primary == Some(false), registration.name_any(), resource))
        })
        .collect();
    // The map keeps the last resource of each type.
    all.sort_by(|(one, first, _), (other, second, _)| (other, second).cmp(&(one, first)));
    all.into_iter()
        .map(|(_, _, resource)| (resource.type_.as_str(), resource))
        .collect()
}

fn is_for_all_shoots(resource: &ControllerResource) -> bool {
    resource.auto_enable.contains(&ClusterType::Shoot) || resource.globally_enabled == Some(true)
}

/// The reason why a shoot cannot have this extension.
fn why_not(resource: &ControllerResource, workerless: bool) -> Option<&'static str> {
    let compatible = &resource.cluster_compatibility;
    if !compatible.is_empty() && !compatible.contains(&ClusterType::Shoot) {
        return Some("is not for shoots (clusterCompatibility of its ControllerRegistration): take it away");
    }
    (workerless && resource.workerless_supported != Some(true)).then_some(
        "is not for shoots without workers (workerlessSupported of its ControllerRegistration): take it away or add workers",
    )
}

/// A move or a deletion has no other phase.
fn before_or_after(told: Option<Phase>) -> Phase {
    match told {
        Some(Phase::AfterKubeAPIServer) => Phase::AfterKubeAPIServer,
        _ => Phase::BeforeKubeAPIServer,
    }
}

#[cfg(test)]
#[path = "extensions_tests.rs"]
mod tests;
