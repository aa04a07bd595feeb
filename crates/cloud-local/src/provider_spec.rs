//! What a MachineClass says of an instance in `providerSpec`.

use api::{machine::MachineClass, meta::ErrorCode};
use kube::ResourceExt;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

/// Version of the object.
const API_VERSION: &str = "local.provider.extensions.gardener.cloud/v1alpha1";
/// Kind of the object.
const KIND: &str = "ProviderSpec";

/// An instance, but for its name and user data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSpec {
    api_version: String,
    kind: String,
    /// The cluster whose instance it is: the shoot's technical id.
    pub cluster: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The size.
    pub machine_type: String,
    /// The system that it starts with.
    pub image: String,
}

impl ProviderSpec {
    /// One of this cluster.
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

    /// That of a class.
    ///
    /// # Errors
    /// It is none: whoever wrote the class has to correct it.
    pub fn of(class: &MachineClass) -> Result<Self> {
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
