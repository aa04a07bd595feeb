//! The transactions that are under way at the local etcd. Pure: no client and no clock.
//!
//! A revision takes a sync of etcd's disk. Syncs of concurrent transactions are shared, so a window of
//! transactions is under way. etcd handles each request of a connection in its own goroutine and applies
//! concurrent requests in any order. Each transaction therefore has conditions that hold only right before
//! its revision, and a transaction that comes too early changes nothing.
//!
//! Where a transaction comes too early, all later transactions would fail too. So a transaction also holds
//! the revisions right before its own revision, as alternatives, and applies the revision that is next.
//!
//! The conditions are exact under two rules, which [`Window::next`] keeps:
//! - A revision that deletes a key is not sent while the transaction that creates the key is under way.
//! - A revision without a trace is under way alone.

use super::requests::{Part, next_of, operations};
use super::traces::{Creations, Traces};
use crate::etcd::messages::{RequestOp, TxnRequest};
use crate::revisions::Change;
use mutation::Mutation;
use prost::Message;
use std::collections::{BTreeMap, VecDeque};

/// The bounds of a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowLimits {
    /// Transactions under way.
    pub transactions: usize,
    /// Earlier revisions that a transaction holds besides its own revision.
    pub alternatives: usize,
    /// Bytes of all revisions in a transaction that holds more than its own revision.
    pub transaction_bytes: usize,
    /// Bytes of all revisions that are held. A larger revision is held alone.
    pub bytes: usize,
}

/// Operations and conditions of a transaction that holds alternatives: below etcd's default of
/// `--max-txn-ops`, 128.
const WEIGHT: usize = 100;
/// Revisions that are held for each transaction that may be under way.
const HELD: usize = 4;

/// A revision that etcd may not have.
struct Held {
    number: i64,
    operations: Vec<RequestOp>,
    traces: Traces,
    bytes: usize,
    /// Whether the transaction of this revision is under way.
    is_sent: bool,
}

/// The revisions of a transaction that is under way.
struct Sent {
    low: i64,
    high: i64,
}

/// Why the local etcd cannot follow any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Divergence {
    /// A revision could not be applied although the revision before was reached.
    Refused(i64),
    /// etcd is at a revision that was never sent.
    Foreign(i64),
}

/// The window.
pub(super) struct Window {
    limits: WindowLimits,
    /// The local etcd has reached this revision at least.
    reached: i64,
    /// The highest revision that was sent.
    highest: i64,
    held: VecDeque<Held>,
    bytes: usize,
    creations: Creations,
    sent: BTreeMap<u64, Sent>,
    next_id: u64,
}

impl Window {
    /// A window on an etcd at a revision.
    pub(super) fn new(reached: i64, limits: WindowLimits) -> Self {
        Self {
            limits,
            reached,
            highest: reached,
            held: VecDeque::new(),
            bytes: 0,
            creations: Creations::default(),
            sent: BTreeMap::new(),
            next_id: 0,
        }
    }

    /// Whether a further revision may be added.
    pub(super) fn has_room(&self) -> bool {
        self.held.is_empty()
            || (self.held.len() < HELD * self.limits.transactions && self.bytes < self.limits.bytes)
    }

    /// Whether etcd has all revisions, and no transaction is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.sent.is_empty()
    }

    /// Adds the next revision.
    pub(super) fn push(&mut self, number: i64, changes: &[Change]) {
        let traces = Traces::find(number, changes, &mut self.creations);
        let operations = operations(changes);
        let bytes = operations.iter().map(Message::encoded_len).sum();
        self.bytes += bytes;
        self.held.push_back(Held {
            number,
            operations,
            traces,
            bytes,
            is_sent: false,
        });
    }

    /// The next transaction to send, with a number for [`Self::answered`].
    pub(super) fn next(&mut self) -> Option<(u64, TxnRequest)> {
        if self.sent.len() >= self.limits.transactions {
            return None;
        }
        let place = self.next_place()?;
        let first = self.first_alternative(place);
        // In the usual order the conditions of the own revision hold, and etcd evaluates no others.
        let parts = (first..=place).rev().filter_map(|place| self.part(place));
        let request = next_of(parts);
        let low = self.held.get(first)?.number;
        let held = self.held.get_mut(place)?;
        held.is_sent = true;
        let high = held.number;
        self.highest = self.highest.max(high);
        let id = self.next_id;
        self.next_id += 1;
        self.sent.insert(id, Sent { low, high });
        Some((id, request))
    }

    /// The place of the first revision whose transaction is not under way, if it may be sent.
    fn next_place(&self) -> Option<usize> {
        let floor = self.floor();
        for (place, held) in self.held.iter().enumerate() {
            if held.traces.pending.is_empty() && !Mutation::TracelessRevisionNotAlone.is_active() {
                return (place == 0 && self.sent.is_empty()).then_some(place);
            }
            let deletes_created = held.traces.deletes_created;
            if deletes_created.is_some_and(|created| created >= floor)
                && !Mutation::DeletionSentBesideCreation.is_active()
            {
                return None;
            }
            if !held.is_sent {
                return Some(place);
            }
        }
        None
    }

    /// The lowest revision that a transaction under way, or a later transaction, may hold.
    fn floor(&self) -> i64 {
        let sent = self.sent.values().map(|sent| sent.low).min();
        sent.map_or(self.reached + 1, |low| low.min(self.reached + 1))
    }

    fn part(&self, place: usize) -> Option<Part<'_>> {
        let held = self.held.get(place)?;
        let before = place.checked_sub(1).and_then(|before| self.held.get(before));
        Some(Part {
            before: before.map(|before| &before.traces),
            traces: &held.traces,
            operations: &held.operations,
        })
    }

    fn first_alternative(&self, place: usize) -> usize {
        let (mut first, mut bytes, mut weight) = (place, 0, 0);
        let lowest = place.saturating_sub(self.limits.alternatives);
        for place in (lowest..=place).rev() {
            let (Some(held), Some(part)) = (self.held.get(place), self.part(place)) else {
                break;
            };
            bytes += held.bytes;
            weight += part.weight();
            if bytes > self.limits.transaction_bytes || weight > WEIGHT {
                break;
            }
            first = place;
        }
        first
    }

    /// Takes the answer to a transaction: etcd's revision after the transaction.
    pub(super) fn answered(&mut self, id: u64, revision: i64) -> Result<(), Divergence> {
        if revision > self.highest {
            return Err(Divergence::Foreign(revision));
        }
        self.reached = self.reached.max(revision);
        let sent = self.sent.remove(&id);
        while let Some(held) = self.held.front()
            && held.number <= self.reached
        {
            self.bytes -= held.bytes;
            self.held.pop_front();
        }
        self.creations.forget_below(self.floor());
        let Some(Sent { low, high }) = sent else {
            return Ok(());
        };
        // With the revision before `low` reached, the conditions of `low` must hold.
        if revision + 1 == low {
            return Err(Divergence::Refused(low));
        }
        if let Some(first) = self.held.front().map(|held| held.number)
            && let Some(held) = usize::try_from(high - first)
                .ok()
                .and_then(|place| self.held.get_mut(place))
        {
            held.is_sent = false;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
