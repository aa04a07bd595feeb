//! The memory of instances without a Machine: pure.
//!
//! After a restore the list of Machines may be short for a moment, and every instance that is missing in the
//! list would be taken for an orphan (gardener/gardener#8742, #3520). So no instance is deleted until a
//! listing found a Machine for *every* instance, and then only instances without a Machine in two listings in
//! a row.

use std::collections::BTreeSet;

use crate::driver::ListedInstance;

/// The memory of earlier listings since the start of the process.
#[derive(Debug, Default)]
pub struct Memory {
    trusted: bool,
    suspects: BTreeSet<ListedInstance>,
}

/// The result of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListingResult {
    /// Instances without a Machine that are kept, because no listing was complete yet.
    pub untrusted: Vec<ListedInstance>,
    /// Instances without a Machine for the second time.
    pub orphans: Vec<ListedInstance>,
}

impl Memory {
    /// Takes a listing. `names` and `ids` are those of all Machines, read after the listing.
    pub fn record(
        &mut self,
        found: &[ListedInstance],
        names: &BTreeSet<String>,
        ids: &BTreeSet<String>,
    ) -> ListingResult {
        let unmatched: BTreeSet<_> = found
            .iter()
            .filter(|found| !names.contains(&found.machine_name) && !ids.contains(&found.provider_id))
            .cloned()
            .collect();
        if !self.trusted {
            self.trusted = unmatched.is_empty();
            return ListingResult {
                untrusted: unmatched.into_iter().collect(),
                ..ListingResult::default()
            };
        }
        let orphans = unmatched.intersection(&self.suspects).cloned().collect();
        self.suspects = unmatched;
        ListingResult {
            orphans,
            ..ListingResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_instances(names: &str) -> Vec<ListedInstance> {
        let instance = |name: &str| ListedInstance {
            machine_name: name.to_owned(),
            provider_id: format!("id-{name}"),
        };
        names.split_whitespace().map(instance).collect()
    }

    fn names(of: &[ListedInstance]) -> String {
        let names: Vec<_> = of.iter().map(|found| found.machine_name.as_str()).collect();
        names.join(" ")
    }

    /// A listing, the names and the ids of Machines at that moment, and the expected result: untrusted, then
    /// orphans.
    type Scene<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

    fn play(scenes: &[Scene<'_>]) {
        let mut memory = Memory::default();
        for (number, (listed, machines, ids, untrusted, orphans)) in scenes.iter().enumerate() {
            let set = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect();
            let result = memory.record(&build_instances(listed), &set(machines), &set(ids));
            assert_eq!(names(&result.untrusted), *untrusted, "scene {number}");
            assert_eq!(names(&result.orphans), *orphans, "scene {number}");
        }
    }

    #[test]
    fn what_two_listings_in_a_row_find_nobody_for_is_an_orphan() {
        play(&[
            ("a b", "a b", "", "", ""),
            ("a b x", "a b", "", "", ""),
            ("a b x", "a b", "", "", "x"),
        ]);
    }

    #[test]
    fn one_listing_is_not_enough_and_neither_are_two_that_are_not_in_a_row() {
        play(&[
            ("", "", "", "", ""),
            ("x", "", "", "", ""),
            ("x", "x", "", "", ""),
            ("x", "", "", "", ""),
            ("y", "", "", "", ""),
        ]);
    }

    /// gardener/gardener#8742: the manager came up before Machines were there.
    #[test]
    fn after_a_restore_nothing_is_collected_until_every_instance_was_matched_once() {
        play(&[
            ("a b c", "", "", "a b c", ""),
            ("a b c", "a", "", "b c", ""),
            ("a b c", "a b", "", "c", ""),
            ("a b c", "a b", "", "c", ""),
            ("a b c", "a b c", "", "", ""),
            ("a b c", "a b", "", "", ""),
            ("a b c", "a b", "", "", "c"),
        ]);
    }

    #[test]
    fn a_machine_stands_for_an_instance_by_name_or_by_id() {
        play(&[
            ("a b", "a", "id-b", "", ""),
            ("a b", "", "id-a id-b", "", ""),
            ("a b", "a b", "", "", ""),
        ]);
    }
}
