//! Labels, annotations and finalizers of machine objects that several processes use.

/// Name of the MachineDeployment, on the sets and machines of the deployment, and in the selector.
pub const NAME: &str = "name";
/// Hash of the template of a set and its machines. Also in the selector of the set, so that no two sets of a
/// deployment select the same machine.
pub const TEMPLATE_HASH: &str = "machine-template-hash";
/// Name of a machine's Node.
pub const NODE: &str = "node";
/// Name of the pool.
pub const POOL: &str = "worker.gardener.cloud/pool";
/// Name of the zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Name of the region, on Nodes.
pub const REGION: &str = "topology.kubernetes.io/region";
/// On a machine that is to be deleted even if the node does not answer or cannot be drained.
pub const FORCE_DELETION: &str = "force-deletion";
/// Label and value of a Secret that a MachineClass refers to.
pub const PURPOSE: (&str, &str) = ("gardener.cloud/purpose", "machineclass");
/// Finalizer of the program that acts on machine objects: on each machine, and on classes and Secrets that a
/// machine needs.
pub const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";
/// Key of the taint that the Worker puts into the template of the machines of an isolated zone. A set with
/// the taint in the template creates no Machine, and a Machine with the taint gets no instance.
pub const ISOLATED_ZONE_TAINT: &str = "worker.gardener.cloud/isolated-zone";
/// Annotation of the Worker while a zone is isolated or is filled again: how many machines each pool had in
/// each zone before, as JSON. Part of the carried machine state.
pub const SIZES_BEFORE_ISOLATION: &str = "worker.gardener.cloud/sizes-before-isolation";
