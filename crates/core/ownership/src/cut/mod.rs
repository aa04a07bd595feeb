//! The cut of a live move: the decisions of the source, the destination and both gates, as pure functions
//! (docs/understand/decisions/0047). No process calls these functions yet, except the model.
//!
//! In a live move the destination *follows*: the destination copies every revision of the source's etcd while
//! the source serves. At the *cut* the source holds all requests, proves that the destination has the same
//! data, and marks this end beside its data. Then the source sends a single write to the garden, the
//! *record*, and the destination serves from the recorded revision on. Each try has a number, the *attempt*.
//!
//! | file | purpose |
//! |---|---|
//! | `record` | the steps in the garden: passing, the record, giving up, cancellation |
//! | `source` | the order of the cut, the marks of the source, and when the source opens again |
//! | `destination` | when the destination follows, opens etcd and has a permit |
//! | `forwarding` | the route of a request through both gates |
//!
//! `model` explores the cut exhaustively, and switches each rule off in turn.

mod destination;
mod forwarding;
mod record;
mod source;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use destination::{FollowProof, FollowedWait, may_follow, may_open_live, record_testimony};
pub use forwarding::{GateRoute, destination_route, forwarded_epoch, source_route};
pub use record::{FollowedEnd, HistoryDigest, LiveOwnership, SealedAttempt};
pub use source::{
    AttemptMarks, BucketMark, CutProgress, CutStep, CutWait, SourceMark, is_given_up, may_begin_cut,
    may_open_source,
};
