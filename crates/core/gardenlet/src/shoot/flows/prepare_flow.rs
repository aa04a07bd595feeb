//! The order in which a seed prepares for a shoot that a different seed serves (role `Incoming` with a
//! grant).
//!
//! The source serves, so no task starts a second writer: the flow starts no etcd, and changes no external
//! system. This version prepares the namespace and the Secrets of an API server. The controller also waits
//! for the BackupEntry of the preparation: no task changes the entry. A live move, which needs more parts,
//! does not exist yet.

use std::time::Duration;

use parts::{Namespace, PreparationFacts, PreparationState};

use super::graph::{ShootFlow, Steps, graph, when};

/// Time for all attempts of a task. The controller runs the flow again, and reports each failure.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// The parts of a control plane that this version cannot prepare, for the report of the seed.
pub const MISSING_PARTS: &str = "etcd, tunnel, API server, scheduler, controllers, edge";

/// Builds the flow. Before the source has made the keys (`has_keys`), the flow prepares the namespace alone.
#[must_use]
pub fn build(p: &PreparationFacts, has_keys: bool) -> ShootFlow<'_> {
    let mut g = graph("Shoot cluster preparation in the destination", RETRY_LIMIT);
    let namespace = g.step(Namespace::PREPARE, p, []);
    when(&mut g, has_keys).step(PreparationState::DEPLOY, p, [namespace]);
    g.compile()
}
