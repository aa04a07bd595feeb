//! Transactions of etcd that make revisions.

use super::traces::Traces;
use crate::etcd::messages::{Change as Operation, DeleteRangeRequest, PutRequest, RequestOp, TxnRequest};
use crate::revisions::Change;
use mutation::Mutation;
use std::collections::HashSet;

/// The transaction of a revision, with the operations in the order of the changes.
///
/// etcd accepts no second operation on a key within the list of a transaction. A revision that puts a key and
/// then deletes the key comes from nested transactions, and is written as nested transactions.
pub(super) fn operations(changes: &[Change]) -> Vec<RequestOp> {
    let mut keys = HashSet::with_capacity(changes.len());
    let has_repeated_key = !changes.iter().all(|change| keys.insert(change.key()));
    let operations = changes.iter().map(|change| {
        let operation = match change {
            Change::Put(kv) => Operation::Put(PutRequest {
                key: kv.key.clone(),
                value: kv.value.clone(),
                lease: kv.lease,
            }),
            Change::Delete(key) => Operation::Delete(DeleteRangeRequest {
                key: key.clone(),
                ..DeleteRangeRequest::default()
            }),
        };
        let operation = RequestOp {
            operation: Some(operation),
        };
        if has_repeated_key {
            nested(TxnRequest {
                success: vec![operation],
                ..TxnRequest::default()
            })
        } else {
            operation
        }
    });
    operations.collect()
}

fn nested(txn: TxnRequest) -> RequestOp {
    RequestOp {
        operation: Some(Operation::Txn(txn)),
    }
}

/// A revision as part of a transaction.
pub(super) struct Part<'a> {
    /// The traces of the revision before; `None` where etcd has reached the revision before.
    pub(super) before: Option<&'a Traces>,
    /// The traces of the revision.
    pub(super) traces: &'a Traces,
    /// The operations of the revision.
    pub(super) operations: &'a [RequestOp],
}

impl Part<'_> {
    /// The number of operations or conditions, of which etcd allows a limited number (`--max-txn-ops`).
    pub(super) fn weight(&self) -> usize {
        let before = self.before.map_or(0, |before| before.applied.len());
        self.operations.len().max(before + self.traces.pending.len())
    }
}

/// A transaction that applies the revision that is next, of the revisions in `parts`, and no revision
/// otherwise. etcd evaluates the conditions in the order of `parts`.
pub(super) fn next_of<'a>(parts: impl DoubleEndedIterator<Item = Part<'a>>) -> TxnRequest {
    let otherwise = None::<TxnRequest>;
    let txn = parts.rev().fold(otherwise, |otherwise, part| {
        let before = part.before.map_or(&[][..], |before| before.applied.as_slice());
        let mut compare = [before, &part.traces.pending].concat();
        if Mutation::RevisionOrderUnchecked.is_active() {
            compare.clear();
        }
        Some(TxnRequest {
            compare,
            success: part.operations.to_vec(),
            failure: otherwise.map(nested).into_iter().collect(),
        })
    });
    txn.unwrap_or_default()
}
