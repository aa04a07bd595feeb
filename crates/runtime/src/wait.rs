//! Waiting on a watch, never on a poll, and never without a bound.

use std::time::Duration;

use kube::{Api, runtime::wait::await_condition};

use crate::{Error, Result, apply::Object};

/// What a look at an awaited object says.
pub enum Look {
    /// The condition holds.
    Done,
    /// Not yet, and why (for the sentence when time runs out).
    Wait(String),
    /// It cannot hold any more without someone acting: stop waiting now.
    Fail(Error),
}

/// Watches one object until `look` says `Done` or `Fail`, for `timeout` at most. `look` gets `None` while the object does
/// not exist. Returns the object as it was when the condition held.
pub async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    timeout: Duration,
    mut look: impl FnMut(Option<&K>) -> Look + Send,
) -> Result<Option<K>> {
    let last = std::sync::Mutex::new(Look::Wait("it was not seen yet".into()));
    let look = std::sync::Mutex::new(&mut look);
    let condition = |object: Option<&K>| {
        let Ok(mut look) = look.lock() else { return true };
        let seen = look(object);
        let stop = !matches!(seen, Look::Wait(_));
        if let Ok(mut last) = last.lock() {
            *last = seen;
        }
        stop
    };
    let outcome = tokio::time::timeout(timeout, await_condition(api.clone(), name, condition)).await;
    let seen = last
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match (outcome, seen) {
        (_, Look::Fail(error)) => Err(error),
        (Ok(object), Look::Done) => Ok(object?),
        (Ok(other), Look::Wait(why)) => Err(other.err().map_or_else(|| Error::transient(why), Error::from)),
        (Err(_), Look::Done) => Err(Error::bug("a wait ended after its condition held")),
        (Err(_), Look::Wait(why)) => Err(Error::not_ready(
            Duration::from_secs(5),
            format!("{} {name} was not ready within {timeout:?}: {why}", K::kind(&())),
        )),
    }
}

/// Waits until an object is gone.
pub async fn until_gone<K: Object>(api: &Api<K>, name: &str, timeout: Duration) -> Result<()> {
    until(api, name, timeout, |object: Option<&K>| match object {
        None => Look::Done,
        Some(object) => Look::Wait(describe_deletion(object)),
    })
    .await
    .map(|_| ())
}

fn describe_deletion<K: Object>(object: &K) -> String {
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
