//! Selects the manager that runs node IPAM: `spec.kubernetes.controllerLeaders` of the Shoot, carried out by
//! leader migration (KEP-2436).
//!
//! Promise: during the migration the two managers never run node IPAM at the same time. There is hardly ever
//! a moment without a manager that runs node IPAM. Each stage may last for any time. The stage is not stored:
//! the configuration of the managers shows the stage of a shoot. So a killed gardenlet, and a user who
//! changes the Shoot half-way, continue from that stage.

mod hand_over;
mod node_ipam;
mod rights;
mod stage;

pub use hand_over::ControllerLeaders;
pub(crate) use node_ipam::{
    CONFIG, FILE, check, configure_guest, current_stage, deploy_migration_config, has_room_for_nodes,
};
pub use rights::deploy_cloud_controller_manager_rights;
pub use stage::Stage;
pub(crate) use stage::{ENABLE, Home, WITHOUT_NODE_IPAM};
