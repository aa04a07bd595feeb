//! What has to be there before the rest, and goes after it.

use super::Key;

/// When an object is applied. It is deleted in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Definitions of kinds and namespaces: others cannot be without them.
    Ground,
    /// Everything else.
    Rest,
}

impl Phase {
    /// In the order of application.
    pub const ALL: [Self; 2] = [Self::Ground, Self::Rest];

    /// The phase of an object.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        if key.is("apiextensions.k8s.io", "CustomResourceDefinition") || key.is("", "Namespace") {
            Self::Ground
        } else {
            Self::Rest
        }
    }
}
