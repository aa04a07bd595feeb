//! Last changes in the etcd of a seed whose shoot was taken over without the help of that seed (R17-46).
//! These changes exist only in that seed. The seed saves the changes before the etcd is deleted, and the
//! Shoot reports the number of changes.

use api::gardencore::{
    Shoot,
    shoot::{FormerSeed, OwnershipPhase},
};
use kube::ResourceExt;
use parts::{Backups, ConflictLimit, Stay};
use runtime::{Cluster as _, Result, error::Explain};
use serde_json::json;

use super::loss;
use crate::{context::Context, context::MANAGER};

/// The changes that exist only in a former seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Leftover {
    /// No changes, or no seed needs the changes any more.
    Nothing,
    /// Undecided: the new seed has not chosen a snapshot yet, and waits for the final snapshot of this seed.
    Unknown,
    /// The changes after this revision. The new seed began with this revision.
    Changes(i64),
    /// Possibly changes of unknown number. Either no revision of the takeover is recorded, or the shoot was
    /// taken over again since. Then the record describes the loss of the later takeover.
    LossNotReported,
}

/// The changes that the residency of a shoot in this epoch has left in the seed.
pub(super) fn find_leftover(shoot: &Shoot, seed: &str, epoch: i64) -> Leftover {
    let Some(ownership) = shoot.status.as_ref().and_then(|status| status.ownership.as_ref()) else {
        return Leftover::Nothing;
    };
    let is_own = |source: Option<&FormerSeed>| {
        source.is_some_and(|source| source.name == seed && source.epoch == epoch)
    };
    if ownership.phase == Some(OwnershipPhase::Claiming)
        && !ownership.drained
        && is_own(ownership.source.as_ref())
    {
        return Leftover::Unknown;
    }
    match &ownership.restored {
        Some(restored) if is_own(restored.source.as_ref()) && restored.lost_revisions.is_none() => restored
            .last_revision
            .map_or(Leftover::LossNotReported, Leftover::Changes),
        Some(restored)
            if restored
                .source
                .as_ref()
                .is_some_and(|source| source.epoch > epoch) =>
        {
            Leftover::LossNotReported
        }
        _ => Leftover::Nothing,
    }
}

/// Waits until the changes are saved, and reports the number in the Shoot. If the etcd is gone, no changes
/// can be saved, and the Shoot reports no number.
pub(super) async fn save(
    context: &Context,
    stay: &Stay,
    shoot: &Shoot,
    begun_with: i64,
    epoch: i64,
) -> Result<()> {
    let Some(end) = saved(stay, epoch).await? else {
        return Ok(());
    };
    let lost = ownership::changes_between(begun_with, end, epoch);
    // Boxed: the future is large, and would otherwise be on the stack of every step.
    Box::pin(tell(context, shoot, epoch, lost)).await
}

/// Waits until the changes are saved, and returns the last revision of an etcd that still exists.
pub(super) async fn saved(stay: &Stay, epoch: i64) -> Result<Option<i64>> {
    let saved = Backups::save_what_is_left(stay, epoch).await;
    saved.context("what this seed acknowledged last is not saved, and stays until it is")
}

/// Writes only `lostRevisions`, and only while the Shoot reports no number yet (docs/look-up/admission.md).
async fn tell(context: &Context, shoot: &Shoot, epoch: i64, lost: i64) -> Result<()> {
    let api = context
        .garden
        .namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
    let mut conflicts = ConflictLimit::default();
    loop {
        let fresh = api
            .get_opt(&shoot.name_any())
            .await
            .context("could not read the Shoot")?;
        let Some(fresh) = fresh.filter(|fresh| fresh.uid() == shoot.uid()) else {
            return Ok(());
        };
        if !matches!(
            find_leftover(&fresh, &context.seed_name, epoch),
            Leftover::Changes(_)
        ) {
            return Ok(());
        }
        let patch = json!({"ownership": {"restored": {"lostRevisions": lost}}});
        if let Some(written) = MANAGER.try_merge_status_of(&api, &fresh, &patch).await? {
            let losses = loss::metrics(&context.metrics);
            losses.revisions.observe(loss::revisions(lost));
            let sentence = loss::exactly(&context.seed_name, lost);
            context
                .garden_events
                .warning(&written, "DataLost", &sentence)
                .await;
            return Ok(());
        }
        conflicts.count("Shoot", &fresh.name_any())?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
    use serde_json::Value;

    use super::*;

    fn left(ownership: Value) -> String {
        let shoot: Shoot = serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}], "ownership": ownership},
        }))
        .unwrap();
        match find_leftover(&shoot, "a", 1) {
            Leftover::Nothing => "nothing".into(),
            Leftover::Unknown => "unknown".into(),
            Leftover::Changes(begun_with) => format!("after {begun_with}"),
            Leftover::LossNotReported => "untold".into(),
        }
    }

    /// R17-45, R17-46, R17-52: which seed needs the final snapshot of a seed that was taken over.
    #[test]
    fn a_former_seed_knows_who_needs_what_it_has() {
        let a = json!({"name": "a", "epoch": 1});
        let begun = |phase: &str, drained: bool, source: &Value| json!({"epoch": 2, "phase": phase, "drained": drained, "source": source});
        // The seed handed over the shoot: the snapshot is verified.
        assert_eq!(left(begun("Claiming", true, &a)), "nothing");
        // The new seed waits for the snapshot until the new seed has chosen.
        assert_eq!(left(begun("Claiming", false, &a)), "unknown");
        assert_eq!(left(begun("Opening", false, &a)), "nothing");
        // The shoot came back to this seed in an epoch whose data are not wanted. The seed had not opened the
        // data, or had the data before.
        for other in [json!({"name": "c", "epoch": 1}), json!({"name": "a", "epoch": 2})] {
            assert_eq!(left(begun("Claiming", false, &other)), "nothing");
        }

        let with = |restored: Value| {
            // Two moves later.
            json!({"epoch": 4, "phase": "Held", "source": {"name": "c", "epoch": 3}, "restored": restored})
        };
        let mut restored = json!({"epoch": 2, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z",
            "fenced": "2026-01-01T00:01:30Z", "source": a});
        assert_eq!(left(with(restored.clone())), "after 832");
        restored["lastRevision"] = Value::Null;
        assert_eq!(left(with(restored.clone())), "untold", "it is saved nevertheless");
        restored["lostRevisions"] = json!(0);
        assert_eq!(left(with(restored.clone())), "nothing", "it was told");
        restored["lostRevisions"] = Value::Null;
        restored["source"]["epoch"] = json!(3);
        assert_eq!(
            left(with(restored.clone())),
            "untold",
            "a later stay of the same seed was taken over, too"
        );
        // The second seed died as well: the record reports the loss of the second seed, and the first seed
        // still has its own changes.
        restored["source"] = json!({"name": "b", "epoch": 2});
        restored["lostRevisions"] = json!(3);
        assert_eq!(left(with(restored)), "untold");
        assert_eq!(left(Value::Null), "nothing");
    }
}
