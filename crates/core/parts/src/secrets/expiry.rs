//! The end of validity of the certificates of each shoot, for a metric of the process.
//!
//! The secrets manager renews derived certificates in time. So an early end belongs to a shoot that was not
//! reconciled for long, or to an authority at the end of the life of the authority.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;

use super::{
    config::{CARRIED, DERIVED},
    plan::{self, Existing},
};

/// By namespace, as of the last run of the secrets manager in this process. An entry for each shoot of the
/// seed, with some hundred bytes.
static FIRST: Mutex<BTreeMap<String, FirstExpiry>> = Mutex::new(BTreeMap::new());

/// The certificate of a control plane that expires first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstExpiry {
    /// Name of the Secret.
    pub secret: &'static str,
    /// End of validity.
    pub end: Timestamp,
}

/// The certificate that expires first in the namespace of a shoot. `None` before the first run of the secrets
/// manager in this process.
#[must_use]
pub fn first_expiry(namespace: &str) -> Option<FirstExpiry> {
    let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.get(namespace).cloned()
}

/// Drops the entry of a shoot that is gone, or that the seed leaves. Otherwise the memory of the process
/// grows with each Shoot that is created and deleted.
pub fn forget_first_expiry(namespace: &str) {
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.remove(namespace);
}

/// Records the Secrets of a namespace after a run.
pub(super) fn record(namespace: &str, secrets: &Existing) {
    let found = find_first(secrets);
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    match found {
        Some(found) => first.insert(namespace.to_owned(), found),
        None => first.remove(namespace),
    };
}

/// Only Secrets of the table count: a shoot has further certificates of users, and these expire by intention.
fn find_first(secrets: &Existing) -> Option<FirstExpiry> {
    let names = CARRIED.iter().chain(DERIVED).copied();
    let ends = names.filter_map(|secret| {
        let end = plan::valid_until(secrets.get(secret)?)?;
        Some(FirstExpiry { secret, end })
    });
    ends.min_by_key(|expiry| expiry.end)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;
    use crate::secrets::config::{CA, KUBE_SCHEDULER, STATIC_TOKEN};

    fn secret(end: &str) -> Secret {
        serde_json::from_value(json!({"metadata": {"labels": {(constants::VALID_UNTIL_TIME): end}}})).unwrap()
    }

    #[test]
    fn the_first_end_of_the_table_counts() {
        let mut secrets = Existing::new();
        assert_eq!(find_first(&secrets), None);
        for (name, end) in [
            (CA, "2000000000"),
            (KUBE_SCHEDULER, "1900000000"),
            ("user-kubeconfig", "1700000000"),
        ] {
            secrets.insert(name.to_owned(), secret(end));
        }
        secrets.insert(STATIC_TOKEN.to_owned(), Secret::default());
        let expected = FirstExpiry {
            secret: KUBE_SCHEDULER,
            end: Timestamp::from_second(1_900_000_000).unwrap(),
        };
        assert_eq!(find_first(&secrets), Some(expected.clone()));
        record("shoot--test--expiry", &secrets);
        assert_eq!(first_expiry("shoot--test--expiry"), Some(expected));
        record("shoot--test--expiry", &Existing::new());
        assert_eq!(first_expiry("shoot--test--expiry"), None);
    }

    /// A member creates and deletes Shoots, under new names for a whole day.
    #[test]
    fn a_shoot_that_is_gone_takes_no_memory() {
        let namespace = "shoot--test--gone";
        let secrets = Existing::from([(CA.to_owned(), secret("2000000000"))]);
        record(namespace, &secrets);
        record("shoot--test--stays", &secrets);
        forget_first_expiry(namespace);
        assert_eq!(first_expiry(namespace), None);
        assert!(first_expiry("shoot--test--stays").is_some());
        forget_first_expiry("shoot--test--stays");
    }
}
