//! Which manager runs a controller that more than one can run.

use crate::derive::{Deserialize, JsonSchema, Serialize};

/// One controller and the manager that is to run it (RK-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerLeader {
    /// Name of the controller, such as `node-ipam-controller`.
    pub name: MovableController,
    /// Manager process that runs the controller.
    pub component: ControllerManager,
}

/// Controllers that more than one manager can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MovableController {
    /// Gives each Node its range of pod addresses. The kube-controller-manager runs it unless something else
    /// is said.
    #[serde(rename = "node-ipam-controller")]
    NodeIpam,
}

/// Managers of a shoot's controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerManager {
    /// Kubernetes' own.
    #[default]
    KubeControllerManager,
    /// The cloud provider's.
    CloudControllerManager,
}
