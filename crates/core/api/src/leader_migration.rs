//! A move of controllers between two managers of a cluster (KEP-2436), as configured for the two managers.

use crate::derive::{Deserialize, JsonSchema, Serialize};

/// Controllers that run under the same lock, independent of the manager that holds the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderMigration {
    /// Name of the lock, a Lease in `kube-system` of the cluster.
    #[schemars(length(min = 1, max = 253))]
    pub leader_name: String,
    /// Controllers that move between managers, each with the manager.
    pub controller_leaders: Vec<ControllerLeader>,
}

/// A controller under the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerLeader {
    /// Name of the controller, such as `node-ipam-controller`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The manager that runs the controller, or `*` for any manager that takes part.
    #[schemars(length(min = 1, max = 253))]
    pub component: String,
}

impl LeaderMigration {
    /// The file for `--leader-migration-config` (RK-10). The file is for processes and never sent to an API
    /// server (RK-12).
    #[must_use]
    pub fn file(&self) -> String {
        let file = serde_json::json!({
            "apiVersion": "controllermanager.config.k8s.io/v1",
            "kind": "LeaderMigrationConfiguration",
            "leaderName": self.leader_name,
            "controllerLeaders": self.controller_leaders,
        });
        format!("{file:#}\n")
    }
}
