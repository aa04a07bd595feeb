//! The assignment of controllers to managers, for controllers that several managers can run.

use crate::derive::{Deserialize, JsonSchema, Serialize};

/// A controller and the manager that is to run the controller (RK-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerLeader {
    /// Name of the controller, such as `node-ipam-controller`.
    pub name: MovableController,
    /// Manager process that runs the controller.
    pub component: ControllerManager,
}

/// Controllers that several managers can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MovableController {
    /// Assigns a range of pod addresses to each Node. Default manager: kube-controller-manager.
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
