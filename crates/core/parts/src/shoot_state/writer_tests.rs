#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn nobody_writes_over_a_later_epoch() {
    for (written, epoch, may) in [
        (1, 1, true),
        (1, 2, true),
        (2, 2, true),
        (2, 1, false),
        (3, 1, false),
    ] {
        let checked = check_epoch("web", written, epoch);
        assert_eq!(checked.is_ok(), may, "{written} {epoch}");
        assert!(may || checked.unwrap_err().class() == "NotOwner");
    }
    assert_eq!(omit_first_epoch(1), None);
    assert_eq!(omit_first_epoch(2), Some(2));
}

#[test]
fn a_state_above_the_bounds_of_an_object_or_of_a_policy_is_written_in_chunks() {
    assert!(fits_here(MOST_HERE, MOST_ENTRIES));
    assert!(!fits_here(MOST_HERE + 1, 1));
    assert!(!fits_here(1, MOST_ENTRIES + 1));
    let policy = include_str!("../../../../../charts/garden/files/policies/gardenlet-project-namespace.yaml");
    // The policy has room for a claim of an attempt, and for an addition to the list of leftovers.
    let most = MOST_HERE + 65_536;
    for bound in [
        format!("variables.entries.size() <= {MOST_ENTRIES}"),
        format!("variables.size <= {most}"),
    ] {
        assert!(policy.contains(&bound), "{bound}");
    }
}

/// The policy counts the bytes that etcd stores, and not the bytes that the writer sends.
#[test]
fn a_text_counts_with_its_escape_sequences_and_spaces() {
    for (text, bytes) in [
        (r#"{"a":"b","c":[1,2]}"#, 21),
        ("<>&", 18),
        ("\u{7f}", 6),
        (r"\u0007\n", 8),
        ("\u{fc}\u{200b}", 12),
        ("\u{1f980}", 10),
        // The policy reads 0.000000.
        ("[1e-7,1]", 29),
    ] {
        assert_eq!(stored_bytes(text.as_bytes()), bytes, "{text:?}");
    }
    assert!(!fits_here(stored_bytes("<".repeat(MOST_HERE / 4).as_bytes()), 1));
}

#[test]
fn the_number_of_an_attempt_never_starts_again() {
    assert_eq!(next_number("web", 6).unwrap(), 7);
    assert_eq!(next_number("web", HIGHEST_NUMBER - 1).unwrap(), HIGHEST_NUMBER);
    for last in [HIGHEST_NUMBER, i64::MAX] {
        assert_eq!(next_number("web", last).unwrap_err().class(), "Config", "{last}");
    }
}
