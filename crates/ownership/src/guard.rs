//! What the sidecar beside etcd does when it hears of the ownership: a pure function, which the simulation
//! runs as the sidecar does.

use crate::gates::{Sealed, forwards};
use crate::tenure::Standing;

/// How the sidecar stands to its etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Nobody has confirmed the seed since the process began: the gate is shut.
    #[default]
    Waiting,
    /// The seed owns the shoot: the gate is open and snapshots are taken.
    Serving,
    /// It was not confirmed for too long (R17-47): as before the first confirmation, and back with the next
    /// one (R17-48).
    Suspended,
    /// Lost (R17-49): the gate is shut for ever in this epoch.
    Sealed,
}

impl Guard {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Serving, Self::Suspended, Self::Sealed];

    /// As it is written in answers and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Serving => "Serving",
            Self::Suspended => "Suspended",
            Self::Sealed => "Sealed",
        }
    }
}

/// What the watch tells, to who has a permit in use, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It owns the shoot, under the permit that is in use.
    Owner,
    /// It owns the shoot, under another permit than the one in use, or none is in use.
    OwnerAnew,
    /// Not confirmed, or not any more.
    Unconfirmed,
    /// Lost.
    Lost,
}

impl Told {
    /// What a report means beside what is done already. `serves`: under a permit that is still valid. What
    /// has ended stays so: one that is valid is the one that was told.
    #[must_use]
    pub fn of(standing: &Standing, serves: bool) -> Self {
        match standing {
            Standing::Lost(_) => Self::Lost,
            Standing::Unconfirmed => Self::Unconfirmed,
            // Its time is over, and the watch has not said so yet.
            Standing::Owner(permit) if !permit.is_valid() => Self::Unconfirmed,
            Standing::Owner(_) if serves => Self::Owner,
            Standing::Owner(_) => Self::OwnerAnew,
        }
    }
}

/// What has to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Open the gate and take snapshots, under the new permit.
    Serve,
    /// Shut the gate, drop its connections and whatever snapshots are under way.
    Stop,
    /// SIGTERM to etcd: it cuts what did not come through the gate (R17-41).
    TerminateEtcd,
    /// Seal the epoch: what comes first in it is decided by [`Sealed::next`]. SIGTERM to etcd comes last
    /// then, since the final snapshot needs etcd: nobody may be there to start it again, and who waits for
    /// the snapshot need not wait for that.
    Seal,
}

/// The next state, and the way there.
#[must_use]
pub fn hear(state: Guard, heard: Told) -> (Guard, &'static [Duty]) {
    use Duty::{Seal, Serve, Stop, TerminateEtcd};
    let sealed = Sealed {
        marker: state == Guard::Sealed,
        ..Sealed::default()
    };
    let serves = forwards(sealed, matches!(heard, Told::Owner | Told::OwnerAnew));
    match (state, heard) {
        (Guard::Sealed, _) => (Guard::Sealed, &[]),
        (Guard::Serving, Told::Lost) => (Guard::Sealed, &[Stop, Seal]),
        // An earlier process may have ended before it told etcd, and one that was told once loses nothing by
        // being told again.
        (Guard::Waiting | Guard::Suspended, Told::Lost) => (Guard::Sealed, &[Seal]),
        (Guard::Serving, Told::Owner) if serves => (Guard::Serving, &[]),
        (Guard::Serving, _) if serves => (Guard::Serving, &[Stop, Serve]),
        (Guard::Waiting | Guard::Suspended, _) if serves => (Guard::Serving, &[Serve]),
        (Guard::Serving, _) => (Guard::Suspended, &[Stop, TerminateEtcd]),
        (Guard::Waiting | Guard::Suspended, _) => (state, &[]),
    }
}
