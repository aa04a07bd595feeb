//! Waits on a watch that a busy server does not end.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use kube::{
    Api, Resource,
    runtime::wait::{Condition, await_condition},
};
use serde::de::DeserializeOwned;
use testkit::WaitBound;

/// Pause after a failed watch.
const ANEW_AFTER: Duration = Duration::from_secs(1);

/// Waits until an object satisfies the condition, or is gone if the condition requires that. kube's own wait
/// ends with the first refused list; this wait starts again.
///
/// # Errors
/// The condition did not hold in time.
#[track_caller]
pub fn until<K>(
    api: &Api<K>,
    name: &str,
    within: Duration,
    done: impl Condition<K>,
) -> impl Future<Output = Result<Option<K>>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("{} {name}", K::kind(&()));
    let bound = WaitBound::new(what.clone(), within);
    async move {
        bound
            .timeout(without_bound(api, name, done))
            .await
            .with_context(|| format!("{what}: not so within {within:?}"))
    }
}

/// [`until`] for callers that set the bound of the wait.
pub async fn without_bound<K>(api: &Api<K>, name: &str, done: impl Condition<K>) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    loop {
        let holds = |object: Option<&K>| done.matches_object(object);
        match Box::pin(await_condition(api.clone(), name, holds)).await {
            Ok(found) => return found,
            Err(why) => println!("{} {name} is watched anew: {why}", K::kind(&())),
        }
        tokio::time::sleep(ANEW_AFTER).await;
    }
}
