//! The right by which a shoot is reconciled that this seed has already: that of its owner, beside the one of the gardenlet's lock
//! (R17-60). A gardenlet that is cut off ends what it has begun, and does not begin anew on a seed that has lost the shoot.
//!
//! Whoever makes, restores, hands over or deletes a shoot changes the owner's record itself, and acts by the lock alone; what
//! that reaches outside of the seed goes through those who ask (docs/ownership.md).

use std::{future::Future, sync::Arc, time::Duration};

use api::gardencore::{Shoot, ShootStatus};
use futures::future::{BoxFuture, FutureExt};
use kube::ResourceExt;
use owner_checks::{NotOwned, OwnerClaim, once_owned};
use ownership::{SecondWitness, Testimony};
use parts::{Facts, OwnerRecord};
use placement::{Operation, Role, role};
use runtime::{Cluster, Error, Garden, Result};

/// For the first answer. Longer than all servers of a zone and the garden may take to be silent.
const PATIENCE: Duration = Duration::from_secs(15);
/// Before it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Does `work` with facts by which everything leaves under the right that is needed.
///
/// # Errors
/// The right was not to be had, or has ended: `work` was dropped.
pub(super) async fn under_it<T, F>(facts: Facts, work: impl FnOnce(Facts) -> F) -> Result<T>
where
    F: Future<Output = T>,
{
    let Some(claim) = needed(&facts).await? else {
        return Ok(work(facts).await);
    };
    let watch = claim.watch(Arc::new(InGarden::of(&facts)))?;
    let lock = facts.seed.permit().clone();
    let patience = PATIENCE.max(claim.terms.settings().check_takes() * 2);
    let ended = once_owned(watch, &lock, patience, |right| {
        let mut facts = facts;
        facts.stay.seed = facts.stay.seed.under(&right);
        work(facts)
    });
    ended.await.map_err(|why| error_of(why, claim.epoch))
}

/// What is to be asked; nothing where this seed does not tell whose the shoot is, or not yet.
async fn needed(facts: &Facts) -> Result<Option<OwnerClaim>> {
    if facts.operation != Operation::Reconcile {
        return Ok(None);
    }
    OwnerRecord::claim(facts).await
}

fn error_of(why: NotOwned, epoch: i64) -> Error {
    match why {
        // Where the garden knows of another owner too, this is told to nobody: only who has the shoot writes its status.
        NotOwned::Lost(loss) => Error::transient(format!(
            "the garden says that this seed has the shoot, in ownership epoch {epoch}, and the owner's record does not: {loss}. \
             Nothing is done for the shoot"
        )),
        NotOwned::Unconfirmed(why) => Error::not_ready(
            ASK_AGAIN,
            format!("it is not confirmed that this seed has the shoot, in ownership epoch {epoch}: {why}"),
        ),
    }
}

/// The second witness of a gardenlet: the Shoot.
struct InGarden {
    garden: Garden,
    namespace: String,
    name: String,
    uid: Option<String>,
    seed: String,
}

impl InGarden {
    fn of(facts: &Facts) -> Self {
        Self {
            garden: facts.garden.clone(),
            namespace: facts.shoot.namespace().unwrap_or_default(),
            name: facts.shoot.name_any(),
            uid: facts.shoot.uid(),
            seed: facts.seed_object.name_any(),
        }
    }
}

impl SecondWitness for InGarden {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        async {
            let shoots = self.garden.namespaced::<Shoot>(&self.namespace);
            match shoots.get_opt(&self.name).await {
                Ok(found) => testimony(found.as_ref(), self.uid.as_deref(), &self.seed),
                Err(error) => Testimony::Silent(format!("the garden: {error}")),
            }
        }
        .boxed()
    }
}

/// What the Shoot says of a seed. The seed to which it was given acts in its epoch, and nobody else does.
fn testimony(found: Option<&Shoot>, uid: Option<&str>, seed: &str) -> Testimony {
    let Some(shoot) = found.filter(|shoot| shoot.metadata.uid.as_deref() == uid) else {
        return Testimony::Missing;
    };
    let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
    if role(shoot, seed) == Role::Owner {
        Testimony::Owned { epoch, left: None }
    } else {
        Testimony::Claimed { epoch }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn shoot(seed: &str, epoch: i64) -> Shoot {
        let shoot = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
            "spec": {"seedName": seed, "provider": {"type": "local"}, "region": "local",
                "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": seed, "ownership": {"epoch": epoch}},
        });
        serde_json::from_value(shoot).unwrap()
    }

    #[test]
    fn the_shoot_is_the_second_witness() {
        let mine = shoot("seed-a", 3);
        let said = testimony(Some(&mine), Some("u"), "seed-a");
        assert_eq!(said, Testimony::Owned { epoch: 3, left: None });
        // Another one has it: by its epoch whoever asks knows that it is a later one.
        let theirs = shoot("seed-b", 4);
        let said = testimony(Some(&theirs), Some("u"), "seed-a");
        assert_eq!(said, Testimony::Claimed { epoch: 4 });
        assert_eq!(testimony(None, Some("u"), "seed-a"), Testimony::Missing);
        assert_eq!(testimony(Some(&mine), Some("v"), "seed-a"), Testimony::Missing);
    }

    #[test]
    fn what_is_lost_is_told_and_what_is_not_confirmed_is_waited_for() {
        let lost = error_of(NotOwned::Lost(ownership::Loss::LaterEpoch(4)), 3);
        assert!(matches!(lost, Error::Transient(_)), "{lost}");
        let waits = error_of(NotOwned::Unconfirmed("nobody".into()), 3);
        assert!(matches!(waits, Error::NotReady { .. }), "{waits}");
    }
}
