//! Access of a process to EC2: a connection pool for all accounts, and a request rate limit for each account
//! in a region.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use api::meta::ErrorCode;
use permit::Permit;
use permit_object_store::{ConnectionPool, external_credentials};
use runtime::{Error, Result, client::Credentials};
use tokio::time::Instant;

use crate::{Ec2, account::Account, client, pace::Pace};

/// Timeout of a call. Longer than EC2 takes for any call.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Time for a connection; short, so that a region that does not answer occupies no worker.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long EC2 may not list a part of a network that was just made.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// The access of a process to EC2. Clones share connections and paces.
#[derive(Clone)]
pub struct Ec2Access(Arc<Shared>);

struct Shared {
    endpoint: Option<String>,
    listed_within: Duration,
    // The first call opens the pool: the process has chosen a TLS provider by then.
    pool: OnceLock<ConnectionPool>,
    /// By access key and region.
    paces: Mutex<BTreeMap<(String, String), Arc<Pace>>>,
}

impl Ec2Access {
    /// `endpoint` replaces the address of each region, for tests.
    #[must_use]
    pub fn new(endpoint: Option<String>) -> Self {
        Self::with_bound(endpoint, LISTED_WITHIN)
    }

    /// As [`Ec2Access::new`], with a different bound for [`Ec2::listed_within`], for tests.
    #[must_use]
    pub fn with_bound(endpoint: Option<String>, listed_within: Duration) -> Self {
        Self(Arc::new(Shared {
            endpoint,
            listed_within,
            pool: OnceLock::new(),
            paces: Mutex::default(),
        }))
    }

    /// The address that replaces the address of each region.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.0.endpoint.as_deref()
    }

    /// EC2 in a region, for the account of these credentials alone. This function makes no request.
    ///
    /// # Errors
    /// The Secret lacks a key or names credentials outside the Secret, or region or endpoint are invalid.
    pub fn open(&self, credentials: &Credentials, region: &str, permit: &Permit) -> Result<Ec2> {
        let endpoint = client::endpoint(region, self.endpoint())?;
        refuse_external_credentials(credentials)?;
        let account = Account::from_secret(credentials)?;
        let pool = self
            .0
            .pool
            .get_or_init(|| ConnectionPool::new(CONNECT_WITHIN, ANSWER_WITHIN));
        Ok(Ec2 {
            client: pool.client(permit),
            pace: self.pace(account.key_id(), region),
            account,
            region: region.to_owned(),
            endpoint,
            listed_within: self.0.listed_within,
        })
    }

    /// The pace of an account in a region. A pace at rest that no client has is dropped: access keys are
    /// rotated.
    fn pace(&self, key_id: &str, region: &str) -> Arc<Pace> {
        let mut paces = self.0.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        paces.retain(|_, pace| Arc::strong_count(pace) > 1 || !pace.is_at_rest(now));
        Arc::clone(paces.entry((key_id.to_owned(), region.to_owned())).or_default())
    }
}

/// A user writes the Secret of a Shoot. A role, a file, a program or an endpoint in the Secret would make a
/// process of the seed act with the rights of the seed.
fn refuse_external_credentials(credentials: &Credentials) -> Result<()> {
    let keys = || credentials.data().keys().map(String::as_str);
    let endpoint = keys().find(|key| key.eq_ignore_ascii_case("endpoint"));
    match external_credentials(keys()).or(endpoint) {
        None => Ok(()),
        Some(key) => Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the Secret {} has the key {key:?}: roles, token files, profiles, programs and endpoints are not used for the account of \
                 a Shoot; remove the key, and use accessKeyID, secretAccessKey and, for temporary keys, sessionToken",
                credentials.origin()
            ),
        )),
    }
}

impl Default for Ec2Access {
    fn default() -> Self {
        Self::new(None)
    }
}

impl fmt::Debug for Ec2Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ec2Access")
            .field("endpoint", &self.0.endpoint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
