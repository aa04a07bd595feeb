//! Names that stand in objects: they are upstream's, so that Machines may come from there and go there.

/// Kept by a Machine until its instance is gone, and by sets, deployments and classes until nothing needs
/// them.
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
/// Taint with effect `PreferNoSchedule` of a Node whose Machine is about to be deleted.
pub const OUTGOING: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";
/// Annotation of a Node: with `true` the Machine of the Node is deleted.
pub const TRIGGER_DELETION: &str = "node.machine.sapcloud.io/trigger-deletion-by-mcm";
/// Annotation of a Node: with `true` the Node has no Machine on purpose, and is not reported.
pub const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";
/// Taint of a Node on which what every pod needs does not run yet.
pub const NOT_EQUIPPED: &str = "node.gardener.cloud/critical-components-not-ready";
/// Annotation of a Node (`true`): the user states that the instance of the Node is off. Counts only where the
/// provider cannot say whether the instance runs.
pub const INSTANCE_OFF: &str = "worker.gardener.cloud/instance-off";
/// Taint of a Node whose instance is off: Kubernetes deletes the pods without the kubelet and detaches their
/// volumes.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Annotation of a Node with the taint [`OUT_OF_SERVICE`]: this controller has put the taint, on the report
/// of the `provider` or of the `user`.
pub const OUT_OF_SERVICE_BY: &str = "worker.gardener.cloud/out-of-service-by";
/// Annotation of sets: the how manyeth template of the deployment they are.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// In what a machine runs at first: its token.
pub const TOKEN_PLACE: &str = "<<BOOTSTRAP_TOKEN>>";
/// In what a machine runs at first: its name.
pub const NAME_PLACE: &str = "<<MACHINE_NAME>>";
/// Conditions of a Node that make it unhealthy where the Machine names none.
pub const NODE_CONDITIONS: &str = "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable";
