//! Names of MachineDeployments. The name of a machine contains the name of the deployment, and the Node has
//! the machine's name: an existing deployment keeps the name.

use std::collections::BTreeSet;

/// An existing deployment, with pool and zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Name of the deployment.
    pub name: String,
    /// The pool of the deployment.
    pub pool: String,
    /// The zone of the deployment; empty for a pool without zones.
    pub zone: String,
    /// The deletion hangs: the name stays taken, and the zone gets a new name.
    pub is_stuck: bool,
}

/// The names for the zones of a pool, in order: `<namespace>-<pool>-z<number>`. A zone keeps its name at any
/// place in the list; a new zone gets the lowest free number.
#[must_use]
pub fn of_zones(namespace: &str, pool: &str, zones: &[String], existing: &[Existing]) -> Vec<String> {
    let mut taken: BTreeSet<String> = existing.iter().map(|other| other.name.clone()).collect();
    let mut names = Vec::new();
    for (index, zone) in zones.iter().enumerate() {
        let is_own = |other: &&Existing| other.pool == pool && other.zone == *zone && !other.is_stuck;
        // A Shoot from before the validation may name a zone twice: each entry keeps the entry's deployment.
        let own = existing
            .iter()
            .find(|other| is_own(other) && !names.contains(&other.name));
        let name = own.map_or_else(
            || {
                // The place in the list, as scripts expect; a later number is always free.
                let mut numbers = (index + 1..).map(|number| format!("{namespace}-{pool}-z{number}"));
                numbers.find(|name| !taken.contains(name)).unwrap_or_default()
            },
            |own| own.name.clone(),
        );
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(zones: &[&str], existing: &[(&str, &str, &str)]) -> Vec<String> {
        let zones: Vec<_> = zones.iter().map(|zone| (*zone).to_owned()).collect();
        let existing = existing.iter().map(|(name, pool, zone)| Existing {
            name: name.trim_end_matches('!').into(),
            pool: (*pool).into(),
            zone: (*zone).into(),
            is_stuck: name.ends_with('!'),
        });
        of_zones("ns", "a", &zones, &existing.collect::<Vec<_>>())
    }

    #[test]
    fn new_zones_are_numbered() {
        assert_eq!(names(&["x", "y"], &[]), ["ns-a-z1", "ns-a-z2"]);
        assert_eq!(names(&[""], &[]), ["ns-a-z1"]);
    }

    #[test]
    fn what_exists_keeps_its_name_when_zones_come_and_go() {
        let existing = [("ns-a-z1", "a", "x"), ("ns-a-z2", "a", "y")];
        assert_eq!(names(&["y", "x"], &existing), ["ns-a-z2", "ns-a-z1"]);
        assert_eq!(names(&["y"], &existing), ["ns-a-z2"]);
        // The name of the removed zone is taken while the machines of that zone end.
        assert_eq!(names(&["n", "y"], &existing), ["ns-a-z3", "ns-a-z2"]);
        assert_eq!(names(&["x"], &[("ns-b-z1", "b", "x")]), ["ns-a-z1"]);
    }

    #[test]
    fn a_zone_that_is_named_twice_keeps_both_of_its_deployments() {
        assert_eq!(names(&["x", "x"], &[]), ["ns-a-z1", "ns-a-z2"]);
        let existing = [("ns-a-z1", "a", "x"), ("ns-a-z2", "a", "x")];
        assert_eq!(names(&["x", "x"], &existing), ["ns-a-z1", "ns-a-z2"]);
        assert_eq!(names(&["x"], &existing), ["ns-a-z1"]);
    }

    #[test]
    fn a_zone_does_not_wait_for_a_deployment_whose_deletion_hangs() {
        let hangs = ("ns-a-z1!", "a", "x");
        let beside = ("ns-a-z2", "a", "y");
        assert_eq!(names(&["x", "y"], &[hangs, beside]), ["ns-a-z3", "ns-a-z2"]);
        let remade = ("ns-a-z3", "a", "x");
        assert_eq!(
            names(&["x", "y"], &[hangs, beside, remade]),
            ["ns-a-z3", "ns-a-z2"]
        );
    }
}
