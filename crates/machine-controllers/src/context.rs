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
    /// What the runner needs; its Events are in `control`. Calls of the driver go through its permit and that
    /// of `control`.
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
    /// How long a Node is not ready until nobody waits any more for its pods to end: their kubelet does not
    /// answer. Also the shortest silence of the shoot's API that lets an instance of an isolated zone end at
    /// the end of the zone's budget.
    pub kubelet_is_gone: Duration,
    /// How long an instance is kept for volumes that are attached to its Node although its pods have left.
    pub detach: Duration,
    /// How often a pod is asked again to leave, and a machine that is judged is looked at.
    pub look_every: Duration,
    /// Time between two listings of instances.
    pub orphans_every: Duration,
    /// How long a Node has no Machine before the Worker reports the Node. Longer than an instance takes from
    /// the start of its kubelet to the first write of its ID. Nodes are checked five times as often.
    pub without_machine_for: Duration,
    /// How long one call of the driver may take. Longer than a cloud takes to create an instance.
    pub driver_answers_within: Duration,
    /// Time between two questions to the provider whether an instance with a silent kubelet runs, or whether
    /// the provider has ended an instance that has no Node yet. The answer is not watched, and each question
    /// is a call of the cloud's API.
    pub power_every: Duration,
    /// How long no clear answer may come before the annotation of a user counts in the place of the answer.
    /// Longer than two questions.
    pub power_unclear_for: Duration,
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
            detach: Duration::from_secs(2 * 60),
            look_every: Duration::from_secs(10),
            orphans_every: Duration::from_secs(15 * 60),
            without_machine_for: Duration::from_secs(5 * 60),
            driver_answers_within: Duration::from_secs(5 * 60),
            power_every: Duration::from_secs(30),
            power_unclear_for: Duration::from_secs(60),
            replaced_at_once: 1,
        }
    }
}
