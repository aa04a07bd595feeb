//! The result of an actuator's operation (RX-11, RX-33).

use api::meta::{NamedResourceReference, RawExtension};
use serde_json::{Map, Value};

/// The values that an operation writes into the status. `None` keeps a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The state that `restore` needs in the destination seed. Opaque for all further readers (R7-24).
    pub state: Option<RawExtension>,
    /// Data for further extensions of the same provider.
    pub provider_status: Option<RawExtension>,
    /// Objects in the shoot's namespace that must be carried with the state (RX-33).
    pub resources: Option<Vec<NamedResourceReference>>,
    /// Further fields of the kind's status, each replaced as a whole.
    pub status: Map<String, Value>,
}

impl Outcome {
    /// No changes to the status.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a field of the kind's status.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.status.insert(field.to_owned(), value.into());
        self
    }
}
