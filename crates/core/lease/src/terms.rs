//! The terms that all holders of a lock must share, such as the list of controllers under the lock.
//!
//! A holder writes the terms with the holder's identity into the Lease: managers of other projects leave the
//! annotation of the last holder unchanged. A candidate that finds different terms of a living holder does
//! not take turns with the holder: the candidate fails, or waits until the holder has gone, see
//! [`LockTerms::waiting`]. The candidate waits as usual for a holder without terms, and for a free lock.

use std::collections::BTreeSet;

use k8s_openapi::api::coordination::v1::Lease;

use crate::ElectionRecord;

/// Annotation of the Lease: the holder's identity, a blank, and the digest of the terms.
const ANNOTATION: &str = "lease.repot.dev/terms";

/// Annotation of the Lease: the holder's identity and the entries of the terms, each in a line. Separate from
/// the digest, because earlier releases compare the digest as a whole.
const ENTRIES: &str = "lease.repot.dev/entries";

/// The terms of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTerms {
    digest: String,
    entries: BTreeSet<String>,
    exclusive: Option<BTreeSet<String>>,
    waits: bool,
}

impl LockTerms {
    /// LockTerms with this digest, a text without blanks. Two terms with the same digest are equal.
    #[must_use]
    pub fn new(digest: impl Into<String>) -> Self {
        Self {
            digest: digest.into(),
            entries: BTreeSet::new(),
            exclusive: None,
            waits: false,
        }
    }

    /// The entries that the digest covers, such as names of controllers. Written into the Lease, so that a
    /// candidate can compare the entries of the holder with the candidate's own work.
    #[must_use]
    pub fn with_entries(self, entries: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            entries: entries.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// The entries that this process works on outside of the lock. A holder with such an entry would do the
    /// same work a second time: beside such a holder, and beside a holder without known entries, the
    /// candidate fails at once. Without this function, the candidate fails at once beside any holder on
    /// different terms.
    #[must_use]
    pub fn with_exclusive(self, exclusive: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            exclusive: Some(exclusive.into_iter().map(Into::into).collect()),
            ..self
        }
    }

    /// Whether the candidate waits for a living holder on different terms without exclusive entries, instead
    /// of failing.
    #[must_use]
    pub fn waiting(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// The reaction to a holder on different terms with these entries.
    fn reaction(&self, theirs: Option<&BTreeSet<&str>>) -> Reaction {
        let work_twice = match (&self.exclusive, theirs) {
            (Some(exclusive), Some(theirs)) => theirs.iter().any(|entry| exclusive.contains(*entry)),
            _ => true,
        };
        match (work_twice, self.waits) {
            (true, _) => Reaction::FailAtOnce,
            (false, false) => Reaction::FailBesideLiving,
            (false, true) => Reaction::Wait,
        }
    }
}

impl From<&str> for LockTerms {
    fn from(digest: &str) -> Self {
        Self::new(digest)
    }
}

/// The reaction of a candidate to a holder on different terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Fail, also where the holder may be dead: waiting would let both processes do the same work.
    FailAtOnce,
    /// Fail as soon as the holder shows a sign of life. A dead holder is waited for as usual.
    FailBesideLiving,
    /// Wait as for any holder.
    Wait,
}

/// The terms of a holder, if those differ from the candidate's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// The digest of the holder's terms.
    pub(crate) theirs: String,
    pub(crate) reaction: Reaction,
}

/// Writes the terms of the holder `me`.
pub(crate) fn write(lease: &mut Lease, me: &str, terms: Option<&LockTerms>) {
    let Some(terms) = terms else { return };
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION.to_owned(), format!("{me} {}", terms.digest));
    if terms.entries.is_empty() {
        annotations.remove(ENTRIES);
        return;
    }
    let lines: Vec<&str> = terms.entries.iter().map(String::as_str).collect();
    annotations.insert(ENTRIES.to_owned(), format!("{me}\n{}", lines.join("\n")));
}

/// The terms of a holder other than `me`, if those terms differ from `ours`.
pub(crate) fn find_contradiction(lease: &Lease, me: &str, ours: Option<&LockTerms>) -> Option<Contradiction> {
    let ours = ours?;
    let holder = ElectionRecord::read(lease.spec.as_ref()).holder?;
    let annotations = lease.metadata.annotations.as_ref()?;
    let (by, theirs) = annotations.get(ANNOTATION)?.rsplit_once(' ')?;
    if holder == me || holder != by || theirs == ours.digest {
        return None;
    }
    let entries = annotations.get(ENTRIES).and_then(|text| entries_of(text, by));
    Some(Contradiction {
        theirs: theirs.to_owned(),
        reaction: ours.reaction(entries.as_ref()),
    })
}

/// The entries in the annotation, if this holder wrote the annotation.
fn entries_of<'t>(text: &'t str, holder: &str) -> Option<BTreeSet<&'t str>> {
    let mut lines = text.split('\n');
    (lines.next() == Some(holder)).then(|| lines.collect())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use rstest::rstest;

    use super::*;

    fn held(by: &str, terms: Option<(&str, &str)>) -> Lease {
        let mut lease = Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(by.to_owned()),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        if let Some((who, terms)) = terms {
            write(&mut lease, who, Some(&terms.into()));
        }
        lease
    }

    #[test]
    fn only_a_holder_that_says_something_else_contradicts() {
        let ours = LockTerms::new("one");
        let theirs = |lease: &Lease| {
            let found = find_contradiction(lease, "me", Some(&ours));
            found.map(|contradiction| contradiction.theirs)
        };
        assert_eq!(
            theirs(&held("other", Some(("other", "two")))).as_deref(),
            Some("two")
        );
        assert_eq!(theirs(&held("other", Some(("other", "one")))), None);
        assert_eq!(
            theirs(&held("other", None)),
            None,
            "one that knows nothing of terms"
        );
        assert_eq!(
            theirs(&held("other", Some(("third", "two")))),
            None,
            "left by the last holder"
        );
        assert_eq!(theirs(&held("", Some(("third", "two")))), None, "a free lock");
        assert_eq!(
            theirs(&held("me", Some(("me", "two")))),
            None,
            "ours of another time"
        );
        assert_eq!(
            find_contradiction(&held("other", Some(("other", "two"))), "me", None),
            None
        );
    }

    /// The reaction of a process that works on `main` outside of the lock to a holder with `theirs`.
    #[rstest]
    #[case::fewer_entries(&["a"], &["main"], Reaction::Wait)]
    #[case::more_entries(&["a", "b", "c"], &["main"], Reaction::Wait)]
    #[case::an_entry_that_this_process_works_on(&["a", "main"], &["main"], Reaction::FailAtOnce)]
    #[case::no_known_entries(&[], &["main"], Reaction::FailAtOnce)]
    fn a_holder_is_waited_for_unless_both_would_do_the_same_work(
        #[case] theirs: &[&str],
        #[case] exclusive: &[&str],
        #[case] expected: Reaction,
    ) {
        let mut lease = held("other", None);
        let written = LockTerms::new("two").with_entries(theirs.iter().copied());
        write(&mut lease, "other", Some(&written));
        let ours = LockTerms::new("one")
            .with_entries(["a", "b"])
            .with_exclusive(exclusive.iter().copied());
        let reaction = |ours: &LockTerms| {
            let found = find_contradiction(&lease, "me", Some(ours));
            found.map(|contradiction| contradiction.reaction)
        };
        assert_eq!(reaction(&ours.clone().waiting(true)), Some(expected));
        let of_failing = match expected {
            Reaction::Wait => Reaction::FailBesideLiving,
            reaction => reaction,
        };
        assert_eq!(reaction(&ours), Some(of_failing));
    }

    #[test]
    fn entries_of_a_former_holder_are_ignored() {
        let mut lease = held("other", None);
        let former = LockTerms::new("three").with_entries(["a"]);
        write(&mut lease, "former", Some(&former));
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), "other two".to_owned());
        let ours = LockTerms::new("one").with_exclusive(["main"]).waiting(true);
        let found = find_contradiction(&lease, "me", Some(&ours));
        assert_eq!(
            found.map(|contradiction| contradiction.reaction),
            Some(Reaction::FailAtOnce)
        );
    }
}
