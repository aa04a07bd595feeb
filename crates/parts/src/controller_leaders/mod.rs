//! Which manager runs node IPAM: `spec.kubernetes.controllerLeaders` of the Shoot, carried out by leader
//! migration (KEP-2436).
//!
//! Promise: while the two managers hand it over, never both and hardly ever none of them runs it, and each
//! stage may last for as long as it likes. Nothing is remembered: where on the way a shoot is shows in what
//! its managers were told, so that a gardenlet that is killed, and a user who changes their mind half-way, go
//! on from there.

mod hand_over;
mod node_ipam;
mod rights;
mod stage;

pub use hand_over::ControllerLeaders;
pub(crate) use node_ipam::{
    CONFIG, FILE, check, current_stage, deploy_migration_config, has_room_for_nodes, told,
};
pub use rights::deploy_cloud_controller_manager_rights;
pub use stage::Stage;
pub(crate) use stage::{ENABLE, Home, WITHOUT_NODE_IPAM};
