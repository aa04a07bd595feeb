//! `ContainerRuntime`: a further way to run containers on a pool's nodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::derive::{CustomResource, Deserialize, JsonSchema, Serialize};

/// The wanted container runtime, and the nodes for the runtime.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "ContainerRuntime",
    namespaced,
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "cr",
    doc = "A further way to run containers on a pool's nodes.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRuntimeSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Folder for the binaries of the runtime on nodes.
    pub binary_path: String,
    /// Worker pool whose nodes get the container runtime.
    pub worker_pool: ContainerRuntimeWorkerPool,
}

/// The pool of a container runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRuntimeWorkerPool {
    /// Name of the worker pool that gets the runtime.
    pub name: String,
    /// Labels of the pool's nodes.
    pub selector: LabelSelector,
}

extension_object!(ContainerRuntime, default_status);
