//! The protocol of `docs/understand/ownership.md`, explored exhaustively: breadth-first, so that what is
//! found is found on the shortest way.
//!
//! Everything that may happen is an action, in any order: processes ask and hear answers whenever they like,
//! are stopped, woken and started anew; witnesses are silent to anybody at any time (a partition, a resolver
//! that fails); replicas and caches are behind; writes arrive late; clocks drift; seeds die, and others take
//! over. What decides is the crate's own code: answers go through `reply`, `saying`, `agreement` and
//! `judgement`, permits through `stance`, fences through `settings`, steps through `phase`, what is left at
//! witnesses through `marks`, and gates through `gates`. Only the world around them is written here.
//!
//! Bounds: three seeds, three epochs, two servers with one hidden replica each update; time in whole seconds,
//! V 1 or 2, H 1, P 0 or 1 (drift: V 9, one second in ten); one question of a process, one write to the
//! garden and one update of DNS under way at a time; one deletion of the record by a stranger; a hidden
//! replica with one of the two names of an update; the source asks the first server and all further seeds ask
//! the second; a hypervisor pauses the machine of a process of the source, and the host clock is read one
//! second after the pause. A permit is used in every moment in which it is good, and requests take all of H;
//! so there are no actions for writes and requests, and I1 and I3 say that none *could* be. Each scenario has
//! some processes in detail; others do what they may at any time. Copying is one step. Lost objects of a
//! bucket have a separate model (`etcd-backup-restore`, `copy/model.rs`). Not in it: servers that NS records
//! name, pauses beside different server lists, a pause of a machine whose process is stopped as well,
//! `Tolerate`, several etcd members, the two questions of one lookup at different times (`simulation` has
//! that), a late update that meets a zone in which both names were deleted, the time between the last look at
//! the clock and sending, hostile seeds.

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
mod holds;
mod machine;
mod scenario;
mod scenarios;
mod state;
mod step;
mod tell;
