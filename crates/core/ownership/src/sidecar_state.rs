//! The state of the sidecar beside etcd, and the actions that follow from a report of the ownership check. A
//! pure function, which the sidecar and the simulation run.

use crate::gates::{SealProgress, forwards};
use crate::tracker::Standing;

/// The state of the sidecar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SidecarState {
    /// No witness has confirmed the seed since the process began: the gate is shut.
    #[default]
    Waiting,
    /// The seed owns the shoot: the gate is open and snapshots are taken.
    Serving,
    /// The seed was not confirmed for too long (R17-47). The same as before the first confirmation; the next
    /// confirmation resumes the service (R17-48).
    Suspended,
    /// Lost (R17-49): the gate is shut for ever in this epoch.
    Sealed,
}

impl SidecarState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Serving, Self::Suspended, Self::Sealed];

    /// The state as written in responses and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Serving => "Serving",
            Self::Suspended => "Suspended",
            Self::Sealed => "Sealed",
        }
    }
}

/// The report of the watch, relative to the permit that the sidecar uses, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecarEvent {
    /// The seed owns the shoot, under the permit that is in use.
    Owner,
    /// The seed owns the shoot under a new permit: the permit in use differs, or none is in use.
    OwnerAnew,
    /// Not confirmed, or not any more.
    Unconfirmed,
    /// Lost.
    Lost,
}

impl SidecarEvent {
    /// Classifies a report. `serves`: the sidecar serves under a permit that is still valid. An ended permit
    /// is never revived, so a valid permit in use is the permit of the report.
    #[must_use]
    pub fn from_standing(standing: &Standing, serves: bool) -> Self {
        match standing {
            Standing::Lost(_) => Self::Lost,
            Standing::Unconfirmed => Self::Unconfirmed,
            // The permit has expired, and the watch has not reported that yet.
            Standing::Owner(permit) if !permit.is_valid() => Self::Unconfirmed,
            Standing::Owner(_) if serves => Self::Owner,
            Standing::Owner(_) => Self::OwnerAnew,
        }
    }
}

/// The actions to take, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecarAction {
    /// Open the gate and take snapshots, under the new permit.
    Serve,
    /// Shut the gate; drop the gate's connections and the snapshots under way.
    Stop,
    /// SIGTERM to etcd: ends the connections that did not come through the gate (R17-41).
    TerminateEtcd,
    /// Seal the epoch; [`SealProgress::next_step`] gives the order of the steps. SIGTERM to etcd comes after
    /// these steps, since the final snapshot needs etcd: after a SIGTERM there may be no kubelet to start
    /// etcd again. The processes that wait for the snapshot need not wait for such a restart.
    Seal,
}

/// The next state, and the actions before the sidecar has that state.
#[must_use]
pub fn next_state(state: SidecarState, event: SidecarEvent) -> (SidecarState, &'static [SidecarAction]) {
    use SidecarAction::{Seal, Serve, Stop, TerminateEtcd};
    let sealed = SealProgress {
        marker: state == SidecarState::Sealed,
        ..SealProgress::default()
    };
    let serves = forwards(
        sealed,
        matches!(event, SidecarEvent::Owner | SidecarEvent::OwnerAnew),
    );
    match (state, event) {
        (SidecarState::Sealed, _) => (SidecarState::Sealed, &[]),
        (SidecarState::Serving, SidecarEvent::Lost) => (SidecarState::Sealed, &[Stop, Seal]),
        // An earlier process may have ended before its SIGTERM reached etcd. A second SIGTERM does no harm.
        (SidecarState::Waiting | SidecarState::Suspended, SidecarEvent::Lost) => {
            (SidecarState::Sealed, &[Seal])
        }
        (SidecarState::Serving, SidecarEvent::Owner) if serves => (SidecarState::Serving, &[]),
        (SidecarState::Serving, _) if serves => (SidecarState::Serving, &[Stop, Serve]),
        (SidecarState::Waiting | SidecarState::Suspended, _) if serves => (SidecarState::Serving, &[Serve]),
        (SidecarState::Serving, _) => (SidecarState::Suspended, &[Stop, TerminateEtcd]),
        (SidecarState::Waiting | SidecarState::Suspended, _) => (state, &[]),
    }
}
