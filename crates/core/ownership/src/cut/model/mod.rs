//! The cut of a live move, explored exhaustively and breadth-first, so that each finding has the shortest
//! path.
//!
//! Source A and destination B, a garden, DNS with a single value, both buckets, and a client with at most two
//! writes. Each possible event is an action, in any order. The decisions are the functions of the crate:
//! `cut`, `phase`, `marks`, `gates`, `claim_state`, `judgement` and `settings`. Only their environment is
//! written here.
//!
//! A client observes all revisions of an etcd whose streams are open. So two histories show as a revision
//! with two contents, and a lost write as a revision that is missing.
//!
//! The permit of A is valid for as long as A likes: only the marks stop A. The permits of B and of the gate
//! of A that forwards count seconds in the timed scenarios, where a third seed takes over from B.
//!
//! From each state, healthy processes must reach a state in which a seed serves and no request waits. Links
//! heal for that; dead seeds stay dead, and the garden grants the next epoch.
//!
//! Not modelled: DNS with several servers, the claims of a takeover before the record, actuators (`model` of
//! this crate has all three), compaction, bounds of the hold, several members of etcd, hostile seeds, and the
//! loss of both seeds' data.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::struct_excessive_bools
)]

mod actions;
mod breaks;
mod effects;
mod explore;
mod history;
mod invariants;
mod proofs;
mod rules;
mod scenarios;
mod sides;
mod state;
mod steps;
