//! The terms that all holders of a lock must share, such as the list of controllers under the lock.
//!
//! A holder writes the terms with the holder's identity into the Lease: managers of other projects leave the
//! annotation of the last holder unchanged. A candidate that finds different terms does not wait but fails,
//! because the configuration of the two processes is wrong: both would take turns on different terms. The
//! candidate waits as usual for a holder without terms, and for a free lock.

use k8s_openapi::api::coordination::v1::Lease;

use crate::Record;

/// Annotation of the Lease: the holder's identity, a blank, and the terms.
const ANNOTATION: &str = "lease.repot.dev/terms";

/// Writes the terms of the holder `me`.
pub(crate) fn write(lease: &mut Lease, me: &str, terms: Option<&str>) {
    if let Some(terms) = terms {
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), format!("{me} {terms}"));
    }
}

/// The terms of a holder other than `me`, if those terms differ from `ours`.
pub(crate) fn contradicting<'a>(lease: &'a Lease, me: &str, ours: Option<&str>) -> Option<&'a str> {
    let holder = Record::read(lease.spec.as_ref()).holder?;
    let (by, theirs) = lease
        .metadata
        .annotations
        .as_ref()?
        .get(ANNOTATION)?
        .rsplit_once(' ')?;
    (holder != me && holder == by && theirs != ours?).then_some(theirs)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;

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
            write(&mut lease, who, Some(terms));
        }
        lease
    }

    #[test]
    fn only_a_holder_that_says_something_else_contradicts() {
        let of = |lease: &Lease| contradicting(lease, "me", Some("one")).map(ToOwned::to_owned);
        assert_eq!(of(&held("other", Some(("other", "two")))).as_deref(), Some("two"));
        assert_eq!(of(&held("other", Some(("other", "one")))), None);
        assert_eq!(of(&held("other", None)), None, "one that knows nothing of terms");
        assert_eq!(
            of(&held("other", Some(("third", "two")))),
            None,
            "left by the last holder"
        );
        assert_eq!(of(&held("", Some(("third", "two")))), None, "a free lock");
        assert_eq!(of(&held("me", Some(("me", "two")))), None, "ours of another time");
        assert_eq!(
            contradicting(&held("other", Some(("other", "two"))), "me", None),
            None
        );
    }
}
