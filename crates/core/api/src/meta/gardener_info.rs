//! The gardenlet that acted on an object last.

use crate::derive::{Deserialize, JsonSchema, Serialize};

/// The gardenlet that acted last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GardenerInfo {
    /// Id of the container in which the gardenlet runs.
    pub id: String,
    /// Name of the pod in which the gardenlet runs.
    pub name: String,
    /// The version of the program.
    pub version: String,
}
