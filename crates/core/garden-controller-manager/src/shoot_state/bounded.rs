//! The InternalSecrets that a ClusterRole names: at most a bounded number, and a report of the rest. Pure
//! decisions.

use std::collections::{BTreeMap, BTreeSet};

/// Most ShootStates that a report names.
const NAMED: usize = 5;

/// Names of InternalSecrets, by the name of their ShootState.
pub(super) type ChunksOfStates = BTreeMap<String, BTreeSet<String>>;

/// The InternalSecrets that a ClusterRole names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedChunks {
    pub(super) names: BTreeSet<String>,
    /// The number of InternalSecrets that are not named, by ShootState.
    pub(super) left_out: BTreeMap<String, usize>,
}

/// At most this number of InternalSecrets. The ShootStates with the fewest InternalSecrets come first, so
/// that a flood of one shoot takes no right to a second shoot. The order depends on names and numbers alone.
pub(super) fn at_most(most: usize, chunks: ChunksOfStates) -> NamedChunks {
    let mut states: Vec<_> = chunks.into_iter().collect();
    states.sort_by(|(a, of_a), (b, of_b)| (of_a.len(), a).cmp(&(of_b.len(), b)));
    let mut named = NamedChunks::default();
    for (state, chunks) in states {
        let room = most.saturating_sub(named.names.len());
        let left_out = chunks.len().saturating_sub(room);
        if left_out > 0 {
            named.left_out.insert(state, left_out);
        }
        named.names.extend(chunks.into_iter().take(room));
    }
    named
}

/// The report of the InternalSecrets that a seed may not read, with the remedy.
pub(super) fn report(seed: &str, namespace: &str, most: usize, left_out: &BTreeMap<String, usize>) -> String {
    let mut states: Vec<_> = left_out.iter().collect();
    states.sort_by(|(a, of_a), (b, of_b)| (of_b, a).cmp(&(of_a, b)));
    let named: Vec<_> = states
        .iter()
        .take(NAMED)
        .map(|(state, chunks)| format!("{state} ({chunks})"))
        .collect();
    format!(
        "seed {seed} may read {most} InternalSecrets in namespace {namespace}, and {} more exist: the seed cannot read \
         InternalSecrets of {} ShootState(s), the largest are {}. A seed may have made too many. Compare `kubectl get \
         internalsecrets -n {namespace}` with spec.inChunks.chunks of these ShootStates, and delete InternalSecrets that no \
         ShootState names; then check the seed that made the InternalSecrets",
        left_out.values().sum::<usize>(),
        left_out.len(),
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(states: &[(&str, usize)]) -> ChunksOfStates {
        let of = |state: &str, chunks: usize| -> BTreeSet<String> {
            (0..chunks)
                .map(|number| format!("{state}.state-1-{number}"))
                .collect()
        };
        states
            .iter()
            .map(|&(state, chunks)| (state.to_owned(), of(state, chunks)))
            .collect()
    }

    fn names(states: &[(&str, usize)]) -> BTreeSet<String> {
        chunks(states).into_values().flatten().collect()
    }

    fn left_out(states: &[(&str, usize)]) -> BTreeMap<String, usize> {
        states
            .iter()
            .map(|&(state, chunks)| (state.to_owned(), chunks))
            .collect()
    }

    #[test]
    fn a_flood_of_one_shoot_takes_no_right_to_another() {
        let named = at_most(6, chunks(&[("flood", 9), ("large", 3), ("small", 1)]));
        assert_eq!(named.names, names(&[("flood", 2), ("large", 3), ("small", 1)]));
        assert_eq!(named.left_out, left_out(&[("flood", 7)]));
        // Of two ShootStates with the same number, the first name comes first.
        let named = at_most(1, chunks(&[("b", 2), ("a", 2)]));
        assert_eq!(named.names, names(&[("a", 1)]));
        assert_eq!(named.left_out, left_out(&[("a", 1), ("b", 2)]));
    }

    #[test]
    fn nothing_is_left_out_below_the_bound() {
        let named = at_most(3, chunks(&[("a", 2), ("b", 1)]));
        assert_eq!(named.names, names(&[("a", 2), ("b", 1)]));
        assert!(named.left_out.is_empty());
        assert_eq!(at_most(0, ChunksOfStates::new()), NamedChunks::default());
    }

    #[test]
    fn the_report_names_the_largest_and_fits_into_an_event() {
        let left_out: BTreeMap<String, usize> = (1..=30)
            .map(|number| (format!("shoot-with-a-long-name-{number}"), number))
            .collect();
        let report = report("seed-a", "garden-dev", 4096, &left_out);
        assert!(report.contains("465 more exist"), "{report}");
        assert!(report.contains("shoot-with-a-long-name-30 (30)"), "{report}");
        assert!(!report.contains("shoot-with-a-long-name-1 (1)"), "{report}");
        assert!(report.chars().count() < 1000, "{}", report.len());
    }
}
