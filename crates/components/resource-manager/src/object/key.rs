//! Identities of objects, and of the ManagedResources that own the objects.

use std::fmt;

use api::resources::{ManagedResource, ManagedResourceStatusObject};
use kube::{ResourceExt, core::GroupVersionKind, runtime::reflector::ObjectRef};

use crate::names::{SEED_CLASS, SEED_ORIGIN};

/// The identity of an object in a cluster. Sorted by group, kind, namespace, name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The API group; empty for the core.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The version of the manifest. The version is not part of the identity.
    pub version: String,
}

impl Key {
    /// From the fields of a manifest.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    /// From an entry of `status.resources`; `None` for an incomplete entry.
    #[must_use]
    pub fn of_status(object: &ManagedResourceStatusObject) -> Option<Self> {
        let namespace = object
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty());
        Some(Self::new(
            object.api_version.as_deref()?,
            object.kind.as_deref()?,
            namespace,
            object.name.as_deref()?,
        ))
    }

    /// The entry for `status.resources`.
    #[must_use]
    pub fn to_status(&self) -> ManagedResourceStatusObject {
        ManagedResourceStatusObject {
            api_version: Some(self.api_version()),
            kind: Some(self.kind.clone()),
            name: Some(self.name.clone()),
            namespace: self.namespace.clone(),
            ..ManagedResourceStatusObject::default()
        }
    }

    /// `apiVersion` as in a manifest.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind, for the API.
    #[must_use]
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(&self.group, &self.version, &self.kind)
    }

    /// The unique identity: all fields except the version.
    #[must_use]
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (&self.group, &self.kind, self.namespace.as_deref(), &self.name)
    }

    /// Whether the object has this group and kind.
    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// A ManagedResource, and the class of cluster for its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Whether the objects are in the seed.
    pub in_seed: bool,
    /// Namespace of the ManagedResource.
    pub namespace: String,
    /// Name of the ManagedResource.
    pub name: String,
}

impl Owner {
    /// The owner for a ManagedResource; `None` for a class of another controller.
    #[must_use]
    pub fn from_resource(resource: &ManagedResource) -> Option<Self> {
        let in_seed = match resource.spec.class.as_deref() {
            None | Some("") => false,
            Some(SEED_CLASS) => true,
            Some(_) => return None,
        };
        Some(Self {
            in_seed,
            namespace: resource.namespace().unwrap_or_default(),
            name: resource.name_any(),
        })
    }

    /// The owner from the origin annotation of an object in a seed or a shoot; `None` for an origin of
    /// another process.
    #[must_use]
    pub fn of_origin(origin: &str, in_seed: bool) -> Option<Self> {
        let place = if in_seed {
            origin.strip_prefix(SEED_ORIGIN)?
        } else {
            origin
        };
        let (namespace, name) = place.split_once('/')?;
        (!namespace.contains(':')).then(|| Self {
            in_seed,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The origin annotation of the objects.
    #[must_use]
    pub fn origin(&self) -> String {
        let prefix = if self.in_seed { SEED_ORIGIN } else { "" };
        format!("{prefix}{}/{}", self.namespace, self.name)
    }

    /// The reference for the queue of the controller.
    #[must_use]
    pub fn to_ref(&self) -> ObjectRef<ManagedResource> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}
