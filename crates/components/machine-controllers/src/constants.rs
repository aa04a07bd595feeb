//! Names in objects. The names are the same as upstream, so that Machines can be moved from and to upstream.

/// Finalizer of a Machine until the instance is gone, and of sets, deployments and classes until no object
/// needs them.
pub const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";
/// Label of a Machine: the name of the Node.
pub const NODE: &str = "node";
/// Label of a Machine: with `True` the deletion does not wait for the pods.
pub const FORCE_DELETION: &str = "force-deletion";
/// Annotation of a Machine: a surplus is taken from the lowest. 3 unless given.
pub const PRIORITY: &str = "machinepriority.machine.sapcloud.io";
/// Label of a set and its Machines: the hash of the template.
pub const TEMPLATE_HASH: &str = "machine-template-hash";
/// Annotation of a Node: the entries that the template of the Machine has added.
pub const APPLIED: &str = "node.machine.sapcloud.io/last-applied-anno-labels-taints";
/// Taint with effect `PreferNoSchedule` of a Node whose Machine is about to be deleted.
pub const OUTGOING: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";
/// Annotation of a Node: with `true` the Machine of the Node is deleted.
pub const TRIGGER_DELETION: &str = "node.machine.sapcloud.io/trigger-deletion-by-mcm";
/// Annotation of a Node: with `true` the Node has no Machine on purpose, and is not reported.
pub const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";
/// Taint of a Node on which the critical components, which every pod needs, do not run yet.
pub const COMPONENTS_NOT_READY: &str = "node.gardener.cloud/critical-components-not-ready";
/// Annotation of a Node (`true`): the user states that the instance of the Node is off. Counts only where the
/// provider cannot say whether the instance runs.
pub const INSTANCE_OFF: &str = "worker.gardener.cloud/instance-off";
/// Taint of a Node whose instance is off: Kubernetes deletes the pods without the kubelet and detaches the
/// volumes.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Annotation of a Node with the taint [`OUT_OF_SERVICE`]: this controller has put the taint, on the report
/// of the `provider` or of the `user`.
pub const OUT_OF_SERVICE_BY: &str = "worker.gardener.cloud/out-of-service-by";
/// Annotation of a set: the ordinal number of the template within the deployment.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// Placeholder in user data: the bootstrap token.
pub const TOKEN_PLACEHOLDER: &str = "<<BOOTSTRAP_TOKEN>>";
/// Placeholder in user data: the name of the machine.
pub const NAME_PLACEHOLDER: &str = "<<MACHINE_NAME>>";
/// Conditions that make a Node unhealthy where the Machine names none.
pub const NODE_CONDITIONS: &str = "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable";
