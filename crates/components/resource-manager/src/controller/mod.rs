//! The controller of ManagedResources: finds the cluster, applies or deletes, and reports.
//!
//! | file | content |
//! |---|---|
//! | `apply` | a whole ManagedResource, in the phases of `object/order.rs`, and the result |
//! | `place` | the kind and scope of each object in the cluster |
//! | `send` | the requests for a single object, and the wait for a new definition |
//! | `ownership` | the ManagedResource that manages an existing object |
//! | `right` | the right to write to a shoot: the lock and the owner of the shoot |
//! | `prune`, `remove` | the deletion of unwanted objects, and of a single object |
//! | `deletion` | the deletion of a ManagedResource |
//! | `secrets` | the Secrets with the manifests |

mod apply;
mod deletion;
mod ownership;
mod place;
mod prune;
mod remove;
mod right;
mod secrets;
mod send;

use std::{sync::Arc, time::Duration};

use api::{meta::ConditionStatus, resources::ManagedResource};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use owner_checks::SharedChecks;
use runtime::{
    Result,
    client::{Cluster, Seed},
    clock::now_k8s,
    controller::{Events, Next, Reconciler},
    error::Explain,
};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::{
    ledger::{Ledger, Todo},
    names::{FINALIZER, MANAGER, RESOURCES_IGNORE},
    numbers::Numbers,
    object::{Owner, is_true},
    status::{self, Report, Verdict},
    target::{Target, Targets},
    trouble::gravest,
    watches::State,
};

/// Requeue interval of an application or deletion that is held back, for example by the namespace: the
/// controller does not watch the namespace.
const HELD_REQUEUE: Duration = Duration::from_secs(30);

/// A share of the concurrent work; an error when the process ends.
type Share<'a> = Result<SemaphorePermit<'a>, AcquireError>;

/// The controller of ManagedResources in a seed.
pub struct Controller {
    pub(crate) seed: Seed,
    pub(crate) targets: Arc<Targets>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) owners: SharedChecks,
    pub(crate) events: Events,
    pub(crate) numbers: Numbers,
    /// Permits for ManagedResources that are processed at the same time, in all clusters.
    pub(crate) work: Semaphore,
}

impl Controller {
    fn api(&self, owner: &Owner) -> Api<ManagedResource> {
        self.seed.namespaced(&owner.namespace)
    }

    /// Reads the present object: the cache may be older than a user's `keepObjects`.
    async fn read(&self, owner: &Owner) -> Result<Option<ManagedResource>> {
        let read = self.api(owner).get_opt(&owner.name).await;
        read.context("could not read the ManagedResource")
    }

    /// The same, or `None` if there is no longer an object to apply: the cache will report that change.
    async fn read_to_apply(&self, owner: &Owner) -> Result<Option<ManagedResource>> {
        let read = self.read(owner).await?;
        let is_theirs = |resource: &ManagedResource| {
            resource.metadata.deletion_timestamp.is_none()
                && !is_ignored(resource)
                && Owner::from_resource(resource).as_ref() == Some(owner)
        };
        Ok(read.filter(is_theirs))
    }

    /// Writes the changed part of the status.
    async fn report(&self, resource: &ManagedResource, owner: &Owner, report: Report) -> Result<()> {
        let Some(body) = status::body(resource, report, &now_k8s()) else {
            return Ok(());
        };
        MANAGER
            .merge_status(&self.api(owner), &owner.name, &body)
            .await
            .map(drop)
    }

    /// The health of a ManagedResource's objects, as seen by the watches.
    fn judge(&self, owner: &Owner) -> Report {
        let items = self.ledger.items(owner);
        let judged = items.iter().filter(|item| item.judged);
        let states = judged.map(|item| {
            let seen = item.watch.as_ref().map(|watch| watch.state(&item.key));
            (
                &item.key,
                seen.unwrap_or_else(|| State::Seen(crate::health::Health::default())),
            )
        });
        let (healthy, progressing) = status::judged(states);
        Report {
            healthy: Some(healthy),
            progressing: Some(progressing),
            ..Report::default()
        }
    }

    /// Applies the ManagedResource if necessary, and reports the state. `share`: the share under which the
    /// ManagedResource was read.
    async fn bring_about(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        target: &Arc<Target>,
        share: Share<'_>,
    ) -> Result<Next> {
        let (uid, generation) = (resource.uid(), resource.metadata.generation);
        match self.ledger.begin(owner, uid.as_deref(), generation, target) {
            // The objects are as applied. The condition may tell of a time in which the API server was away.
            Todo::Judge => {
                let report = Report {
                    applied: Some(Verdict::all_applied()),
                    ..self.judge(owner)
                };
                self.report(resource, owner, report).await?;
                return Ok(Next::Change);
            }
            Todo::Later(after) => return Ok(Next::After(after)),
            Todo::Apply => {}
        }
        drop(share);
        let applying = |target| async move {
            // Read again: the object may have changed while the work waited for the right and a share.
            let Some(resource) = self.read_to_apply(owner).await? else {
                return Ok(None);
            };
            if self.shoot_has_left(owner).await? {
                let why = "the shoot has left this namespace for another seed";
                return Err(runtime::Error::not_ready(HELD_REQUEUE, why));
            }
            let applied = self.apply_all(owner, &resource, &target).await?;
            Ok(Some((applied, resource.metadata.generation)))
        };
        let outcome = match Box::pin(self.owned(owner, target, applying)).await {
            Ok(outcome) => outcome?,
            Err(refusal) => return self.refuse(owner, resource, refusal).await,
        };
        let Some((outcome, generation)) = outcome else {
            return Ok(Next::Change);
        };
        let applied = outcome.verdict.unwrap_or_else(Verdict::all_applied);
        let judged = match &outcome.checksum {
            // No object was changed now or before.
            None if self.ledger.items(owner).is_empty() => Report::default(),
            _ => self.judge(owner),
        };
        let report = Report {
            applied: Some(applied),
            resources: outcome.resources,
            checksum: outcome.checksum,
            observed: generation,
            ..judged
        };
        // The apply has recorded new objects in the status, so the report needs the present status.
        if let Some(resource) = self.read(owner).await? {
            self.report(&resource, owner, report).await?;
        }
        if outcome.troubles.is_empty() {
            self.ledger.done(owner);
            return Ok(Next::Change);
        }
        Err(gravest(&outcome.troubles, target))
    }

    /// Removes all state of a ManagedResource.
    fn forget(&self, owner: &Owner) {
        self.ledger.forget(owner);
        let scope = crate::watches::Scope::Shoot(owner.namespace.as_str().into());
        if !owner.in_seed && self.ledger.of_scope(&scope).is_empty() {
            self.targets.leave(&owner.namespace);
        }
    }

    /// Whether the namespace, and so the control plane of the shoot, is being deleted.
    async fn namespace_goes(&self, namespace: &str) -> Result<bool> {
        let found = self.namespace(namespace).await?;
        Ok(found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }

    async fn namespace(&self, name: &str) -> Result<Option<Namespace>> {
        let found = self.seed.cluster_wide::<Namespace>().get_opt(name).await;
        found.context(format_args!("could not read Namespace {name}"))
    }
}

fn keeps(resource: &ManagedResource) -> bool {
    resource.spec.keep_objects == Some(true)
}

fn is_ignored(resource: &ManagedResource) -> bool {
    resource
        .annotations()
        .get(RESOURCES_IGNORE)
        .is_some_and(|value| is_true(value))
}

impl Reconciler<ManagedResource> for Controller {
    const NAME: &'static str = "managed-resource";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    fn is_responsible(&self, resource: &ManagedResource) -> bool {
        Owner::from_resource(resource).is_some()
    }

    async fn apply(&self, cached: Arc<ManagedResource>) -> Result<Next> {
        let Some(owner) = Owner::from_resource(&cached) else {
            return Ok(Next::Change);
        };
        if is_ignored(&cached) {
            self.ledger.forget(&owner);
            let message = format!("It is left alone: it has the annotation {RESOURCES_IGNORE}.");
            let verdict = Some(Verdict::new(
                ConditionStatus::Unknown,
                "ManagedResourceIgnored",
                message,
            ));
            let report = Report {
                applied: verdict.clone(),
                healthy: verdict.clone(),
                progressing: verdict,
                observed: cached.metadata.generation,
                ..Report::default()
            };
            self.report(&cached, &owner, report).await?;
            return Ok(Next::Change);
        }
        // From here on, events of the cluster wake the ManagedResource.
        self.ledger.knows(&owner);
        let target = match self.targets.find_target(&owner).await? {
            Ok(target) => target,
            Err(why) => {
                self.ledger.keeps(&owner, Vec::new());
                self.report(&cached, &owner, status::away(&why.to_string()))
                    .await?;
                return Err(why.into());
            }
        };
        let turn = target.turn().await;
        if let Err((after, why)) = &turn {
            let why = format!("the API server of the shoot does not answer: {why}");
            self.report(&cached, &owner, status::away(&why)).await?;
            return Err(runtime::Error::not_ready(*after, why));
        }
        let share = self.work.acquire().await;
        let Some(resource) = self.read_to_apply(&owner).await? else {
            return Ok(Next::Change);
        };
        let done = Box::pin(self.bring_about(&owner, &resource, &target, share)).await;
        drop(turn);
        self.numbers.set(self.targets.count(), self.ledger.objects());
        done
    }

    async fn cleanup(&self, cached: Arc<ManagedResource>) -> Result<Next> {
        let Some(owner) = Owner::from_resource(&cached) else {
            return Ok(Next::Change);
        };
        let next = self.delete(&owner).await?;
        if next == Next::Change {
            self.forget(&owner);
        }
        Ok(next)
    }
}
