//! Generated actions at a source: concurrent clients that write, leases, compactions and kills.

use super::generated_histories::{Random, SourceTxn, generate, request_of};
use super::messages as m;
use crate::lab::{noise, op_put};
use std::ops::Range;

/// Leases that exist between two actions.
pub(super) const LEASES: [i64; 2] = [1, 2];
/// Keys of large transactions. etcd allows 128 operations by default (`--max-txn-ops`). The end of a lease,
/// or the deletion of all keys, arrives as a transaction with each key.
const KEYS: u64 = 60;
/// The largest value in KiB: below etcd's default of `--max-request-bytes`, 1.5 MiB.
const LARGEST: u64 = 1200;
/// Requests of concurrent clients in an action, at most.
const REQUESTS: u64 = 24;
/// How often a history has each kind of action.
const ROUNDS: usize = 2;
/// Actions of clients that write, in a round.
const WRITES: usize = 8;

/// A transaction of a client.
#[derive(Clone, Debug)]
pub(super) enum WriteRequest {
    /// Operations on few keys, nested too.
    FewKeys(SourceTxn),
    PutMany {
        keys: Range<u64>,
        lease: i64,
    },
    /// Deletes a range, and puts a key beside the range.
    DeleteRange(Range<u64>),
    /// Creates the first key of the range where this key is missing. Otherwise deletes the range.
    CreateOrDelete(Range<u64>),
    PutLarge {
        key: u64,
        kibibytes: usize,
    },
    DeleteAll,
}

/// The number of kinds of requests.
const KINDS: u64 = 6;

/// An action at the source or at its follower.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Clients write at the same time.
    Write(Vec<WriteRequest>),
    /// The source is killed while clients write, and starts again.
    KillSource(Vec<WriteRequest>),
    /// Ends a lease with its keys, and grants the same number again.
    Revoke {
        lease: i64,
        ttl: i64,
    },
    KeepAlive,
    /// Compacts the source, except for some of its newest revisions.
    Compact {
        kept: i64,
    },
    /// Kills the follower, or starts the follower again.
    ToggleFollower,
}

fn many_key(number: u64) -> String {
    format!("/many/{number:03}")
}

fn delete_range(key: impl Into<Vec<u8>>, range_end: impl Into<Vec<u8>>) -> m::RequestOp {
    let request = m::DeleteRangeRequest {
        key: key.into().into(),
        range_end: range_end.into().into(),
    };
    m::RequestOp {
        operation: Some(m::Change::Delete(request)),
    }
}

fn delete_many(keys: &Range<u64>) -> m::RequestOp {
    delete_range(many_key(keys.start), many_key(keys.end))
}

fn is_missing(key: String) -> m::Compare {
    m::Compare {
        result: m::CompareResult::Equal.into(),
        target: m::CompareTarget::Version.into(),
        key: key.into(),
        version: Some(0),
        create_revision: None,
        mod_revision: None,
    }
}

impl WriteRequest {
    /// The transaction. `number` makes the values of a history differ.
    pub(super) fn txn(&self, number: usize) -> m::TxnRequest {
        let put = |key: &str, lease| op_put(key, number.to_string(), lease);
        let success: Vec<m::RequestOp> = match self {
            Self::FewKeys(txn) => return request_of(txn, number),
            Self::PutMany { keys, lease } => keys.clone().map(|key| put(&many_key(key), *lease)).collect(),
            Self::DeleteRange(keys) => vec![delete_many(keys), put("/many/beside", 0)],
            Self::CreateOrDelete(keys) => {
                let first = many_key(keys.start);
                return m::TxnRequest {
                    success: vec![put(&first, 0)],
                    compare: vec![is_missing(first)],
                    failure: vec![delete_many(keys)],
                };
            }
            Self::PutLarge { key, kibibytes } => {
                let value = noise(number as u64 + 1, kibibytes << 10);
                vec![op_put(&format!("/large/{key}"), value, 0)]
            }
            Self::DeleteAll => vec![delete_range([0_u8], [0_u8])],
        };
        m::TxnRequest {
            success,
            ..m::TxnRequest::default()
        }
    }
}

fn range(random: &mut Random) -> Range<u64> {
    let start = random.below(KEYS);
    start..start + 1 + random.below(KEYS - start)
}

/// A request of the kind with a number below [`KINDS`].
fn generate_request(kind: u64, random: &mut Random) -> WriteRequest {
    match kind {
        0 => WriteRequest::FewKeys(generate(random, 1).remove(0)),
        1 => WriteRequest::PutMany {
            keys: range(random),
            lease: i64::try_from(random.below(3)).unwrap(),
        },
        2 => WriteRequest::DeleteRange(range(random)),
        3 => WriteRequest::CreateOrDelete(range(random)),
        4 => WriteRequest::PutLarge {
            key: random.below(4),
            kibibytes: usize::try_from(1 + random.below(LARGEST)).unwrap(),
        },
        _ => WriteRequest::DeleteAll,
    }
}

/// Requests of any kind, except for the deletion of all keys. Every second request has few keys.
fn generate_requests(random: &mut Random) -> Vec<WriteRequest> {
    let count = 1 + random.below(REQUESTS);
    let request = |random: &mut Random| generate_request(random.below(10).saturating_sub(5), random);
    (0..count).map(|_| request(random)).collect()
}

/// Actions of each kind, in any order.
pub(super) fn generate_actions(random: &mut Random) -> Vec<Action> {
    let mut actions = Vec::new();
    for _ in 0..ROUNDS {
        let each_kind = (0..KINDS).map(|kind| generate_request(kind, random)).collect();
        actions.push(Action::Write(each_kind));
        for _ in 0..WRITES {
            actions.push(Action::Write(generate_requests(random)));
        }
        for lease in LEASES {
            let ttl = 700 + i64::try_from(random.below(3600)).unwrap();
            actions.push(Action::Revoke { lease, ttl });
        }
        let kept = i64::try_from(random.below(100)).unwrap();
        actions.extend([
            Action::KillSource(generate_requests(random)),
            Action::KeepAlive,
            Action::Compact { kept },
            Action::ToggleFollower,
            Action::ToggleFollower,
        ]);
    }
    for place in (1..actions.len()).rev() {
        let earlier = random.below(place as u64 + 1);
        actions.swap(place, usize::try_from(earlier).unwrap());
    }
    actions
}
