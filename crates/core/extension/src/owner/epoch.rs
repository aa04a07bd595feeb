//! Whether an object was written in the epoch in which this seed owns the shoot, according to the Cluster.
//! Pure.
//!
//! A gardenlet writes the Cluster first in every flow, and then writes each object. An object of an earlier
//! epoch thus remains from a former residency, or was written late by a gardenlet of that epoch. An object of
//! a later epoch stands beside an outdated Cluster. Neither object describes the wanted state; the gardenlet
//! of the present epoch writes both again.

use std::cmp::Ordering;

use api::{constants::WRITTEN_IN_EPOCH, extensions::ExtensionObject};
use kube::ResourceExt;

use crate::Operation;

/// Whether the operation may run for the object in this epoch; the error states the reason.
pub(crate) fn written_in<K: ExtensionObject>(
    object: &K,
    operation: Operation,
    epoch: i64,
) -> Result<(), String> {
    match object.annotations().get(WRITTEN_IN_EPOCH) {
        Some(written) => compare(written, operation, epoch),
        // Older than the annotation, or of a foreign writer.
        None => Ok(()),
    }
}

/// Operations that release resources of this seed are never held up (RX-42), nor is a forced deletion. A
/// deletion is requested without a new write of the object, so an earlier epoch is accepted.
fn compare(written: &str, operation: Operation, epoch: i64) -> Result<(), String> {
    // An annotation that is not a number belongs to no epoch.
    let order = written.parse().unwrap_or(0).cmp(&epoch);
    match (order, operation) {
        (_, Operation::Migrate | Operation::ForceDelete)
        | (Ordering::Equal, _)
        | (Ordering::Less, Operation::Delete) => Ok(()),
        (Ordering::Less, _) => Err(format!(
            "it was written in ownership epoch {written}, and the shoot is in epoch {epoch}: the gardenlet of this seed writes it \
             again"
        )),
        (Ordering::Greater, _) => Err(format!(
            "it was written in ownership epoch {written}, and the Cluster says {epoch}: the gardenlet of this seed writes the \
             Cluster again"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::extensions::Infrastructure;

    use super::*;

    #[test]
    fn only_what_is_of_the_present_epoch_is_acted_on() {
        use Operation::{Create, Delete, ForceDelete, Migrate, Reconcile, Restore};
        let all = [Create, Reconcile, Restore, Migrate, Delete, ForceDelete];
        for (written, go_on, why) in [
            ("3", &all[..], ""),
            ("2", &[Migrate, Delete, ForceDelete], "the shoot is in epoch 3"),
            ("4", &[Migrate, ForceDelete], "the Cluster says 3"),
            ("third", &[Migrate, Delete, ForceDelete], "epoch third"),
        ] {
            for operation in all {
                let compared = compare(written, operation, 3);
                assert_eq!(
                    compared.is_ok(),
                    go_on.contains(&operation),
                    "{written} {operation:?}"
                );
                assert!(
                    compared.is_ok() || compared.unwrap_err().contains(why),
                    "{written}"
                );
            }
        }
    }

    #[test]
    fn an_object_that_says_none_is_acted_on() {
        let mut object = Infrastructure::default();
        written_in(&object, Operation::Reconcile, 3).unwrap();
        let annotations = object.annotations_mut();
        annotations.insert(WRITTEN_IN_EPOCH.to_owned(), "2".to_owned());
        written_in(&object, Operation::Reconcile, 3).unwrap_err();
        written_in(&object, Operation::Reconcile, 2).unwrap();
    }
}
