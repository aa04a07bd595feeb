//! Applies a ManagedResource: reads the manifests, applies the objects by phase, prunes, and decides the
//! result. `send.rs` has the requests for an object.

use std::sync::Arc;

use api::{meta::ConditionStatus, resources::ManagedResource};
use runtime::Result;

use super::{
    Controller,
    place::{Placed, Work},
};
use crate::{
    manifest,
    object::{Key, Owner, Phase},
    plan,
    status::{self, Report, Verdict, some},
    target::Target,
    trouble::Trouble,
};

/// The result of an application.
#[derive(Default)]
pub(super) struct Outcome {
    /// The verdict of the condition; `None` for success.
    pub verdict: Option<Verdict>,
    /// The new `status.resources`; `None` for no change.
    pub resources: Option<Vec<Key>>,
    /// Checksum of the Secrets that were applied.
    pub checksum: Option<String>,
    /// All faults.
    pub troubles: Vec<Trouble>,
}

impl Outcome {
    fn nothing(reason: &str, sentences: Vec<String>) -> Self {
        Self {
            verdict: Some(Verdict::new(ConditionStatus::False, reason, some(&sentences))),
            troubles: sentences.into_iter().map(Trouble::Wrong).collect(),
            ..Self::default()
        }
    }
}

impl Controller {
    /// Applies all manifests of the Secrets, and deletes objects without a manifest.
    ///
    /// # Errors
    /// The seed's API cannot be read or written. All other faults are in the outcome.
    pub(super) async fn apply_all(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        target: &Arc<Target>,
    ) -> Result<Outcome> {
        let (data, checksum) = match self.secrets(owner, resource).await? {
            Ok(read) => read,
            Err(missing) => return Ok(Outcome::nothing("ApplyFailed", missing)),
        };
        let all = match manifest::read(&data) {
            Ok(all) => all,
            Err(wrong) => return Ok(Outcome::nothing("DecodingFailed", wrong)),
        };
        drop(data);
        let (released, wanted): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|object| object.handling.released);
        let work = Work {
            owner,
            resource,
            target,
        };
        let before = status::keys(resource);
        let (mut placed, mut troubles) = (Vec::new(), Vec::new());
        let mut noted = before.clone();
        for phase in Phase::ALL {
            let of_phase = wanted
                .iter()
                .filter(|object| Phase::from_key(&object.key) == phase);
            let (mut now, awaited) = self.discover_objects(&work, of_phase).await;
            troubles.extend(awaited);
            self.note(&work, &mut noted, &now).await?;
            troubles.extend(self.send(&work, &now).await);
            placed.append(&mut now);
            if troubles.iter().any(Trouble::ends_all) {
                break;
            }
        }
        self.ledger
            .keeps(owner, placed.iter().map(|placed| placed.item.clone()).collect());
        let keys: Vec<Key> = placed.iter().map(|placed| placed.key.clone()).collect();
        let mut outcome = Outcome {
            checksum: Some(checksum),
            ..Outcome::default()
        };
        // An object that could not be placed has no full identity yet, so unwanted objects cannot be
        // determined.
        if placed.len() == wanted.len() && !troubles.iter().any(Trouble::ends_all) {
            let (released, _) = self.discover_objects(&work, released.iter()).await;
            let released: Vec<Key> = released.into_iter().map(|placed| placed.key).collect();
            let unwanted = plan::unwanted(&before, &keys, &released, &resource.spec.equivalences);
            let (left, pruning) = self.prune(&work, unwanted).await;
            troubles.extend(pruning);
            outcome.resources = Some(keys.into_iter().chain(left).collect());
        }
        if !troubles.is_empty() {
            let words: Vec<String> = troubles.iter().map(Trouble::words).collect();
            let only_waits = troubles
                .iter()
                .all(|trouble| matches!(trouble, Trouble::Awaited(..)));
            let (status, reason) = if only_waits {
                (ConditionStatus::Progressing, "ApplyProgressing")
            } else {
                (ConditionStatus::False, "ApplyFailed")
            };
            outcome.verdict = Some(Verdict::new(status, reason, some(&words)));
        }
        outcome.troubles = troubles;
        Ok(outcome)
    }

    /// Records new objects in the status before the creation: after a crash in between, every created object
    /// is known.
    async fn note(&self, work: &Work<'_>, noted: &mut Vec<Key>, objects: &[Placed<'_>]) -> Result<()> {
        let known = |key: &Key| noted.iter().any(|noted| noted.identity() == key.identity());
        let new: Vec<Key> = objects
            .iter()
            .map(|object| object.key.clone())
            .filter(|key| !known(key))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        noted.extend(new);
        let Some(resource) = self.read(work.owner).await? else {
            return Ok(());
        };
        let report = Report {
            resources: Some(noted.clone()),
            ..Report::default()
        };
        self.report(&resource, work.owner, report).await
    }
}
