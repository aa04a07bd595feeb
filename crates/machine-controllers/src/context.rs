//! What the controllers are given by their process.

use std::{sync::Arc, time::Duration};

use runtime::{Seed, Shoot, apply::FieldManager, runner};

use crate::Driver;

/// What the controllers are given by their process.
#[derive(Clone)]
pub struct Context {
    /// The cluster that has the Machines.
    pub control: Seed,
    /// The namespace of the shoot's control plane: nothing outside of it is looked at.
    pub namespace: String,
    /// The cluster that has the Nodes.
    pub shoot: Shoot,
    /// The cloud.
    pub driver: Arc<dyn Driver>,
    /// What the runner needs; its Events are in `control`. Calls of the driver go through its permit and that of `control`.
    pub settings: runner::Settings,
    /// Who writes.
    pub manager: FieldManager,
    /// Bounds; [`Timing::default`] is what a process takes.
    pub timing: Timing,
}

/// Bounds of time, where a Machine does not say otherwise, and how many machines may be on their way at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a machine may take until its Node is ready.
    pub creation: Duration,
    /// How long a Node may be unhealthy.
    pub health: Duration,
    /// How long pods may take to leave.
    pub drain: Duration,
    /// How long a Node is not ready until nobody waits any more for its pods to end: their kubelet does not answer.
    pub kubelet_is_gone: Duration,
    /// How often a pod is asked again to leave, and a machine that is judged is looked at.
    pub look_every: Duration,
    /// Time between two listings of instances.
    pub orphans_every: Duration,
    /// How long one call of the driver may take. Longer than a cloud takes to create an instance.
    pub driver_answers_within: Duration,
    /// Most machines of one deployment that are replaced at a time because they are unhealthy.
    pub replaced_at_once: usize,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            creation: Duration::from_secs(20 * 60),
            health: Duration::from_secs(10 * 60),
            drain: Duration::from_secs(2 * 60 * 60),
            kubelet_is_gone: Duration::from_secs(5 * 60),
            look_every: Duration::from_secs(10),
            orphans_every: Duration::from_secs(15 * 60),
            driver_answers_within: Duration::from_secs(5 * 60),
            replaced_at_once: 1,
        }
    }
}
