//! Names that stand in objects: they are upstream's, so that Machines may come from there and go there.

/// Kept by a Machine until its instance is gone, and by sets, deployments and classes until nothing needs them.
pub const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";
/// Label of a Machine: its Node's name.
pub const NODE: &str = "node";
/// Label of a Machine: with `True` its pods are not waited for.
pub const FORCE_DELETION: &str = "force-deletion";
/// Annotation of a Machine: a surplus is taken from the lowest. 3 unless given.
pub const PRIORITY: &str = "machinepriority.machine.sapcloud.io";
/// Label of a set and its Machines: which template they are from.
pub const TEMPLATE_HASH: &str = "machine-template-hash";
/// Annotation of a Node: what was put on it by the template of its Machine.
pub const APPLIED: &str = "node.machine.sapcloud.io/last-applied-anno-labels-taints";
/// Taint of a Node on which what every pod needs does not run yet.
pub const NOT_EQUIPPED: &str = "node.gardener.cloud/critical-components-not-ready";
/// Annotation of sets: the how manyeth template of the deployment they are.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// In what a machine runs at first: its token.
pub const TOKEN_PLACE: &str = "<<BOOTSTRAP_TOKEN>>";
/// In what a machine runs at first: its name.
pub const NAME_PLACE: &str = "<<MACHINE_NAME>>";
/// Conditions of a Node that make it unhealthy where the Machine names none.
pub const NODE_CONDITIONS: &str = "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable";
