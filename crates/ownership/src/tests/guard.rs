//! The consequence of each report, for a process that guards an etcd.

use crate::guard::{Duty, Guard, GuardEvent, hear};
use Duty::{Seal, Serve, Stop, TerminateEtcd};

const HEARD: [GuardEvent; 4] = [
    GuardEvent::Owner,
    GuardEvent::OwnerAnew,
    GuardEvent::Unconfirmed,
    GuardEvent::Lost,
];

/// R17-40, R17-41, R17-47..49, row by row.
#[test]
fn what_follows_from_what_was_heard() {
    let seal: &[Duty] = &[Seal];
    let rows: [(Guard, GuardEvent, Guard, &[Duty]); 10] = [
        (Guard::Waiting, GuardEvent::Lost, Guard::Sealed, seal),
        (Guard::Waiting, GuardEvent::OwnerAnew, Guard::Serving, &[Serve]),
        (Guard::Waiting, GuardEvent::Unconfirmed, Guard::Waiting, &[]),
        (Guard::Serving, GuardEvent::Owner, Guard::Serving, &[]),
        (
            Guard::Serving,
            GuardEvent::OwnerAnew,
            Guard::Serving,
            &[Stop, Serve],
        ),
        (
            Guard::Serving,
            GuardEvent::Unconfirmed,
            Guard::Suspended,
            &[Stop, TerminateEtcd],
        ),
        (Guard::Suspended, GuardEvent::OwnerAnew, Guard::Serving, &[Serve]),
        (Guard::Suspended, GuardEvent::Unconfirmed, Guard::Suspended, &[]),
        (Guard::Suspended, GuardEvent::Lost, Guard::Sealed, seal),
        (Guard::Serving, GuardEvent::Lost, Guard::Sealed, &[Stop, Seal]),
    ];
    for (state, heard, to, duties) in rows {
        assert_eq!(hear(state, heard), (to, duties), "{state:?} hears {heard:?}");
    }
}

/// For every order of reports: a sealed guard never serves, no seal is repeated or comes without a loss, and
/// the gate is never opened twice or left open.
#[test]
fn no_order_of_answers_opens_what_was_sealed() {
    for sequence in 0..HEARD.len().pow(6) {
        let (mut state, mut left) = (Guard::Waiting, sequence);
        let (mut open, mut sealed, mut terminated, mut lost) = (false, false, false, false);
        for _ in 0..6 {
            let heard = HEARD[left % HEARD.len()];
            left /= HEARD.len();
            lost |= heard == GuardEvent::Lost;
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
                        // The seal ends with SIGTERM.
                        (sealed, terminated) = (true, true);
                    }
                }
            }
            assert_eq!(lost, sealed, "{sequence}");
            assert_eq!(open, to == Guard::Serving, "{sequence}");
            assert!(!served || open || terminated, "{sequence}: etcd was not told");
            assert_eq!(lost, to == Guard::Sealed, "{sequence}");
            state = to;
        }
    }
}
