//! Waiting on a watch, never on a poll, and never without a bound.

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kube::{Api, Resource, runtime::wait::await_condition};
use serde::de::DeserializeOwned;

use crate::{Error, Result, client::wait_progress};

/// The verdict on an awaited object.
pub enum WaitState {
    /// The condition holds.
    Done,
    /// Not yet, and why (for the sentence when time runs out).
    Wait(String),
    /// The condition cannot hold any more unless a person or process acts: stop waiting now.
    Fail(Error),
}

/// Kinds that can be awaited, including kinds that are only known by name.
pub trait Watched: Resource + Clone + Debug + DeserializeOwned + Send + 'static {}
impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> Watched for K {}

/// Watches an object until `look` returns `Done` or `Fail`, for `timeout` at most. `look` gets `None` while
/// the object does not exist. Returns the object as read when the condition held.
///
/// # Errors
/// The error of `look`; [`Error::NotReady`] with the last reason at the timeout; a refusal of the watch by
/// the server.
pub async fn until<K: Watched>(
    api: &Api<K>,
    name: &str,
    timeout: Duration,
    mut look: impl FnMut(Option<&K>) -> WaitState + Send,
) -> Result<Option<K>> {
    let title = title(api.resource_url(), name);
    let last = Mutex::new((&mut look, WaitState::Wait("it was not seen yet".into())));
    let condition = |object: Option<&K>| {
        let Ok(mut last) = last.lock() else { return true };
        let seen = (last.0)(object);
        if let WaitState::Wait(why) = &seen {
            wait_progress::report_reason(&format!("{title}: {why}"));
        }
        let stop = !matches!(seen, WaitState::Wait(_));
        last.1 = seen;
        stop
    };
    let outcome = tokio::time::timeout(timeout, await_condition(api.clone(), name, condition)).await;
    let (_, seen) = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (outcome, seen) {
        (_, WaitState::Fail(error)) => Err(error),
        (Ok(object), WaitState::Done) => Ok(object?),
        (Ok(other), WaitState::Wait(why)) => {
            Err(other.err().map_or_else(|| Error::transient(why), Error::from))
        }
        (Err(_), WaitState::Done) => Err(Error::bug("a wait ended after its condition held")),
        (Err(_), WaitState::Wait(why)) => Err(Error::not_ready(
            Duration::from_secs(5),
            format!("{title} was not ready within {timeout:?}: {why}"),
        )),
    }
}

/// The name of an object that need not exist, for messages: the last part of the API path and the object
/// name.
fn title(url: &str, name: &str) -> String {
    let plural = url.rsplit('/').next().unwrap_or_default();
    format!("{plural}/{name}")
}

/// Waits until an object is gone.
///
/// # Errors
/// As for [`until`].
pub async fn until_gone<K: Watched>(api: &Api<K>, name: &str, timeout: Duration) -> Result<()> {
    until(api, name, timeout, |object: Option<&K>| match object {
        None => WaitState::Done,
        Some(object) => WaitState::Wait(describe_deletion(object)),
    })
    .await
    .map(|_| ())
}

fn describe_deletion<K: Resource>(object: &K) -> String {
    let meta = object.meta();
    match (
        &meta.deletion_timestamp,
        meta.finalizers.as_deref().unwrap_or_default(),
    ) {
        (None, _) => "it exists and is not being deleted".into(),
        (Some(_), []) => "it is being deleted".into(),
        (Some(_), finalizers) => format!("it is being deleted and waits for {}", finalizers.join(", ")),
    }
}
