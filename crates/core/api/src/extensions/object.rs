//! The common fields of all extension kinds, and the trait by which generic code handles any kind (RX-10).

use std::fmt;

use serde::de::DeserializeOwned;

use crate::{
    derive::{
        Deserialize, JsonSchema, KubeSchema, PackedExtension, RawExtension, Serialize, skip_serializing_none,
    },
    meta::{Condition, LastError, LastOperation, NamedResourceReference, SecretReference},
};

/// The part of a specification that every extension kind has, flattened into the specification.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultSpec {
    /// Type of the responsible provider, e.g. `local`.
    pub type_: String,
    /// Kind of cluster that the object serves. Default: a shoot.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub class: Option<ExtensionClass>,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
}

/// Kind of cluster that an extension object serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExtensionClass {
    /// The garden cluster.
    Garden,
    /// A seed cluster.
    Seed,
    /// A shoot cluster.
    Shoot,
}

/// The part of a status that every extension kind has, flattened into the status.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultStatus {
    /// Output of the provider for other extensions.
    pub provider_status: Option<RawExtension>,
    /// Aspects of the object's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Error of the last operation.
    pub last_error: Option<LastError>,
    /// Type, state and progress of the last operation on the object.
    pub last_operation: Option<LastOperation>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// State that the provider needs on another seed, to find the same external objects again (RX-11).
    pub state: Option<RawExtension>,
    /// Objects in the same namespace that must be carried with the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}

/// Any extension kind.
pub trait ExtensionObject:
    kube::Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The shared part of the specification.
    fn default_spec(&self) -> &DefaultSpec;

    /// The shared part of the status, if there is a status.
    fn default_status(&self) -> Option<&DefaultStatus>;

    /// The shared part of the status; an empty status is put in if there is none.
    fn default_status_mut(&mut self) -> &mut DefaultStatus;

    /// The Secret with the credentials for the provider, where the kind has such a Secret.
    fn secret_ref(&self) -> Option<&SecretReference> {
        None
    }

    /// The purpose, where the kind has a purpose. Distinguishes objects of the kind with the same name in a
    /// `ShootState`.
    fn purpose(&self) -> Option<&str> {
        None
    }
}

/// Implements [`ExtensionObject`] for a kind whose specification flattens `DefaultSpec` as `default`.
/// `flat_status`: the status also flattens `DefaultStatus`; `default_status`: the status is a
/// `DefaultStatus`.
macro_rules! extension_object {
    ($kind:ty, flat_status $(, $($rest:tt)*)?) => {
        impl $crate::extensions::ExtensionObject for $kind {
            fn default_status(&self) -> Option<&$crate::extensions::DefaultStatus> {
                self.status.as_ref().map(|status| &status.default)
            }

            fn default_status_mut(&mut self) -> &mut $crate::extensions::DefaultStatus {
                &mut self.status.get_or_insert_default().default
            }

            $crate::extensions::object::extension_object!(@methods $($($rest)*)?);
        }
    };
    ($kind:ty, default_status $(, $($rest:tt)*)?) => {
        impl $crate::extensions::ExtensionObject for $kind {
            fn default_status(&self) -> Option<&$crate::extensions::DefaultStatus> {
                self.status.as_ref()
            }

            fn default_status_mut(&mut self) -> &mut $crate::extensions::DefaultStatus {
                self.status.get_or_insert_default()
            }

            $crate::extensions::object::extension_object!(@methods $($($rest)*)?);
        }
    };
    (@methods $($method:item)*) => {
        fn default_spec(&self) -> &$crate::extensions::DefaultSpec {
            &self.spec.default
        }

        $($method)*
    };
}
pub(crate) use extension_object;
