//! Common imports of all files with types: the derives and the few types that appear in nearly every file.

pub(crate) use std::collections::BTreeMap;

pub(crate) use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
pub(crate) use kube::{CustomResource, KubeSchema};
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_with_macros::skip_serializing_none;

pub(crate) use crate::meta::{PackedExtension, RawExtension};

/// Signs of a free text of a tenant that processes repeat in messages: no control characters.
pub(crate) const PRINTABLE: &str = "^[ -~]*$";
