//! Generated histories, for tests with a simulated etcd and with real etcds.

use super::messages as m;
use bytes::Bytes;
use std::collections::HashSet;

/// An operation on a key of a history.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Put {
        size: u16,
        lease: i64,
    },
    Delete,
    /// In sibling transactions.
    PutAndDelete,
}

/// The operations of a transaction at the source.
pub(super) type SourceTxn = Vec<(u8, Step)>;

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Transactions that put, delete and lease few keys.
pub(super) fn generate(random: &mut Random, length: u64) -> Vec<SourceTxn> {
    // Few keys, so that keys are deleted and created again within a window.
    let keys = 1 + random.below(6);
    let txn = |random: &mut Random| {
        let operations = if random.below(4) == 0 {
            1 + random.below(5)
        } else {
            1
        };
        let step = |random: &mut Random| {
            let key = u8::try_from(random.below(keys)).unwrap();
            let step = match random.below(10) {
                0..=3 => Step::Put {
                    size: u16::try_from(random.below(20)).unwrap(),
                    lease: i64::try_from(random.below(3)).unwrap(),
                },
                4 => Step::Put { size: 2000, lease: 0 },
                5..=8 => Step::Delete,
                _ => Step::PutAndDelete,
            };
            (key, step)
        };
        (0..operations).map(|_| step(random)).collect()
    };
    (0..length).map(|_| txn(random)).collect()
}

/// The key: of any bytes, such as a zero byte alone.
fn key_of(number: u8) -> Bytes {
    let keys: [&[u8]; 6] = [b"\0", b"\xff", b"a", b"a\0", b"/registry/pods/a", b"\xc3\x28"];
    Bytes::from_static(keys[usize::from(number) % keys.len()])
}

/// The request of a transaction. `number` makes the values of a history differ.
pub(super) fn request_of(txn: &[(u8, Step)], number: usize) -> m::TxnRequest {
    let put = |key: u8, size: u16, lease| {
        let value = vec![u8::try_from(number % 251).unwrap(); usize::from(size)];
        m::Change::Put(m::PutRequest {
            key: key_of(key),
            value: value.into(),
            lease,
        })
    };
    let delete = |key| {
        m::Change::Delete(m::DeleteRangeRequest {
            key: key_of(key),
            ..m::DeleteRangeRequest::default()
        })
    };
    let op = |operation| m::RequestOp {
        operation: Some(operation),
    };
    let nested = |operation| {
        op(m::Change::Txn(m::TxnRequest {
            success: vec![op(operation)],
            ..m::TxnRequest::default()
        }))
    };
    let mut keys = HashSet::new();
    let mut success = Vec::new();
    for (key, step) in txn {
        if keys.insert(key_of(*key)) {
            match *step {
                Step::Put { size, lease } => success.push(op(put(*key, size, lease))),
                Step::Delete => success.push(op(delete(*key))),
                Step::PutAndDelete => success.extend([nested(put(*key, 3, 0)), nested(delete(*key))]),
            }
        }
    }
    m::TxnRequest {
        success,
        ..m::TxnRequest::default()
    }
}

/// The shortest history with the fault that this removal of parts finds.
pub(super) fn shrink<T: Clone>(mut history: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut length = history.len() / 2;
    while length > 0 {
        let mut start = 0;
        while start < history.len() {
            let mut fewer = history.clone();
            fewer.drain(start..(start + length).min(history.len()));
            if fails(&fewer) {
                history = fewer;
            } else {
                start += length;
            }
        }
        length /= 2;
    }
    history
}
