//! The `providerSpec` of a MachineClass.

use api::{machine::MachineClass, meta::ErrorCode};
use kube::ResourceExt;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

/// Version of the object.
const API_VERSION: &str = "local.provider.extensions.gardener.cloud/v1alpha1";
/// Kind of the object.
const KIND: &str = "ProviderSpec";

/// An instance, without name and user data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSpec {
    api_version: String,
    kind: String,
    /// The cluster of the instance: the shoot's technical id.
    pub cluster: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The size.
    pub machine_type: String,
    /// The system image.
    pub image: String,
}

impl ProviderSpec {
    /// A specification for this cluster.
    #[must_use]
    pub fn new(cluster: &str, [region, zone]: [&str; 2], machine_type: &str, image: &str) -> Self {
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            cluster: cluster.into(),
            region: region.into(),
            zone: zone.into(),
            machine_type: machine_type.into(),
            image: image.into(),
        }
    }

    /// The specification of a class.
    ///
    /// # Errors
    /// The specification is invalid: the author of the class has to correct the specification.
    pub fn from_class(class: &MachineClass) -> Result<Self> {
        let wrong = |why: String| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "providerSpec of MachineClass {} cannot be used: {why}",
                    class.name_any()
                ),
            )
        };
        let spec: Self = class
            .spec
            .provider_spec
            .decode()
            .map_err(|e| wrong(e.to_string()))?;
        if (spec.api_version.as_str(), spec.kind.as_str()) != (API_VERSION, KIND) {
            return Err(wrong(format!("it must be a {KIND} of {API_VERSION}")));
        }
        Ok(spec)
    }
}
