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
//! A transaction that comes late finds its revision applied by a neighbour, and changes nothing. So the own
//! revision of the next transaction follows from the number of transactions under way, not from their
//! revisions. Where all transactions under way come too early, the window begins again at the next revision.
//!
//! The conditions are exact under two rules, which [`Window::next`] keeps:
//! - A revision that deletes a key is not sent while the transaction that creates the key is under way.
//! - A revision without a trace is under way alone.

use super::refusals::RevisionSize;
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
    /// Earlier revisions that a transaction holds at most besides its own revision.
    pub alternatives: usize,
    /// Bytes of all revisions in a transaction that holds more than its own revision.
    pub transaction_bytes: usize,
    /// Bytes of all revisions that are held. A larger revision is held alone.
    pub bytes: usize,
}

/// Operations and conditions of a transaction that holds alternatives: below etcd's default of
/// `--max-txn-ops`, 128.
const WEIGHT: usize = 100;
/// Answers without a new begin of the window after which a transaction holds one alternative less.
const CALM: usize = 1000;
/// Alternatives that a transaction holds at least, where the limit allows: neighbours swap often.
const LEAST_ALTERNATIVES: usize = 2;
/// Revisions that are held for each transaction that may be under way.
const HELD: usize = 4;

/// A revision that etcd may not have.
struct Held {
    number: i64,
    operations: Vec<RequestOp>,
    traces: Traces,
    bytes: usize,
}

/// A transaction that is under way.
struct Sent {
    /// The lowest revision that the transaction holds.
    low: i64,
    /// The number of begins of the window before the transaction.
    begin: u64,
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
    /// How often the window began again.
    begin: u64,
    /// The number of transactions under way since the window began.
    useful: usize,
    /// Alternatives of the next transaction: copies of changes that etcd's order has shown to be needed.
    alternatives: usize,
    /// Answers since the window began, or since `alternatives` fell.
    calm: usize,
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
            begin: 0,
            useful: 0,
            alternatives: limits.alternatives,
            calm: 0,
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
        });
    }

    /// The next transaction to send, with a number for [`Self::answered`].
    pub(super) fn next(&mut self) -> Option<(u64, TxnRequest)> {
        if self.sent.len() >= self.limits.transactions {
            return None;
        }
        if self.comes_too_early() {
            self.begin += 1;
            self.useful = 0;
            self.alternatives = self.limits.alternatives;
            self.calm = 0;
        }
        let place = self.useful;
        if !self.may_send(place) {
            return None;
        }
        let first = self.first_alternative(place);
        // In the usual order the conditions of the own revision hold, and etcd evaluates no others.
        let parts = (first..=place).rev().filter_map(|place| self.part(place));
        let request = next_of(parts);
        let low = self.held.get(first)?.number;
        self.highest = self.highest.max(self.held.get(place)?.number);
        let (id, begin) = (self.next_id, self.begin);
        self.next_id += 1;
        self.useful += 1;
        self.sent.insert(id, Sent { low, begin });
        Some((id, request))
    }

    /// Whether no transaction under way holds the next revision.
    fn comes_too_early(&self) -> bool {
        let useful = self.sent.values().filter(|sent| sent.begin == self.begin);
        let lowest = useful.map(|sent| sent.low).min();
        lowest.is_some_and(|lowest| lowest > self.reached + 1)
    }

    /// Whether the revision in a place may be sent beside the transactions under way.
    fn may_send(&self, place: usize) -> bool {
        let floor = self.floor();
        let blocks = |held: &Held| {
            let deletes_created = held.traces.deletes_created;
            deletes_created.is_some_and(|created| created >= floor)
                && !Mutation::DeletionSentBesideCreation.is_active()
        };
        let is_traceless =
            |held: &Held| held.traces.pending.is_empty() && !Mutation::TracelessRevisionNotAlone.is_active();
        place < self.held.len()
            && self.held.iter().take(place + 1).all(|held| {
                let is_alone = place == 0 && self.sent.is_empty();
                !blocks(held) && (is_alone || !is_traceless(held))
            })
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
        let lowest = place.saturating_sub(self.alternatives);
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

    /// The size of the lowest revision in a transaction under way.
    pub(super) fn size(&self, id: u64) -> Option<RevisionSize> {
        let low = self.sent.get(&id)?.low;
        let held = self.held.iter().find(|held| held.number == low)?;
        Some(RevisionSize {
            number: low,
            operations: held.operations.len(),
            bytes: held.bytes,
        })
    }

    /// Takes the answer to a transaction: etcd's revision after the transaction.
    pub(super) fn answered(&mut self, id: u64, revision: i64) -> Result<(), Divergence> {
        if revision > self.highest {
            return Err(Divergence::Foreign(revision));
        }
        self.reached = self.reached.max(revision);
        let sent = self.sent.remove(&id);
        if sent.as_ref().is_some_and(|sent| sent.begin == self.begin) {
            self.useful -= 1;
        }
        self.calm += 1;
        if self.calm >= CALM {
            self.calm = 0;
            let least = LEAST_ALTERNATIVES.min(self.limits.alternatives);
            self.alternatives = self.alternatives.saturating_sub(1).max(least);
        }
        while let Some(held) = self.held.front()
            && held.number <= self.reached
        {
            self.bytes -= held.bytes;
            self.held.pop_front();
        }
        self.creations.forget_below(self.floor());
        // With the revision before `low` reached, the conditions of `low` must hold.
        if let Some(Sent { low, .. }) = sent
            && revision + 1 == low
        {
            return Err(Divergence::Refused(low));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
