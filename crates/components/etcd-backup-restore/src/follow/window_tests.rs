//! A window against a simulated etcd that applies concurrent transactions in any order. The histories are
//! generated, and a failing history is shrunk.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::etcd::messages::{self, Change as Operation, Compare, CompareResult, CompareTarget, KeyValue};
use bytes::Bytes;
use generated_histories::{Random, SourceTxn, generate, request_of, shrink};
use std::collections::HashSet;

#[path = "generated_histories.rs"]
mod generated_histories;

/// An etcd with the rules of its transactions.
#[derive(Default)]
struct SimulatedEtcd {
    keys: BTreeMap<Bytes, KeyValue>,
    /// The changes of each revision from 2 on: an etcd without a key is at revision 1.
    history: Vec<Vec<Change>>,
}

/// Keys that a list of operations puts and deletes.
type Touched = (HashSet<Bytes>, HashSet<Bytes>);

/// Refuses a list of operations as etcd refuses such a list.
fn touched(operations: &[RequestOp]) -> Touched {
    let (mut puts, mut deletes) = (HashSet::new(), HashSet::new());
    let kinds = || {
        operations
            .iter()
            .filter_map(|operation| operation.operation.as_ref())
    };
    for kind in kinds() {
        if let Operation::Delete(delete) = kind {
            deletes.insert(delete.key.clone());
        }
    }
    for kind in kinds() {
        if let Operation::Txn(txn) = kind {
            let (then_puts, then_deletes) = touched(&txn.success);
            let (else_puts, else_deletes) = touched(&txn.failure);
            for key in &then_puts {
                assert!(
                    !deletes.contains(key) && puts.insert(key.clone()),
                    "duplicate key"
                );
            }
            for key in &else_puts {
                let is_new = puts.insert(key.clone());
                assert!(!deletes.contains(key), "duplicate key");
                assert!(is_new || then_puts.contains(key), "duplicate key");
            }
            deletes.extend(then_deletes);
            deletes.extend(else_deletes);
        }
    }
    for kind in kinds() {
        if let Operation::Put(put) = kind {
            let key = &put.key;
            assert!(
                !deletes.contains(key) && puts.insert(key.clone()),
                "duplicate key"
            );
        }
    }
    (puts, deletes)
}

/// The bound of `--max-txn-ops`, by default 128.
fn check_size(txn: &TxnRequest, most: usize) {
    let size = txn.compare.len().max(txn.success.len()).max(txn.failure.len());
    assert!(size <= most, "too many operations");
    for operation in txn.success.iter().chain(&txn.failure) {
        if let Some(Operation::Txn(nested)) = &operation.operation {
            check_size(nested, most - size);
        }
    }
}

impl SimulatedEtcd {
    fn revision(&self) -> i64 {
        1 + i64::try_from(self.history.len()).unwrap()
    }

    fn holds(&self, compare: &Compare) -> bool {
        let kv = self.keys.get(&compare.key).cloned().unwrap_or_default();
        let (is, wanted) = match compare.target() {
            CompareTarget::Version => (kv.version, compare.version),
            CompareTarget::Create => (kv.create_revision, compare.create_revision),
            CompareTarget::Mod => (kv.mod_revision, compare.mod_revision),
        };
        let wanted = wanted.unwrap();
        match compare.result() {
            CompareResult::Equal => is == wanted,
            CompareResult::Greater => is > wanted,
            CompareResult::Less => is < wanted,
        }
    }

    /// Applies a transaction; returns the revision that etcd reports.
    fn txn(&mut self, request: &TxnRequest) -> i64 {
        check_size(request, 128);
        touched(&request.success);
        touched(&request.failure);
        let mut changes = Vec::new();
        self.run(request, &mut changes);
        if !changes.is_empty() {
            self.history.push(changes);
        }
        self.revision()
    }

    fn run(&mut self, request: &TxnRequest, changes: &mut Vec<Change>) {
        let holds = request.compare.iter().all(|compare| self.holds(compare));
        let operations = if holds { &request.success } else { &request.failure };
        let next = self.revision() + 1;
        for operation in operations {
            match operation.operation.as_ref().unwrap() {
                Operation::Put(put) => {
                    let former = self.keys.get(&put.key);
                    let kv = KeyValue {
                        key: put.key.clone(),
                        value: put.value.clone(),
                        lease: put.lease,
                        create_revision: former.map_or(next, |kv| kv.create_revision),
                        mod_revision: next,
                        version: former.map_or(1, |kv| kv.version + 1),
                    };
                    self.keys.insert(put.key.clone(), kv.clone());
                    changes.push(Change::Put(kv));
                }
                Operation::Delete(delete) => {
                    if self.keys.remove(&delete.key).is_some() {
                        changes.push(Change::Delete(delete.key.clone()));
                    }
                }
                Operation::Txn(nested) => self.run(nested, changes),
            }
        }
    }
}

/// Follows the history, with requests and answers in any order. Sessions end at any time: etcd applies or
/// loses each transaction under way before the barrier of the next session. Returns the difference.
fn follow(txns: &[SourceTxn], seed: u64, limits: WindowLimits) -> Result<(), String> {
    let mut source = SimulatedEtcd::default();
    for (number, txn) in txns.iter().enumerate() {
        source.txn(&request_of(txn, number));
    }
    let mut random = Random(seed);
    let mut local = SimulatedEtcd::default();
    let mut window = Window::new(1, limits);
    let (mut requests, mut answers) = (Vec::<(u64, TxnRequest)>::new(), Vec::<(u64, i64)>::new());
    let (mut next, mut reached) = (0_usize, 1_i64);
    let mut is_complete = false;
    for _ in 0..1000 + 200 * txns.len() {
        if random.below(100) == 0 {
            while !requests.is_empty() {
                let place = random.below(requests.len() as u64);
                let (_, request) = requests.swap_remove(usize::try_from(place).unwrap());
                if random.below(2) == 0 {
                    local.txn(&request);
                }
            }
            answers.clear();
            reached = local.revision();
            window = Window::new(reached, limits);
            // The last two revisions were applied and not proved.
            next = local.history.len().saturating_sub(2);
            is_complete = false;
        }
        match random.below(4) {
            0 if window.has_room() => match source.history.get(next) {
                Some(changes) => {
                    let number = 2 + i64::try_from(next).unwrap();
                    if number > reached {
                        window.push(number, changes);
                    }
                    next += 1;
                }
                None => is_complete = true,
            },
            1 => requests.extend(window.next()),
            2 if !requests.is_empty() => {
                let place = random.below(requests.len() as u64);
                let (id, request) = requests.swap_remove(usize::try_from(place).unwrap());
                answers.push((id, local.txn(&request)));
            }
            3 if !answers.is_empty() => {
                let place = random.below(answers.len() as u64);
                let (id, revision) = answers.swap_remove(usize::try_from(place).unwrap());
                let answered = window.answered(id, revision);
                answered.map_err(|divergence| format!("the histories differ: {divergence:?}"))?;
            }
            _ => {}
        }
        if is_complete && window.is_idle() {
            return if local.history == source.history {
                Ok(())
            } else {
                Err(format!("the histories differ: {:?}", local.history))
            };
        }
        if local.history.len() > source.history.len() {
            return Err("the histories differ in length".to_owned());
        }
    }
    Err("the histories differ: no end".to_owned())
}

fn assert_follows(seeds: std::ops::Range<u64>, length: u64) {
    for seed in seeds {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let length = 1 + random.below(length);
        let txns = generate(&mut random, length);
        let limits = WindowLimits {
            transactions: usize::try_from(1 + random.below(12)).unwrap(),
            alternatives: usize::try_from(random.below(6)).unwrap(),
            transaction_bytes: usize::try_from(100 + random.below(4000)).unwrap(),
            bytes: 4096,
        };
        let order = 1 + random.below(u64::MAX - 1);
        if let Err(difference) = follow(&txns, order, limits) {
            let least = shrink(txns, |fewer| follow(fewer, order, limits).is_err());
            panic!("{difference}\nseed {seed}, {limits:?}, shrunk to {least:?}");
        }
    }
}

#[test]
fn any_history_arrives_unchanged_in_any_order_of_requests_and_answers() {
    assert_follows(0..1500, 60);
}

#[test]
fn a_follower_without_a_rule_of_its_order_is_noticed() {
    for mutation in [
        Mutation::RevisionOrderUnchecked,
        Mutation::DeletionSentBesideCreation,
        Mutation::TracelessRevisionNotAlone,
    ] {
        mutation.assert_killed_by(
            any_history_arrives_unchanged_in_any_order_of_requests_and_answers,
            "the histories differ",
        );
    }
}

const LIMITS: WindowLimits = WindowLimits {
    transactions: 8,
    alternatives: 2,
    transaction_bytes: 10_000,
    bytes: 4096,
};

fn put_change(number: i64, key: &'static str) -> Change {
    Change::Put(KeyValue {
        key: Bytes::from_static(key.as_bytes()),
        create_revision: number,
        mod_revision: number,
        version: 1,
        ..KeyValue::default()
    })
}

#[test]
fn a_swap_of_neighbours_costs_no_round_trip() {
    let (mut window, mut local) = (Window::new(1, LIMITS), SimulatedEtcd::default());
    for (number, key) in (2..6).zip(["a", "b", "c", "d"]) {
        window.push(number, &[put_change(number, key)]);
    }
    let mut requests = std::iter::from_fn(|| window.next()).collect::<Vec<_>>();
    assert_eq!(requests.len(), 4);
    requests.swap(0, 1);
    // The transaction of revision 3 applies revision 2, and so on: three of four transactions change etcd.
    for (_, request) in &requests {
        local.txn(request);
    }
    assert_eq!(local.revision(), 4);
}

#[test]
fn a_write_of_a_different_client_is_a_divergence() {
    let (mut window, mut local) = (Window::new(1, LIMITS), SimulatedEtcd::default());
    window.push(2, &[put_change(2, "a")]);
    let (id, request) = window.next().unwrap();
    local.history.push(vec![put_change(2, "foreign")]);
    local.txn(&request);
    local.history.push(vec![put_change(3, "foreign")]);
    assert_eq!(window.answered(id, 3), Err(Divergence::Foreign(3)));
    // The local etcd has a key that the source does not have.
    let (mut window, mut local) = (Window::new(1, LIMITS), SimulatedEtcd::default());
    window.push(2, &[put_change(2, "a")]);
    let (id, request) = window.next().unwrap();
    local.keys.insert(
        "a".into(),
        KeyValue {
            version: 1,
            ..KeyValue::default()
        },
    );
    let revision = local.txn(&request);
    assert_eq!(window.answered(id, revision), Err(Divergence::Refused(2)));
}

#[test]
fn memory_is_bounded_and_a_large_revision_is_held_alone() {
    let mut window = Window::new(1, LIMITS);
    let large = |number: i64| {
        let Change::Put(mut kv) = put_change(number, "a") else {
            unreachable!()
        };
        kv.value = vec![0; 10_000].into();
        Change::Put(kv)
    };
    assert!(window.has_room());
    window.push(2, &[large(2)]);
    assert!(!window.has_room());
    let (id, _) = window.next().unwrap();
    window.answered(id, 2).unwrap();
    assert!(window.has_room() && window.is_idle());
    let mut number = 2;
    while window.has_room() {
        number += 1;
        window.push(number, &[put_change(number, "a")]);
    }
    assert_eq!(window.held.len(), HELD * LIMITS.transactions);
}
