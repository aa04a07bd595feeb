//! Names of objects, and of the ManagedResources that want them.

use std::fmt;

use api::resources::{ManagedResource, ManagedResourceStatusObject};
use kube::{ResourceExt, core::GroupVersionKind, runtime::reflector::ObjectRef};

use crate::names::{SEED_CLASS, SEED_ORIGIN};

/// What an object is called in its cluster. In the order of lists: group, kind, namespace, name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The API group; empty for the core.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none: the object is not in one.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The version by which it is written. It does not tell two objects apart.
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

    /// From `status.resources`; none for an entry that names nothing.
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

    /// For `status.resources`.
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

    /// As in a manifest.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Its kind, for the API.
    #[must_use]
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(&self.group, &self.version, &self.kind)
    }

    /// What tells it apart from every other object: all but the version.
    #[must_use]
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (&self.group, &self.kind, self.namespace.as_deref(), &self.name)
    }

    /// Whether it is of this group and kind.
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

/// A ManagedResource, and in which kind of cluster its objects are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Whether its objects are in the seed.
    pub in_seed: bool,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Owner {
    /// The name of a ManagedResource; none for one of a class that is not ours.
    #[must_use]
    pub fn of(resource: &ManagedResource) -> Option<Self> {
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

    /// From the annotation of an object in a seed or a shoot; none for one that another process wrote.
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

    /// The annotation of its objects.
    #[must_use]
    pub fn origin(&self) -> String {
        let prefix = if self.in_seed { SEED_ORIGIN } else { "" };
        format!("{prefix}{}/{}", self.namespace, self.name)
    }

    /// For the queue of the controller.
    #[must_use]
    pub fn to_ref(&self) -> ObjectRef<ManagedResource> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}
