//! Refusals of the local etcd that no repetition helps against.

use crate::error::{Class, Error};

/// The text of etcd's error after alarm NOSPACE.
const NO_SPACE: &str = "database space exceeded";
/// Texts of etcd's errors, each with the remedy.
const FINAL: [(&str, &str); 6] = [
    (
        "request is too large",
        "raise --max-request-bytes of the local etcd",
    ),
    (
        "received message larger than max",
        "raise --max-request-bytes of the local etcd",
    ),
    (
        "too many operations in txn request",
        "raise --max-txn-ops of the local etcd",
    ),
    (
        "etcdserver: permission denied",
        "give the client's user the role root",
    ),
    ("user name is empty", "switch the authentication of users off"),
    ("invalid auth token", "switch the authentication of users off"),
];

/// The size of the lowest revision in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RevisionSize {
    pub(super) number: i64,
    pub(super) operations: usize,
    pub(super) bytes: usize,
}

/// Whether the local etcd refuses writes because its database is full.
pub(super) fn is_no_space(error: &Error) -> bool {
    error.class == Class::Etcd && error.message.contains(NO_SPACE)
}

/// An error that ends the follower, where a repetition cannot help. `size`: of the refused transaction.
pub(super) fn explain(error: Error, size: Option<RevisionSize>) -> Error {
    let remedy = FINAL
        .iter()
        .find_map(|(text, remedy)| error.message.contains(text).then_some(*remedy));
    let Some(remedy) = remedy else {
        return error;
    };
    let revision = size.map_or_else(
        || "a revision".to_owned(),
        |size| {
            format!(
                "revision {} ({} operations, {} bytes)",
                size.number, size.operations, size.bytes
            )
        },
    );
    let sentence = format!(
        "the local etcd cannot take {revision} of the source: {}; {remedy}",
        error.message
    );
    Error::new(Class::Configuration, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etcd_error(text: &str) -> Error {
        Error::new(
            Class::Etcd,
            format!("etcd failed while applying changes: etcdserver: {text}"),
        )
    }

    #[test]
    fn a_refusal_that_stays_ends_the_follower_and_names_the_revision() {
        let size = RevisionSize {
            number: 7,
            operations: 200,
            bytes: 4000,
        };
        let error = explain(etcd_error("too many operations in txn request"), Some(size));
        assert_eq!(error.class, Class::Configuration);
        for part in ["revision 7 (200 operations, 4000 bytes)", "--max-txn-ops"] {
            assert!(error.message.contains(part), "{error}");
        }
        let error = explain(etcd_error("request is too large"), None);
        assert!(error.message.contains("--max-request-bytes"), "{error}");
    }

    #[test]
    fn a_refusal_that_may_pass_is_repeated() {
        for text in [
            "request timed out",
            "too many requests",
            "mvcc: database space exceeded",
        ] {
            assert_eq!(explain(etcd_error(text), None).class, Class::Etcd, "{text}");
        }
        assert!(is_no_space(&etcd_error("mvcc: database space exceeded")));
        assert!(!is_no_space(&etcd_error("request timed out")));
    }
}
