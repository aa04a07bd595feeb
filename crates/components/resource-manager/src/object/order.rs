//! The order of application and deletion.

use super::Key;

/// The phase in which an object is applied. Deletion uses the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Definitions of kinds, and namespaces: other objects depend on these.
    Ground,
    /// All other objects.
    Rest,
}

impl Phase {
    /// In the order of application.
    pub const ALL: [Self; 2] = [Self::Ground, Self::Rest];

    /// The phase of an object.
    #[must_use]
    pub fn from_key(key: &Key) -> Self {
        if key.is("apiextensions.k8s.io", "CustomResourceDefinition") || key.is("", "Namespace") {
            Self::Ground
        } else {
            Self::Rest
        }
    }
}
