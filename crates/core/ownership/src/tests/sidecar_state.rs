//! The consequence of each report, for a process that guards an etcd.

use crate::sidecar_state::{SidecarAction, SidecarEvent, SidecarState, next_state};
use SidecarAction::{Seal, Serve, Stop, TerminateEtcd};

const HEARD: [SidecarEvent; 4] = [
    SidecarEvent::Owner,
    SidecarEvent::OwnerAnew,
    SidecarEvent::Unconfirmed,
    SidecarEvent::Lost,
];

/// R17-40, R17-41, R17-47..49, row by row.
#[test]
fn what_follows_from_what_was_heard() {
    let seal: &[SidecarAction] = &[Seal];
    let rows: [(SidecarState, SidecarEvent, SidecarState, &[SidecarAction]); 10] = [
        (
            SidecarState::Waiting,
            SidecarEvent::Lost,
            SidecarState::Sealed,
            seal,
        ),
        (
            SidecarState::Waiting,
            SidecarEvent::OwnerAnew,
            SidecarState::Serving,
            &[Serve],
        ),
        (
            SidecarState::Waiting,
            SidecarEvent::Unconfirmed,
            SidecarState::Waiting,
            &[],
        ),
        (
            SidecarState::Serving,
            SidecarEvent::Owner,
            SidecarState::Serving,
            &[],
        ),
        (
            SidecarState::Serving,
            SidecarEvent::OwnerAnew,
            SidecarState::Serving,
            &[Stop, Serve],
        ),
        (
            SidecarState::Serving,
            SidecarEvent::Unconfirmed,
            SidecarState::Suspended,
            &[Stop, TerminateEtcd],
        ),
        (
            SidecarState::Suspended,
            SidecarEvent::OwnerAnew,
            SidecarState::Serving,
            &[Serve],
        ),
        (
            SidecarState::Suspended,
            SidecarEvent::Unconfirmed,
            SidecarState::Suspended,
            &[],
        ),
        (
            SidecarState::Suspended,
            SidecarEvent::Lost,
            SidecarState::Sealed,
            seal,
        ),
        (
            SidecarState::Serving,
            SidecarEvent::Lost,
            SidecarState::Sealed,
            &[Stop, Seal],
        ),
    ];
    for (state, heard, to, duties) in rows {
        assert_eq!(
            next_state(state, heard),
            (to, duties),
            "{state:?} hears {heard:?}"
        );
    }
}

/// For every order of reports: a sealed guard never serves, no seal is repeated or comes without a loss, and
/// the gate is never opened twice or left open.
#[test]
fn no_order_of_answers_opens_what_was_sealed() {
    for sequence in 0..HEARD.len().pow(6) {
        let (mut state, mut left) = (SidecarState::Waiting, sequence);
        let (mut open, mut sealed, mut terminated, mut lost) = (false, false, false, false);
        for _ in 0..6 {
            let heard = HEARD[left % HEARD.len()];
            left /= HEARD.len();
            lost |= heard == SidecarEvent::Lost;
            let (to, duties) = next_state(state, heard);
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
                        // The seal ends with SIGTERM.
                        (sealed, terminated) = (true, true);
                    }
                }
            }
            assert_eq!(lost, sealed, "{sequence}");
            assert_eq!(open, to == SidecarState::Serving, "{sequence}");
            assert!(!served || open || terminated, "{sequence}: etcd was not told");
            assert_eq!(lost, to == SidecarState::Sealed, "{sequence}");
            state = to;
        }
    }
}
