//! Waits for a state of a Shoot, by a watch and with a bound.

use std::{pin::pin, time::Duration};

use api::gardencore::Shoot;
use futures::StreamExt;
use kube::{
    Api,
    runtime::{WatchStreamExt, watcher::watch_object},
};

use crate::{
    failure::{Failure, is_lasting},
    terminal::one_line,
};

/// The verdict on a state of a Shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The awaited state, with a result.
    Done(T),
    /// The awaited state has not come yet, with a sentence about the present state.
    Waiting(String),
}

/// Receives a sentence about each new state.
pub type Report<'a> = &'a dyn Fn(&str);

/// Watches a Shoot until `check` gives a result, for `within` at most. `check` gets `None` while no Shoot has
/// the name. `goal` names the awaited state in an error. A garden that does not answer for a while ends no
/// wait before the bound.
pub async fn follow<T>(
    shoots: Api<Shoot>,
    name: &str,
    goal: &str,
    within: Duration,
    report: Report<'_>,
    check: impl Fn(Option<&Shoot>) -> Result<Step<T>, Failure>,
) -> Result<T, Failure> {
    let mut last = "no state of the Shoot was read".to_owned();
    let watched = Box::pin(async {
        let mut changes = pin!(watch_object(shoots, name).default_backoff());
        while let Some(change) = changes.next().await {
            let state = match change {
                Ok(shoot) => match check(shoot.as_ref())? {
                    Step::Done(result) => return Ok(result),
                    Step::Waiting(state) => state,
                },
                Err(error) => {
                    let failure = Failure::from_watch(goal, &error);
                    if is_lasting(&error) {
                        return Err(failure);
                    }
                    failure.to_string()
                }
            };
            if state != last {
                report(&one_line(&state));
                last = state;
            }
        }
        Err(Failure::failed(format!(
            "{goal}: the watch of the Shoot has ended"
        )))
    });
    let ended = tokio::time::timeout(within, watched).await;
    ended.unwrap_or_else(|_| {
        Err(Failure::failed(format!(
            "{goal}: not within {} s; the last state: {last}",
            within.as_secs()
        )))
    })
}
