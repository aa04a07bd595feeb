//! What follows from what was heard of the ownership: a pure function.

use ownership::{Sealed, forwards};
use serde::Serialize;

/// How this process stands to its etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum State {
    /// Nobody has confirmed the seed since the process began: the gate is shut.
    #[default]
    Waiting,
    /// The seed owns the shoot: the gate is open and snapshots are taken.
    Serving,
    /// It was not confirmed for too long (R17-47): as before the first confirmation, and back with the next one (R17-48).
    Suspended,
    /// Lost (R17-49): the gate is shut for ever in this epoch.
    Sealed,
}

impl State {
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

/// What the watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It owns the shoot, under the permit that is in use.
    Owner,
    /// It owns the shoot, under another permit than the one in use, or none is in use.
    OwnerAnew,
    /// Not confirmed, or not any more.
    Unconfirmed,
    /// Lost.
    Lost,
}

/// What has to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Open the gate and take snapshots, under the new permit.
    Serve,
    /// Shut the gate, drop its connections and whatever snapshots are under way.
    Stop,
    /// SIGTERM to etcd: it cuts what did not come through the gate (R17-41).
    TerminateEtcd,
    /// Seal the epoch (`sealing`): what comes first in it is decided in the crate `ownership` (`Sealed::next`). SIGTERM to etcd comes
    /// last then, since the final snapshot needs etcd: nobody may be there to start it again, and who waits for the snapshot need
    /// not wait for that.
    Seal,
}

/// The next state, and the way there.
pub(super) fn hear(state: State, heard: Heard) -> (State, &'static [Duty]) {
    use Duty::{Seal, Serve, Stop, TerminateEtcd};
    let sealed = Sealed {
        marker: state == State::Sealed,
        ..Sealed::default()
    };
    let serves = forwards(sealed, matches!(heard, Heard::Owner | Heard::OwnerAnew));
    match (state, heard) {
        (State::Sealed, _) => (State::Sealed, &[]),
        (State::Serving, Heard::Lost) => (State::Sealed, &[Stop, Seal]),
        // An earlier process may have ended before it told etcd, and one that was told once loses nothing by being told again.
        (State::Waiting | State::Suspended, Heard::Lost) => (State::Sealed, &[Seal]),
        (State::Serving, Heard::Owner) if serves => (State::Serving, &[]),
        (State::Serving, _) if serves => (State::Serving, &[Stop, Serve]),
        (State::Waiting | State::Suspended, _) if serves => (State::Serving, &[Serve]),
        (State::Serving, _) => (State::Suspended, &[Stop, TerminateEtcd]),
        (State::Waiting | State::Suspended, _) => (state, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Duty::{Seal, Serve, Stop, TerminateEtcd};

    const HEARD: [Heard; 4] = [Heard::Owner, Heard::OwnerAnew, Heard::Unconfirmed, Heard::Lost];

    /// R17-40, R17-41, R17-47..49, row by row.
    #[test]
    fn what_follows_from_what_was_heard() {
        let seal: &[Duty] = &[Seal];
        let rows: [(State, Heard, State, &[Duty]); 10] = [
            (State::Waiting, Heard::Lost, State::Sealed, seal),
            (State::Waiting, Heard::OwnerAnew, State::Serving, &[Serve]),
            (State::Waiting, Heard::Unconfirmed, State::Waiting, &[]),
            (State::Serving, Heard::Owner, State::Serving, &[]),
            (State::Serving, Heard::OwnerAnew, State::Serving, &[Stop, Serve]),
            (
                State::Serving,
                Heard::Unconfirmed,
                State::Suspended,
                &[Stop, TerminateEtcd],
            ),
            (State::Suspended, Heard::OwnerAnew, State::Serving, &[Serve]),
            (State::Suspended, Heard::Unconfirmed, State::Suspended, &[]),
            (State::Suspended, Heard::Lost, State::Sealed, seal),
            (State::Serving, Heard::Lost, State::Sealed, &[Stop, Seal]),
        ];
        for (state, heard, to, duties) in rows {
            assert_eq!(hear(state, heard), (to, duties), "{state:?} hears {heard:?}");
        }
    }

    /// Whatever is heard in whatever order: what was sealed never serves, nothing is sealed twice or without a loss, and the gate is
    /// never opened twice or left open.
    #[test]
    fn no_order_of_answers_opens_what_was_sealed() {
        for sequence in 0..HEARD.len().pow(6) {
            let (mut state, mut left) = (State::Waiting, sequence);
            let (mut open, mut sealed, mut terminated, mut lost) = (false, false, false, false);
            for _ in 0..6 {
                let heard = HEARD[left % HEARD.len()];
                left /= HEARD.len();
                lost |= heard == Heard::Lost;
                let (to, duties) = hear(state, heard);
                let served = open;
                for duty in duties {
                    match duty {
                        Serve => {
                            assert!(!open && !lost, "{sequence}");
                            (open, terminated) = (true, false);
                        }
                        Stop => open = false,
                        TerminateEtcd => {
                            assert!(!open && !lost && !terminated, "{sequence}");
                            terminated = true;
                        }
                        Seal => {
                            assert!(!open && lost && !sealed, "{sequence}");
                            // Which ends with it.
                            (sealed, terminated) = (true, true);
                        }
                    }
                }
                assert_eq!(lost, sealed, "{sequence}");
                assert_eq!(open, to == State::Serving, "{sequence}");
                assert!(!served || open || terminated, "{sequence}: etcd was not told");
                assert_eq!(lost, to == State::Sealed, "{sequence}");
                state = to;
            }
        }
    }
}
