//! A shoot on the way to a seed that fails, or that makes no progress.

use std::{pin::pin, time::Duration};

use api::gardencore::Shoot;
use futures::StreamExt;
use kube::{
    ResourceExt,
    runtime::{WatchStreamExt, watcher::watch_object},
};
use placement::{Journey, journey};
use tokio::time::{Instant, timeout_at};

use super::describe;
use crate::session::Session;

/// The longest pause between two states of a shoot that makes progress. Longer than a fence, and than the
/// verdict about a takeover takes.
const PROGRESS_WITHIN: Duration = Duration::from_secs(180);

/// The reason why the next shoots do not wait for a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The shoot fails, or makes no progress.
    Stalls,
    /// The shoot makes progress, and takes longer than the bound.
    IsSlow,
}

/// Ends as soon as the shoot fails by the given rule, has had the same state for [`PROGRESS_WITHIN`], or has
/// taken `within`. The owner of a shoot can let the progress go on for as long as the owner likes. The shoot
/// may still arrive afterwards.
pub async fn wait_for_delay(
    session: &Session,
    shoot: &Shoot,
    within: Duration,
    fails: impl Fn(&Shoot) -> bool,
) -> Delay {
    let slow_at = Instant::now() + within;
    Box::pin(watch_progress(session, shoot, slow_at, fails)).await
}

async fn watch_progress(
    session: &Session,
    shoot: &Shoot,
    slow_at: Instant,
    fails: impl Fn(&Shoot) -> bool,
) -> Delay {
    let shoots = session.shoots(&shoot.namespace().unwrap_or_default());
    let name = shoot.name_any();
    let mut changes = pin!(watch_object(shoots, &name).default_backoff());
    let (mut last, mut since, mut answers) = (None, Instant::now(), true);
    loop {
        let stalls_at = since + PROGRESS_WITHIN;
        // A garden that does not answer shows neither a stall nor a slow shoot: no state is known.
        let ends_at = if answers {
            slow_at.min(stalls_at)
        } else {
            stalls_at
        };
        let Ok(change) = timeout_at(ends_at, changes.next()).await else {
            return if ends_at == stalls_at {
                Delay::Stalls
            } else {
                Delay::IsSlow
            };
        };
        let Some(change) = change else {
            return Delay::Stalls;
        };
        answers = change.is_ok();
        let Ok(read) = change else {
            since = Instant::now();
            continue;
        };
        if read.as_ref().is_some_and(&fails) {
            return Delay::Stalls;
        }
        let state = read.as_ref().map(describe);
        if state != last {
            (last, since) = (state, Instant::now());
        }
    }
}

/// Whether the operation on a shoot that is between two seeds has reported errors.
#[must_use]
pub fn fails_on_the_way(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    journey(shoot) != Journey::Settled && status.is_some_and(|status| !status.last_errors.is_empty())
}

/// Whether the given seed has the shoot and cannot complete the control plane. Errors of the seed before do
/// not count.
#[must_use]
pub fn fails_on_seed(shoot: &Shoot, seed: &str) -> bool {
    let acting = shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    acting == Some(seed) && fails_on_the_way(shoot)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(acting: &str, last: &str, errors: &str) -> Shoot {
        let (type_, state) = last.split_once(' ').unwrap();
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: b}}\n\
             status: {{seedName: {acting}, lastErrors: [{errors}], lastOperation: {{type: {type_}, state: {state}, progress: 1, \
             description: d, lastUpdateTime: 2026-01-01T00:00:00Z}}}}\n"
        ))
        .unwrap()
    }

    #[test]
    fn errors_count_only_on_the_way_and_on_the_seed_that_takes_over() {
        const REFUSED: &str = "{description: the bucket refuses}";
        for (acting, last, errors, on_the_way, on_seed) in [
            // Errors of the dead seed, before the garden has decided.
            ("a", "Reconcile Error", REFUSED, false, false),
            ("a", "Migrate Error", REFUSED, true, false),
            ("b", "Restore Error", REFUSED, true, true),
            ("b", "Restore Processing", "", false, false),
            ("b", "Restore Succeeded", REFUSED, false, false),
        ] {
            let shoot = shoot(acting, last, errors);
            assert_eq!(fails_on_the_way(&shoot), on_the_way, "{acting} {last}");
            assert_eq!(fails_on_seed(&shoot, "b"), on_seed, "{acting} {last}");
        }
    }
}
