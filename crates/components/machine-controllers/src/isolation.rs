//! An isolated zone gets no new machine (RZ-21). The Machines of the zone are drained. A Machine that failed,
//! was deleted or has an old template has no successor there. The Worker marks the template of the zone's
//! machines with a taint.

use api::machine::{MachineSpec, labels::ISOLATED_ZONE_TAINT};

/// Whether the machines of this template are in an isolated zone. Bounds and taints reach sets and Machines
/// without a replacement, so that the mark is at every level and travels with the objects.
pub fn is_isolated(spec: &MachineSpec) -> bool {
    let node = spec
        .node_template
        .as_ref()
        .and_then(|template| template.spec.as_ref());
    let mut taints = node.into_iter().flat_map(|node| node.taints.iter().flatten());
    taints.any(|taint| taint.key == ISOLATED_ZONE_TAINT)
}
