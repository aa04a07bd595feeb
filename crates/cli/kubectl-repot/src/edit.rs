//! Edits of a Shoot that count only for the state that the decision was made on.
//!
//! A decision is made on a read Shoot, and the write has the `resourceVersion` of this Shoot as a
//! precondition. After a concurrent write and a pause the Shoot is read again and the decision is repeated.
//! If the concurrent write named a different seed, the command is refused: two users ask for different moves.

use std::time::Duration;

use api::gardencore::Shoot;
use backon::{BackoffBuilder, ExponentialBuilder};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{failure::Failure, session::Session};

/// The field manager of all writes.
pub const FIELD_MANAGER: &str = "kubectl-repot";

/// A gardenlet writes the status of a Shoot in the middle of an operation at most every few seconds, so a
/// few attempts suffice.
const ATTEMPTS: usize = 10;
/// Pause after the first attempt. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Bound of a pause, without the jitter.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The decision about a Shoot.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Apply this merge patch.
    Patch(Value),
    /// The Shoot has the wanted content already, with a sentence for people.
    Unchanged(String),
}

/// A Shoot after a decision.
#[derive(Clone, Debug)]
pub struct Edited {
    /// The Shoot as written, or as read where no write was needed.
    pub shoot: Box<Shoot>,
    /// The reason why no write was needed.
    pub unchanged: Option<String>,
}

/// Decides and writes until the write meets the state of the decision.
///
/// # Errors
/// A refusal where each attempt met a concurrent write: any editor of the Shoot can cause that.
pub async fn edit(
    session: &Session,
    read: Shoot,
    decide: impl Fn(&Shoot) -> Result<Edit, Failure>,
) -> Result<Edited, Failure> {
    let (namespace, name) = (read.namespace().unwrap_or_default(), read.name_any());
    let shoots = session.shoots(&namespace);
    let (named_at_first, uid) = (read.spec.seed_name.clone(), read.uid());
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let doing = format!("Shoot {namespace}/{name} cannot be changed");
    let mut shoot = Box::new(read);
    let mut pauses = pauses();
    loop {
        let patch = match decide(&shoot)? {
            Edit::Patch(patch) => with_precondition(patch, &shoot),
            Edit::Unchanged(why) => {
                return Ok(Edited {
                    shoot,
                    unchanged: Some(why),
                });
            }
        };
        let patch = Patch::Merge(patch);
        let request = shoots.patch(&name, &params, &patch);
        if let Some(written) = Box::pin(session.write(&doing, request)).await? {
            return Ok(Edited {
                shoot: Box::new(written),
                unchanged: None,
            });
        }
        let Some(pause) = pauses.next() else {
            return Err(each_attempt_failed(&doing));
        };
        tokio::time::sleep(pause).await;
        shoot = Box::new(Box::pin(session.shoot(&namespace, &name)).await?);
        if shoot.uid() != uid {
            return Err(Failure::refused(format!(
                "{doing}: the Shoot was deleted and created again; repeat the command"
            )));
        }
        if shoot.spec.seed_name != named_at_first {
            let named = shoot.spec.seed_name.as_deref().unwrap_or("no seed");
            return Err(Failure::refused(format!(
                "{doing}: a concurrent request has set spec.seedName to {named}; agree with the other user, and repeat the command"
            )));
        }
    }
}

/// The pauses between the attempts. The jitter separates two processes that edit the Shoot at once.
fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(ATTEMPTS - 1)
        .with_jitter()
        .build()
}

/// No failure of the garden, so that a drain goes on with the next shoot.
fn each_attempt_failed(doing: &str) -> Failure {
    Failure::refused(format!(
        "{doing}: each of {ATTEMPTS} attempts met a concurrent write; repeat the command"
    ))
}

fn with_precondition(mut patch: Value, read: &Shoot) -> Value {
    patch["metadata"]["resourceVersion"] = json!(read.resource_version());
    patch["metadata"]["uid"] = json!(read.uid());
    patch
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_write_has_the_version_that_was_read_as_a_precondition() {
        let read = serde_yaml_ng::from_str(
            "metadata: {name: demo, resourceVersion: '7', uid: u}\nspec: {region: r, provider: {type: t}}",
        )
        .unwrap();
        let patch = with_precondition(json!({"metadata": {"annotations": {"a": "b"}}}), &read);
        assert_eq!(
            patch,
            json!({"metadata": {"annotations": {"a": "b"}, "resourceVersion": "7", "uid": "u"}})
        );
    }

    #[test]
    fn attempts_have_growing_pauses_and_end_with_a_refusal() {
        let pauses: Vec<Duration> = pauses().collect();
        assert_eq!(pauses.len(), ATTEMPTS - 1);
        for (pause, shortest) in pauses.iter().zip([100, 200, 400, 800, 1000]) {
            let shortest = Duration::from_millis(shortest);
            assert!((shortest..=shortest * 2).contains(pause), "{pauses:?}");
        }
        let conflict = each_attempt_failed("Shoot garden-dev/demo cannot be changed");
        assert!(matches!(&conflict, Failure::Refused(_)), "{conflict}");
    }
}
