//! The consequence of each report, for a process that guards an etcd.

use crate::guard::{Duty, Guard, Told, hear};
use Duty::{Seal, Serve, Stop, TerminateEtcd};

const HEARD: [Told; 4] = [Told::Owner, Told::OwnerAnew, Told::Unconfirmed, Told::Lost];

/// R17-40, R17-41, R17-47..49, row by row.
#[test]
fn what_follows_from_what_was_heard() {
    let seal: &[Duty] = &[Seal];
    let rows: [(Guard, Told, Guard, &[Duty]); 10] = [
        (Guard::Waiting, Told::Lost, Guard::Sealed, seal),
        (Guard::Waiting, Told::OwnerAnew, Guard::Serving, &[Serve]),
        (Guard::Waiting, Told::Unconfirmed, Guard::Waiting, &[]),
        (Guard::Serving, Told::Owner, Guard::Serving, &[]),
        (Guard::Serving, Told::OwnerAnew, Guard::Serving, &[Stop, Serve]),
        (
            Guard::Serving,
            Told::Unconfirmed,
            Guard::Suspended,
            &[Stop, TerminateEtcd],
        ),
        (Guard::Suspended, Told::OwnerAnew, Guard::Serving, &[Serve]),
        (Guard::Suspended, Told::Unconfirmed, Guard::Suspended, &[]),
        (Guard::Suspended, Told::Lost, Guard::Sealed, seal),
        (Guard::Serving, Told::Lost, Guard::Sealed, &[Stop, Seal]),
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
            lost |= heard == Told::Lost;
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
