//! The protocol of `docs/understand/ownership.md`, explored exhaustively and breadth-first, so that each
//! finding has the shortest path.
//!
//! Each possible event is an action, in any order: processes ask and receive answers at any time, are
//! stopped, woken and restarted. Witnesses are silent at any time to any process (a partition, a failing
//! resolver). Replicas and caches are behind, writes arrive late, clocks drift, seeds die, and other seeds
//! take over. The crate's own code decides: answers go through `reply`, `record_verdict`, `dns_verdict` and
//! `judgement`, permits through `claim_state`, fences through `settings`. Steps go through `phase`, marks at
//! witnesses through `marks`, and gates through `gates`. Only the environment of that code is written here.
//!
//! Bounds:
//! - Three seeds, three epochs, two servers with a hidden replica for each update.
//! - Time in whole seconds: V 1 or 2, H 1, P 0 or 1 (drift: V 9, one second in ten).
//! - At most one question of each process, one write to the garden and one update of DNS under way at a time.
//! - A stranger deletes the record once. A hidden replica has one of the two names of an update.
//! - The source asks the first server and all other seeds ask the second.
//! - A hypervisor pauses the machine of a process of the source, and the host clock is read one second after
//!   the pause.
//!
//! A permit is used in every moment of validity, and requests take all of H. So there are no actions for
//! writes and requests, and I1 and I3 state that a conflicting write or request is *impossible*. Each
//! scenario models some processes in detail; the remaining processes take permitted actions at any time.
//! Copying is a single step. Lost objects of a bucket have a separate model (`etcd-backup-restore`,
//! `copy/model.rs`).
//!
//! Not modelled: servers that NS records name, pauses beside different server lists, a pause of a machine
//! with a stopped process, `Tolerate`, several etcd members. Also not modelled: the two questions of a lookup
//! at different times (`simulation` covers that), and a late update in a zone without both names. The time
//! between the last clock reading and sending, and hostile seeds, are not modelled either.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    clippy::struct_excessive_bools
)]

mod action;
mod ask;
mod breaks;
mod check;
mod forged;
mod invariants;
mod machine;
mod scenario;
mod scenarios;
mod state;
mod step;
mod tell;
