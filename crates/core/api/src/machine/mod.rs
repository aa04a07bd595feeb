//! `machine.sapcloud.io/v1alpha1`: machines of shoots, served by seeds.

pub mod labels;
mod machine_class;
mod machine_deployment;
mod machine_kind;
mod machine_set;
pub mod state;
mod template;

pub use machine_class::{MachineClass, MachineClassFields, MachineClassNodeTemplate};
pub use machine_deployment::{
    InPlaceUpdateMachineDeployment, MachineDeployment, MachineDeploymentCondition, MachineDeploymentSpec,
    MachineDeploymentStatus, MachineDeploymentStrategy, RollbackConfig, RollingUpdateMachineDeployment,
};
pub use machine_kind::{CurrentStatus, Machine, MachineSpec, MachineStatus, MachineTemplateSpec};
pub use machine_set::{MachineSet, MachineSetCondition, MachineSetSpec, MachineSetStatus};
pub use template::{ClassSpec, FailedMachine, MachineLastOperation, NodeTemplateSpec};
