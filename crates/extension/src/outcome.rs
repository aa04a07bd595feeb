//! What an actuator has to tell (RX-11, RX-33).

use api::meta::{NamedResourceReference, RawExtension};
use serde_json::{Map, Value};

/// What an operation leaves in the status. `None` leaves a field as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What `restore` must be given on another seed. Opaque to everybody else (R7-24).
    pub state: Option<RawExtension>,
    /// What other extensions of the same provider may read.
    pub provider_status: Option<RawExtension>,
    /// Objects in the shoot's namespace that must be carried with the state (RX-33).
    pub resources: Option<Vec<NamedResourceReference>>,
    /// Further fields of the kind's status, each replaced as a whole.
    pub status: Map<String, Value>,
}

impl Outcome {
    /// Nothing to tell.
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
