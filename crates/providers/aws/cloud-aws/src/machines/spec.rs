//! The parameters of an instance in `providerSpec` of a MachineClass.

use api::meta::{ErrorCode, RawExtension};
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

/// Version of the object.
const API_VERSION: &str = "aws.provider.extensions.gardener.cloud/v1alpha1";
/// Kind of the object.
const KIND: &str = "ProviderSpec";

/// The parameters of an instance, without name and user data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSpec {
    /// Group and version.
    pub api_version: String,
    /// `ProviderSpec`.
    pub kind: String,
    /// The cluster of the instance: the shoot's technical id.
    pub cluster: String,
    /// The region.
    pub region: String,
    /// The account with the network of the shoot, where the account is recorded.
    #[serde(default, rename = "accountID", skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The uid of the Shoot, for the tag of instances.
    #[serde(default, rename = "shootUID", skip_serializing_if = "Option::is_none")]
    pub shoot_uid: Option<String>,
    /// The image.
    pub ami: String,
    /// The size.
    pub machine_type: String,
    /// The subnet, and by the subnet the zone.
    #[serde(rename = "subnetID")]
    pub subnet_id: String,
    /// The security groups that allow traffic to the instance.
    #[serde(rename = "securityGroupIDs")]
    pub security_group_ids: Vec<String>,
    /// The first disk, where the disk differs from the first disk of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<RootVolume>,
}

/// The disk that an instance starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RootVolume {
    /// The size in GiB.
    #[serde(rename = "sizeGiB")]
    pub size_gib: u32,
    /// The volume type, such as `gp3`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Whether the disk is encrypted.
    #[serde(default)]
    pub encrypted: bool,
}

impl ProviderSpec {
    /// A spec of this cluster in this region. The caller sets the remaining fields.
    #[must_use]
    pub fn new(cluster: &str, region: &str) -> Self {
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            cluster: cluster.into(),
            region: region.into(),
            ..Self::default()
        }
    }

    /// Parses the `providerSpec` of a MachineClass. `class`: the name of the MachineClass, for messages.
    ///
    /// # Errors
    /// The `providerSpec` is invalid: the author of the MachineClass has to correct the field.
    pub fn from_class(class: &str, raw: &RawExtension) -> Result<Self> {
        let wrong = |why: String| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("providerSpec of MachineClass {class} cannot be used: {why}"),
            )
        };
        let spec: Self = raw.decode().map_err(|error| wrong(error.to_string()))?;
        if (spec.api_version.as_str(), spec.kind.as_str()) != (API_VERSION, KIND) {
            return Err(wrong(format!("it must be a {KIND} of {API_VERSION}")));
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let spec = ProviderSpec {
            ami: "ami-1".into(),
            subnet_id: "subnet-1".into(),
            root_volume: Some(RootVolume {
                size_gib: 50,
                type_: Some("gp3".into()),
                encrypted: true,
            }),
            ..ProviderSpec::new("shoot--dev--one", "eu-west-1")
        };
        let raw = RawExtension::encode(&spec).unwrap();
        assert_eq!(
            raw.0["rootVolume"],
            json!({"sizeGiB": 50, "type": "gp3", "encrypted": true})
        );
        assert_eq!(ProviderSpec::from_class("a", &raw).unwrap(), spec);
        let mut other = raw;
        other.0["kind"] = json!("Other");
        let error = ProviderSpec::from_class("a", &other).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(error.to_string().contains("MachineClass a "), "{error}");
    }
}
