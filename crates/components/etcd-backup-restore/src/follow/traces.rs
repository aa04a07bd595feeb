//! The traces of a revision in etcd, as conditions of a transaction: whether the revision was applied, and
//! whether the revision is still pending.
//!
//! etcd has no condition on its own revision, so the conditions are on keys of the revision. `applied` holds
//! from the revision on until a later revision changes the same key. `pending` holds before the revision and
//! never again, see [`Traces::deletes_created`].

use crate::etcd::messages::{Compare, CompareResult, CompareTarget};
use crate::revisions::Change;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};

/// The creation revisions of keys that were created by revisions in the window.
#[derive(Default)]
pub(super) struct Creations {
    by_key: HashMap<Bytes, i64>,
    in_order: VecDeque<(i64, Bytes)>,
}

impl Creations {
    fn add(&mut self, key: &Bytes, revision: i64) {
        self.by_key.insert(key.clone(), revision);
        self.in_order.push_back((revision, key.clone()));
    }

    /// Forgets the creations below a revision.
    pub(super) fn forget_below(&mut self, floor: i64) {
        while let Some((revision, key)) = self.in_order.front()
            && *revision < floor
        {
            if self.by_key.get(key) == Some(revision) {
                self.by_key.remove(key);
            }
            self.in_order.pop_front();
        }
    }
}

/// The traces of a revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traces {
    /// Holds right after the revision, and at no earlier revision that is possible when the next revision is
    /// sent.
    pub(super) applied: Vec<Compare>,
    /// Holds right before the revision, and at no later revision that is possible while the revision is under
    /// way. Empty where the revision leaves no trace: then the revision must be under way alone.
    pub(super) pending: Vec<Compare>,
    /// The newest creation, by a revision in the window, of a key that this revision deletes. Before this
    /// creation and after the deletion the key is missing, so that a condition cannot tell both states apart.
    /// The revision must not be sent while the creation is under way.
    pub(super) deletes_created: Option<i64>,
}

/// The first and the last change of a key within a revision. A revision can put a key and then delete it.
struct Effect<'a> {
    first: &'a Change,
    last: &'a Change,
}

fn effects(changes: &[Change]) -> Vec<Effect<'_>> {
    let (mut effects, mut places) = (Vec::<Effect<'_>>::new(), HashMap::new());
    for change in changes {
        let place = *places.entry(change.key()).or_insert(effects.len());
        match effects.get_mut(place) {
            Some(effect) => effect.last = change,
            None => effects.push(Effect {
                first: change,
                last: change,
            }),
        }
    }
    effects
}

fn compare(key: &Bytes, target: CompareTarget, result: CompareResult, number: i64) -> Compare {
    let is = |wanted| (target == wanted).then_some(number);
    Compare {
        result: result.into(),
        target: target.into(),
        key: key.clone(),
        version: is(CompareTarget::Version),
        create_revision: is(CompareTarget::Create),
        mod_revision: is(CompareTarget::Mod),
    }
}

fn is_missing(key: &Bytes) -> Compare {
    compare(key, CompareTarget::Version, CompareResult::Equal, 0)
}

impl Traces {
    /// Finds the traces, and records the keys that the revision creates.
    pub(super) fn find(number: i64, changes: &[Change], creations: &mut Creations) -> Self {
        let effects = effects(changes);
        let deletes_created = effects
            .iter()
            .filter(|effect| matches!(effect.last, Change::Delete(_)))
            .filter_map(|effect| creations.by_key.get(effect.first.key()).copied())
            .max();
        let traces = Self {
            applied: applied(number, &effects),
            pending: pending(number, &effects),
            deletes_created,
        };
        for effect in &effects {
            match effect.last {
                Change::Put(kv) if kv.create_revision == number => creations.add(&kv.key, number),
                Change::Put(_) => {}
                Change::Delete(key) => {
                    creations.by_key.remove(key);
                }
            }
        }
        traces
    }
}

fn applied(number: i64, effects: &[Effect<'_>]) -> Vec<Compare> {
    let put = effects.iter().find_map(|effect| match effect.last {
        Change::Put(kv) => Some(compare(&kv.key, CompareTarget::Mod, CompareResult::Equal, number)),
        Change::Delete(_) => None,
    });
    let existed = |effect: &&Effect<'_>| match effect.first {
        Change::Put(kv) => kv.create_revision < number,
        Change::Delete(_) => true,
    };
    let deleted = || {
        effects
            .iter()
            .find(existed)
            .map(|effect| is_missing(effect.first.key()))
    };
    put.or_else(deleted).into_iter().collect()
}

fn pending(number: i64, effects: &[Effect<'_>]) -> Vec<Compare> {
    let changed = effects.iter().find_map(|effect| match effect.first {
        Change::Put(kv) if kv.version > 1 => Some(vec![
            compare(
                &kv.key,
                CompareTarget::Create,
                CompareResult::Equal,
                kv.create_revision,
            ),
            compare(
                &kv.key,
                CompareTarget::Version,
                CompareResult::Equal,
                kv.version - 1,
            ),
        ]),
        Change::Put(_) => None,
        Change::Delete(key) => Some(vec![
            compare(key, CompareTarget::Version, CompareResult::Greater, 0),
            compare(key, CompareTarget::Create, CompareResult::Less, number),
        ]),
    });
    let created = || {
        effects
            .iter()
            .find_map(|effect| match (effect.first, effect.last) {
                (Change::Put(kv), Change::Put(_)) => Some(vec![is_missing(&kv.key)]),
                _ => None,
            })
    };
    changed.or_else(created).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::etcd::messages::KeyValue;

    fn put_change(key: &str, create_revision: i64, version: i64) -> Change {
        Change::Put(KeyValue {
            key: Bytes::copy_from_slice(key.as_bytes()),
            create_revision,
            version,
            ..KeyValue::default()
        })
    }

    fn delete(key: &str) -> Change {
        Change::Delete(Bytes::copy_from_slice(key.as_bytes()))
    }

    #[test]
    fn a_deletion_names_the_creation_of_its_key_while_that_is_in_the_window() {
        let mut creations = Creations::default();
        Traces::find(5, &[put_change("a", 5, 1)], &mut creations);
        assert_eq!(
            Traces::find(6, &[delete("a")], &mut creations).deletes_created,
            Some(5)
        );
        Traces::find(7, &[put_change("a", 7, 1)], &mut creations);
        creations.forget_below(7);
        assert_eq!(
            Traces::find(8, &[delete("a"), delete("old")], &mut creations).deletes_created,
            Some(7)
        );
        Traces::find(9, &[put_change("a", 9, 1)], &mut creations);
        creations.forget_below(10);
        assert_eq!(
            Traces::find(10, &[delete("a")], &mut creations).deletes_created,
            None
        );
        assert!(creations.by_key.is_empty() && creations.in_order.is_empty());
    }

    #[test]
    fn a_key_that_is_created_and_deleted_within_a_revision_leaves_no_trace() {
        let changes = [put_change("a", 5, 1), delete("a")];
        let traces = Traces::find(5, &changes, &mut Creations::default());
        assert_eq!(traces, Traces::default());
        // A key that was there before leaves a trace.
        let changes = [put_change("a", 2, 4), delete("a")];
        let traces = Traces::find(5, &changes, &mut Creations::default());
        assert_eq!((traces.applied.len(), traces.pending.len()), (1, 2));
    }
}
