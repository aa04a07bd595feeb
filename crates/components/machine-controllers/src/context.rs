//! The inputs that the process passes to the controllers.

use std::{sync::Arc, time::Duration};

use runtime::{
    client::{Seed, Shoot, apply::FieldManager},
    controller::runner,
};

use crate::Driver;

/// The inputs that the process passes to the controllers.
#[derive(Clone)]
pub struct Context {
    /// The cluster that has the Machines.
    pub control: Seed,
    /// The namespace of the shoot's control plane. The controllers read no object of the seed outside this
    /// namespace.
    pub namespace: String,
    /// The cluster that has the Nodes.
    pub shoot: Shoot,
    /// The cloud.
    pub driver: Arc<dyn Driver>,
    /// Settings of the runner, with Events in `control`. Calls of the driver need the permit of these
    /// settings and the permit of `control`.
    pub settings: runner::Settings,
    /// The field manager of all writes.
    pub manager: FieldManager,
    /// Bounds of time. A process uses [`Timing::default`].
    pub timing: Timing,
}

/// Bounds of time for a Machine that sets no own bounds, and the number of machines that may be replaced at
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The longest time until the Node of a new machine is ready.
    pub creation: Duration,
    /// The longest time for which a Node may be unhealthy.
    pub health: Duration,
    /// The longest time for the pods to leave.
    pub drain: Duration,
    /// Time after which a Node that is not ready has lost its kubelet: the drain then stops waiting for the
    /// pods of this Node. Also the shortest silence of the shoot's API after which an instance of an isolated
    /// zone ends at the end of the zone's budget, and the longest refusal after the end of the budget.
    pub kubelet_is_gone: Duration,
    /// The longest time for which an instance is kept for volumes that stay attached to the Node after the
    /// pods have left.
    pub detach: Duration,
    /// The interval between two evictions of a pod, and between two checks of a machine that waits.
    pub poll_interval: Duration,
    /// Time between two listings of instances.
    pub orphans_every: Duration,
    /// Time for which a Node has no Machine before the Worker reports the Node. Longer than an instance takes
    /// from the start of the kubelet to the first write of the Node's ID. Nodes are checked five times as
    /// often.
    pub without_machine_for: Duration,
    /// The longest time of a call of the driver. Longer than a cloud takes to create an instance.
    pub driver_answers_within: Duration,
    /// Time between two questions to the provider whether an instance with a silent kubelet runs, or whether
    /// the provider has ended an instance that has no Node yet. The answer is not watched, and each question
    /// is a call of the cloud's API.
    pub power_every: Duration,
    /// Time without a clear answer after which the annotation of a user counts in the place of the answer.
    /// Longer than the time for two questions.
    pub power_unclear_for: Duration,
    /// The highest number of machines of a deployment that are replaced at a time because of their health.
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
            poll_interval: Duration::from_secs(10),
            orphans_every: Duration::from_secs(15 * 60),
            without_machine_for: Duration::from_secs(5 * 60),
            driver_answers_within: Duration::from_secs(5 * 60),
            power_every: Duration::from_secs(30),
            power_unclear_for: Duration::from_secs(60),
            replaced_at_once: 1,
        }
    }
}
