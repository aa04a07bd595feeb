//! The recorded state of the parts of a network: the ids, and the parts that EC2 does not list yet.
//!
//! EC2 is eventually consistent: a part that was just made may not be listed for some seconds, and EC2 has no
//! client tokens for most parts. Hence the [`Ledger`] notes a part before the call that makes the part, and
//! the part is looked for until EC2 lists the part or the bound has passed ([`crate::Ec2::listed_within`]).

use std::{collections::BTreeMap, future::Future, time::Duration};

use api::meta::ErrorCode;
use jiff::{SignedDuration, Timestamp};
use runtime::{Error, Result, clock};
use serde::{Deserialize, Serialize};

use crate::{Failed, Tagged, identity::HomeAccount};

/// Requeue delay for a part that EC2 does not list yet.
const LISTING_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Key of the VPC.
pub(super) const VPC: &str = "vpc";

/// `status.state`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The ids of EC2 by the names of the parts.
    pub ids: BTreeMap<String, String>,
    /// The time since when EC2 does not list a requested part. A part without an id has a call with an
    /// unknown answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unlisted: BTreeMap<String, Timestamp>,
    /// The account with the network, recorded before the VPC is made. Without this id (of a network that is
    /// older than the field), the id is recorded while EC2 shows the VPC.
    #[serde(default, rename = "accountID", skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The last failure of each part that EC2 accepted and could not make, until the part is available.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, Failure>,
    /// The uid of the Shoot, for a deletion without the Cluster of the Shoot.
    #[serde(default, rename = "shootUID", skip_serializing_if = "Option::is_none")]
    pub shoot_uid: Option<String>,
}

/// A part that EC2 accepted and could not make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The id of the part.
    pub id: String,
    /// EC2's code for the failure.
    pub code: String,
    /// EC2's sentence for the failure.
    pub message: String,
    /// The time when the failure was first seen.
    pub since: Timestamp,
}

impl Failure {
    /// The time until the part may be made again.
    pub(super) fn pause(&self, retry_after: Duration) -> Duration {
        let passed = clock::now().duration_since(self.since);
        let passed = Duration::try_from(passed).unwrap_or_default();
        retry_after.saturating_sub(passed)
    }
}

impl State {
    /// The VPC's id.
    #[must_use]
    pub fn vpc(&self) -> Option<&str> {
        self.ids.get(VPC).map(String::as_str)
    }

    /// The account with the network.
    #[must_use]
    pub fn home(&self) -> HomeAccount {
        HomeAccount::new(self.account_id.as_deref())
    }

    /// Whether EC2 may still list the part without a further call.
    fn is_awaited(&self, key: &str, bound: Duration) -> bool {
        self.unlisted.get(key).is_some_and(|since| {
            let bound = SignedDuration::try_from(bound).unwrap_or(SignedDuration::MAX);
            clock::now().duration_since(*since).abs() < bound
        })
    }

    /// Parts that may exist although these ids do not contain the part.
    pub(super) fn unlisted(&self, listed: &[&str], bound: Duration) -> Vec<String> {
        let is_listed = |key: &str| self.ids.get(key).is_some_and(|id| listed.contains(&id.as_str()));
        let keys = self.unlisted.keys();
        keys.filter(|key| self.is_awaited(key, bound) && !is_listed(key))
            .cloned()
            .collect()
    }
}

/// Keeps the [`State`] while a network is made.
pub trait Journal: Sync {
    /// Returns when the state outlives the process.
    ///
    /// # Errors
    /// The state could not be kept.
    fn save(&self, state: &State) -> impl Future<Output = Result<()>> + Send;
}

/// The state while a network is made.
pub(super) struct Ledger<'a, J> {
    state: State,
    saved: State,
    journal: &'a J,
    bound: Duration,
    network: &'a str,
    /// Whether the ledger only compares the answers of EC2 with the plan, and changes no part.
    is_confirming: bool,
    has_written: bool,
}

impl<'a, J: Journal> Ledger<'a, J> {
    /// `network`: the name of the network, for messages.
    pub fn open(known: Option<&State>, journal: &'a J, bound: Duration, network: &'a str) -> Self {
        let state = known.cloned().unwrap_or_default();
        Self {
            saved: state.clone(),
            state,
            journal,
            bound,
            network,
            is_confirming: false,
            has_written: false,
        }
    }

    /// From now on a change is an error: EC2 has to show all that was changed.
    pub fn confirm(&mut self) {
        self.is_confirming = true;
    }

    pub fn has_written(&self) -> bool {
        self.has_written
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Records the account of the keys. The keys can make or see the network.
    pub fn record_account(&mut self, id: String) {
        self.state.account_id = Some(id);
    }

    /// Records the uid of the Shoot.
    pub fn record_shoot(&mut self, uid: Option<&str>) {
        if let Some(uid) = uid {
            self.state.shoot_uid = Some(uid.to_owned());
        }
    }

    /// Announces a change of a part of the shoot.
    ///
    /// # Errors
    /// EC2 does not show the last change yet: [`Error::NotReady`].
    pub fn change(&mut self, key: &str) -> Result<()> {
        if self.is_confirming {
            return Err(self.not_listed(key));
        }
        self.has_written = true;
        Ok(())
    }

    /// The part to use of the parts that EC2 lists, and the remaining parts, for removal. The part in use
    /// comes first, then the known part, then the lowest id.
    ///
    /// # Errors
    /// EC2 does not list the part yet that was made: [`Error::NotReady`].
    pub fn choose<T: Tagged>(
        &mut self,
        key: &str,
        listed: Vec<T>,
        name: &str,
        is_used: impl Fn(&T) -> bool,
    ) -> Result<(Option<T>, Vec<T>)> {
        let mut listed: Vec<T> = listed.into_iter().filter(|part| part.name() == name).collect();
        let known = self.state.ids.get(key).cloned();
        let is_known = |part: &T| known.as_deref() == Some(part.id());
        let is_there = match &known {
            Some(_) => listed.iter().any(is_known),
            // A part of this name is the part with the unknown id.
            None => !listed.is_empty(),
        };
        if !is_there && self.state.is_awaited(key, self.bound) {
            return Err(self.not_listed(key));
        }
        listed.sort_by(|one, other| {
            let rank = |part: &T| (!is_used(part), !is_known(part), part.id().to_owned());
            rank(one).cmp(&rank(other))
        });
        let mut listed = listed.into_iter();
        let part = listed.next();
        if let Some(part) = &part {
            self.listed(key, part.id());
        }
        // While a part is not listed, the part in use is not certain.
        let others = if self.state.unlisted.is_empty() {
            listed.collect()
        } else {
            Vec::new()
        };
        Ok((part, others))
    }

    /// Announces a part of a kind that EC2 creates a second time without a conflict. Returns the time for the
    /// client token of the part.
    ///
    /// # Errors
    /// See [`Ledger::change`]; the state could not be kept.
    pub async fn begin(&mut self, key: &str) -> Result<Timestamp> {
        self.change(key)?;
        let now = clock::now();
        self.state.ids.remove(key);
        self.state.unlisted.insert(key.to_owned(), now);
        self.save().await?;
        Ok(now)
    }

    /// EC2 has made a part.
    pub fn made(&mut self, key: &str, id: &str) {
        self.state.ids.insert(key.to_owned(), id.to_owned());
        self.state.unlisted.insert(key.to_owned(), clock::now());
    }

    /// EC2 lists a part.
    pub fn listed(&mut self, key: &str, id: &str) {
        self.state.ids.insert(key.to_owned(), id.to_owned());
        self.shown(key);
    }

    /// EC2 shows the missing part.
    pub fn shown(&mut self, key: &str) {
        self.state.unlisted.remove(key);
    }

    /// EC2 accepted the call for a part and could not make the part.
    pub fn record_failure(&mut self, key: &str, failure: Failure) {
        self.state.failures.insert(key.to_owned(), failure);
    }

    /// The last failure of a part.
    pub fn failure(&self, key: &str) -> Option<&Failure> {
        self.state.failures.get(key)
    }

    /// The part is available.
    pub fn clear_failure(&mut self, key: &str) {
        self.state.failures.remove(key);
    }

    /// A call that was begun did not succeed.
    pub fn failed(&mut self, key: &str, failed: Failed) -> Error {
        if failed.is_undone() {
            self.shown(key);
            // Without a part there is no network yet, and the next keys may be keys of a different account.
            if self.state.ids.is_empty() {
                self.state.account_id = None;
            }
        }
        failed.into()
    }

    /// The error of a failed call for a part of a kind that EC2 refuses to create twice. `stranger` is the
    /// sentence for a foreign object in the way.
    pub fn refused(&mut self, key: &str, failed: Failed, stranger: impl FnOnce() -> String) -> Error {
        if !failed.is_conflict() {
            return failed.into();
        }
        let since = self.state.unlisted.entry(key.to_owned());
        since.or_insert_with(clock::now);
        if self.state.is_awaited(key, self.bound) {
            return self.not_listed(key);
        }
        Error::config(
            ErrorCode::ErrInfraDependencies,
            format!("{failed}; {}", stranger()),
        )
    }

    /// A part that was listed once is not listed.
    ///
    /// # Errors
    /// Always: [`Error::NotReady`] until the bound has passed, then `gone`.
    pub fn missing(&mut self, key: &str, gone: impl FnOnce() -> Error) -> Error {
        let since = self.state.unlisted.entry(key.to_owned());
        since.or_insert_with(clock::now);
        if self.state.is_awaited(key, self.bound) {
            return self.not_listed(key);
        }
        gone()
    }

    fn not_listed(&self, key: &str) -> Error {
        let id = self
            .state
            .ids
            .get(key)
            .map(|id| format!(" ({id})"))
            .unwrap_or_default();
        Error::not_ready(
            LISTING_POLL_INTERVAL,
            format!(
                "EC2 does not show {key}{id} of {} yet: a part may not be shown for {:?} after its call",
                self.network, self.bound
            ),
        )
    }

    /// Keeps the state after a change.
    ///
    /// # Errors
    /// The state could not be kept.
    pub async fn save(&mut self) -> Result<()> {
        if self.state != self.saved {
            self.journal.save(&self.state).await?;
            self.saved = self.state.clone();
        }
        Ok(())
    }
}
