//! `Project`: a namespace `garden-<project>` with members.

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, Time, skip_serializing_none},
    meta::Condition,
};

/// Members and namespace of a project.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "Project",
    status = "ProjectStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A namespace with members, in which shoots are made.",
    selectable = ".spec.namespace",
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner.name"),
    printcolumn(name = "Creator", type_ = "string", json_path = ".spec.createdBy.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = ("self.metadata.name.size() <= 10", "the name of a project may have 10 characters at most"),
    validation = (
        "!self.metadata.name.contains('--')",
        "the name of a project may not contain two hyphens in a row"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(oldSelf.namespace) || has(self.namespace)", "namespace cannot be removed"))]
pub struct ProjectSpec {
    /// User who created the project.
    pub created_by: Option<Subject>,
    /// Description of the project for people.
    pub description: Option<String>,
    /// User or group that is responsible for the project, for people. Rights come from RoleBindings alone.
    pub owner: Option<Subject>,
    /// Purpose of the project for people.
    pub purpose: Option<String>,
    /// Users, groups and service accounts with roles in the project. Has no effect: RoleBindings in the
    /// namespace of the project give rights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<ProjectMember>,
    /// Namespace of the project. Default: `garden-<name>`.
    #[schemars(length(max = 63))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub namespace: Option<String>,
    /// Taints of seeds that the project's shoots tolerate.
    pub tolerations: Option<ProjectTolerations>,
    /// Resources for whose deletion a second person has to agree. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dual_approval_for_deletion: Vec<DualApprovalForDeletion>,
}

/// A user, group or service account.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// API group of `kind`. Absent for a ServiceAccount.
    pub api_group: Option<String>,
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Name of the user, group or service account.
    pub name: String,
    /// The namespace of a service account.
    pub namespace: Option<String>,
}

/// A member and the roles of the member.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectMember {
    /// API group of `kind`. Absent for a ServiceAccount.
    pub api_group: Option<String>,
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Name of the user, group or service account.
    pub name: String,
    /// The namespace of a service account.
    pub namespace: Option<String>,
    /// First role of the member, such as `admin` or `viewer`.
    pub role: Option<String>,
    /// Further roles of the member, such as `uam`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// Tolerations for shoots of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectTolerations {
    /// Tolerations for every new shoot of the project. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<Toleration>,
    /// Tolerations that shoots of the project may have, by key, or by key and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whitelist: Vec<Toleration>,
}

/// Tolerates a taint of a seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Toleration {
    /// Key of the taint that is tolerated.
    pub key: String,
    /// Value of the taint that is tolerated. Absent for every value.
    pub value: Option<String>,
}

/// A resource whose deletion needs a second person.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DualApprovalForDeletion {
    /// The resource, e.g. `shoots`.
    pub resource: String,
    /// Selector of the objects of the resource.
    pub selector: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    /// Whether the rule also applies to service accounts. Has no effect.
    pub include_service_accounts: Option<bool>,
}

/// Observed state of the project.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectStatus {
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Phase of the project: whether the namespace exists, failed, or is being deleted.
    pub phase: Option<ProjectPhase>,
    /// Time since when the project is unused. Never set.
    pub stale_since_timestamp: Option<Time>,
    /// Time at which the unused project will be deleted. Never set.
    pub stale_auto_delete_timestamp: Option<Time>,
    /// Time of the last use of the project. Never set.
    pub last_activity_timestamp: Option<Time>,
    /// Conditions of the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Phase of the project: whether the namespace exists, failed, or is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProjectPhase {
    /// The namespace is being created.
    Pending,
    /// The project can be used.
    Ready,
    /// The namespace could not be created.
    Failed,
    /// The project is being deleted.
    Terminating,
}
