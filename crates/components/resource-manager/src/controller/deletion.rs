//! The deletion of a ManagedResource: the objects are deleted first, unless `keepObjects` is set, or the
//! shoot has left the namespace.

use std::{sync::Arc, time::Duration};

use api::{meta::ConditionStatus, resources::ManagedResource};
use futures::{FutureExt, StreamExt, stream};
use runtime::{Error, Result, controller::Next};

use super::{Controller, HELD_REQUEUE, is_ignored, keeps, remove::Removed};
use crate::{
    names::RESOURCES_IGNORE,
    object::{Key, Owner, Phase},
    status::{self, Report, Verdict, some},
    target::Target,
    trouble::{Trouble, gravest},
    watches::Of,
};

/// Objects that are deleted at the same time.
const AT_ONCE: usize = 4;

/// The remaining objects.
#[derive(Default)]
struct Left {
    keys: Vec<Key>,
    troubles: Vec<Trouble>,
    /// A user has set `keepObjects`, or the shoot has left the namespace: all remaining objects stay.
    spared: bool,
}

impl Controller {
    /// [`Next::Change`]: no work is left.
    pub(super) async fn delete(&self, owner: &Owner) -> Result<Next> {
        let Some(resource) = self.read(owner).await? else {
            return Ok(Next::Change);
        };
        let keys = status::keys(&resource);
        if keeps(&resource) || keys.is_empty() {
            return Ok(Next::Change);
        }
        if self.ends_with_departure(owner, &resource).await? {
            return Ok(Next::Change);
        }
        if is_ignored(&resource) {
            let why = format!(
                "It is left alone, also in its deletion: take the annotation {RESOURCES_IGNORE} away, or set spec.keepObjects."
            );
            self.tell(owner, &resource, "ManagedResourceIgnored", why, None)
                .await?;
            return Err(Error::not_ready(
                HELD_REQUEUE,
                "it is left alone, also in its deletion",
            ));
        }
        self.ledger.knows(owner);
        let target = match self.targets.find_target(owner).await? {
            Ok(target) => target,
            Err(why) => {
                return self
                    .unreachable(owner, &resource, &why.to_string(), HELD_REQUEUE)
                    .await;
            }
        };
        let turn = target.turn().await;
        if let Err((after, why)) = &turn {
            let why = format!("the API server of the shoot does not answer: {why}");
            return self.unreachable(owner, &resource, &why, *after).await;
        }
        let deleting = |target| {
            let (resource, keys) = (&resource, keys);
            async move { self.delete_all(owner, resource, &target, keys).await }
        };
        let left = self.owned(owner, &target, deleting).await;
        drop(turn);
        let left = match left {
            Ok(left) => left,
            Err(refusal) => return self.refuse_deletion(owner, &resource, refusal).await,
        };
        if left.spared {
            // The shoot may have left since the begin.
            self.ends_with_departure(owner, &resource).await?;
            return Ok(Next::Change);
        }
        if left.keys.is_empty() {
            return Ok(Next::Change);
        }
        let words: Vec<String> = left.troubles.iter().map(Trouble::words).collect();
        let error = gravest(&left.troubles, &target);
        let reason = if error.is_failure() {
            "DeletionFailed"
        } else {
            "DeletionPending"
        };
        self.tell(owner, &resource, reason, some(&words), Some(left.keys))
            .await?;
        Err(error)
    }

    /// Whether the shoot has left the namespace. An Event then reports that the objects stay.
    async fn ends_with_departure(&self, owner: &Owner, resource: &ManagedResource) -> Result<bool> {
        let has_left = self.shoot_has_left(owner).await?;
        if has_left {
            let note = "Its objects stay in the shoot: the shoot has left this namespace for another seed.";
            self.events.normal(resource, "ObjectsLeft", note).await;
        }
        Ok(has_left)
    }

    /// Deletes the remaining objects, phase by phase. Namespaces and definitions follow after the objects
    /// inside.
    async fn delete_all(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        target: &Arc<Target>,
        keys: Vec<Key>,
    ) -> Left {
        let delete_claims = resource.spec.delete_persistent_volume_claims == Some(true);
        let mut left = Left::default();
        for phase in Phase::ALL.into_iter().rev() {
            let of_phase: Vec<&Key> = keys.iter().filter(|key| Phase::from_key(key) == phase).collect();
            if !left.keys.is_empty() || left.spared {
                left.keys.extend(of_phase.into_iter().cloned());
                continue;
            }
            let requests: Vec<_> = of_phase
                .into_iter()
                .map(|key| {
                    self.remove(owner, target, key, delete_claims)
                        .map(move |removed| (key, removed))
                        .boxed()
                })
                .collect();
            let removed: Vec<_> = stream::iter(requests).buffer_unordered(AT_ONCE).collect().await;
            for (key, removed) in removed {
                match removed {
                    Ok(Removed::Gone | Removed::Kept) => continue,
                    Ok(Removed::Spared) => left.spared = true,
                    Ok(Removed::Lingers(why, after)) => {
                        left.troubles
                            .push(Trouble::Awaited(format!("{key}: {why}"), after));
                        self.watch(owner, target, key);
                    }
                    Err(trouble) => left.troubles.push(trouble),
                }
                left.keys.push(key.clone());
            }
        }
        left
    }

    /// Watches the object, so that the end of the deletion is noticed. A process that has just started has no
    /// watch yet.
    fn watch(&self, owner: &Owner, target: &Arc<Target>, key: &Key) {
        let Some(served) = target.kinds.find_cached(key).filter(|served| served.watchable) else {
            return;
        };
        let mut items = self.ledger.items(owner).to_vec();
        if items.iter().any(|item| item.key.identity() == key.identity()) {
            return;
        }
        let watch = target.watches.watch_kind(&Of {
            client: target.lookout().client().clone(),
            permit: target.lookout().permit().clone(),
            scope: target.scope.clone(),
            kind: Arc::clone(&served),
        });
        items.push(crate::ledger::Item {
            key: key.clone(),
            judged: false,
            watch: Some(watch),
        });
        self.ledger.keeps(owner, items);
    }

    /// The objects are unreachable. If the namespace is being deleted, the whole control plane and the
    /// objects are deleted too. Otherwise the condition states the reason of the wait.
    pub(super) async fn unreachable(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        why: &str,
        after: Duration,
    ) -> Result<Next> {
        if self.namespace_goes(&owner.namespace).await? {
            let note =
                format!("Its objects were not deleted: {why}. The namespace goes, and the shoot with it.");
            self.events.warning(resource, "ObjectsLeft", &note).await;
            return Ok(Next::Change);
        }
        let message = format!(
            "Its objects cannot be deleted: {why}. It ends when that is over, when spec.keepObjects is true, or with its namespace."
        );
        self.tell(owner, resource, "DeletionPending", message, None)
            .await?;
        Err(Error::not_ready(after, why.to_owned()))
    }

    async fn tell(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        reason: &str,
        message: String,
        resources: Option<Vec<Key>>,
    ) -> Result<()> {
        let status = match reason {
            "DeletionFailed" => ConditionStatus::False,
            _ => ConditionStatus::Progressing,
        };
        let applied = Some(Verdict::new(status, reason, message));
        self.report(
            resource,
            owner,
            Report {
                applied,
                resources,
                ..Report::default()
            },
        )
        .await
    }
}
