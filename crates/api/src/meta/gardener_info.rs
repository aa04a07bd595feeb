//! Who acted on an object last.

use crate::derive::{Deserialize, JsonSchema, Serialize};

/// The gardenlet that acted last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GardenerInfo {
    /// The pod's id.
    pub id: String,
    /// The pod's name.
    pub name: String,
    /// The version of the program.
    pub version: String,
}
