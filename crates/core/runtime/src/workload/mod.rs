//! Workloads that a process creates: Deployments of control planes, the rollout of a Deployment, environment
//! variables of pods, and objects that the resource-manager applies.

mod deployment;
pub mod manifests;
pub mod rollout;
mod variable;

pub use deployment::{
    Files, Health, MOUNTS, NON_ROOT, Workload, container_security, labels, mounted, pod_security, selected,
};
pub use variable::Variable;
