//! Last changes in the etcd of a seed whose shoot was taken over without the help of that seed (R17-46).
//! These changes exist only in that seed. The seed saves the changes before the etcd is deleted, and the
//! Shoot reports the number of changes.
//!
//! The data may be of an earlier epoch than the residency: a seed that took its shoot back, or kept the shoot
//! in a new epoch, and lost the shoot before phase `Opening` still has the etcd of the earlier epoch. The
//! record proves that no other seed has opened an epoch in between ([`SeedEpoch::is_kept_in`]).

use api::gardencore::{
    Shoot,
    shoot::{FormerSeed, OwnershipPhase, RestoredData, SealedEpoch},
};
use kube::ResourceExt;
use ownership::SeedEpoch;
use parts::{Backups, ConflictLimit, Residency};
use runtime::{Result, client::Cluster as _, error::Explain};
use serde_json::json;

use super::data_loss;
use crate::context::{Context, MANAGER};

/// The changes that exist only in a former seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UnsavedChanges {
    /// There are no changes, or no seed needs the changes any more.
    Nothing,
    /// Undecided: the new seed has not chosen a snapshot yet, and waits for the final snapshot of this seed.
    Unknown,
    /// The changes after the revision with which the new seed began.
    Changes {
        /// The revision with which the new seed began.
        begun_with: i64,
        /// The epoch of the etcd that acknowledged the changes: the epoch of the residency, or an earlier
        /// epoch.
        data: i64,
    },
    /// Possibly changes of unknown number. Either no revision of the takeover is recorded, or the shoot was
    /// taken over again since. Then the record describes the loss of the later takeover.
    LossNotReported,
}

/// The changes that the residency of a shoot in this epoch has left in the seed.
pub(crate) fn find_unsaved_changes(shoot: &Shoot, seed: &str, epoch: i64) -> UnsavedChanges {
    let Some(ownership) = shoot.status.as_ref().and_then(|status| status.ownership.as_ref()) else {
        return UnsavedChanges::Nothing;
    };
    let residency = SeedEpoch { seed, epoch };
    // The epoch of the data that this residency has left for the epoch `next`.
    let data_for = |source: Option<&FormerSeed>, next: i64| {
        let source = source?;
        let opened = SeedEpoch {
            seed: source.name.as_str(),
            epoch: source.epoch,
        };
        opened.is_kept_in(&residency, next).then_some(source.epoch)
    };
    let awaits_choice = ownership.phase == Some(OwnershipPhase::Claiming) && !ownership.drained;
    if awaits_choice && data_for(ownership.source.as_ref(), ownership.epoch).is_some() {
        return UnsavedChanges::Unknown;
    }
    let Some(restored) = &ownership.restored else {
        // The owner has kept the shoot in a later epoch without a loss of that epoch. The loss of this seed
        // is recorded beside: the changes may still exist here alone.
        let concerns = |loss: &RestoredData| {
            let source = loss.source.as_ref();
            let is_later = source.is_some_and(|source| source.epoch > epoch);
            is_later || loss.lost_revisions.is_none() && data_for(source, loss.epoch).is_some()
        };
        return if ownership.restored_before.iter().any(concerns) {
            UnsavedChanges::LossNotReported
        } else {
            UnsavedChanges::Nothing
        };
    };
    let source = restored.source.as_ref();
    match data_for(source, restored.epoch) {
        Some(data) if restored.lost_revisions.is_none() => {
            let changes = |begun_with| UnsavedChanges::Changes { begun_with, data };
            let known = restored.last_revision;
            known.map_or(UnsavedChanges::LossNotReported, changes)
        }
        None if source.is_some_and(|source| source.epoch > epoch) => UnsavedChanges::LossNotReported,
        _ => UnsavedChanges::Nothing,
    }
}

/// Waits until the changes are saved, and reports the number in the Shoot. If the etcd is gone, no changes
/// can be saved, and the Shoot reports no number. `data`: the recorded epoch of the data. An etcd of a
/// different epoch is saved as well, but the recorded revision is of a different history, so that no number
/// is known.
pub(crate) async fn save_and_report(
    context: &Context,
    residency: &Residency,
    shoot: &Shoot,
    epoch: i64,
    (begun_with, data): (i64, i64),
) -> Result<()> {
    let end = wait_until_saved(residency, epoch).await?;
    let Some(end) = end.filter(|end| end.epoch == data) else {
        return Ok(());
    };
    let lost = ownership::changes_between(begun_with, end.revision, data);
    // Boxed: the future is large, and would otherwise be on the stack of every step.
    Box::pin(report_lost_changes(context, shoot, epoch, lost)).await
}

/// Saves the changes of an etcd that the gardenlet has not handed over itself, although the Shoot says that
/// no changes are left. Reports an end of the etcd that is not the end in the Shoot: a stolen certificate of
/// this seed has handed over the shoot.
pub(crate) async fn save_in_doubt(
    context: &Context,
    residency: &Residency,
    shoot: &Shoot,
    epoch: i64,
) -> Result<()> {
    let Some(end) = wait_until_saved(residency, epoch).await? else {
        return Ok(());
    };
    if let Some(sentence) = describe_other_end(shoot, &context.seed_name, &end) {
        let events = &context.garden_events;
        events.warning(shoot, "HandOverNotProved", &sentence).await;
    }
    Ok(())
}

/// The sentence for people about an end of etcd-main that differs from the end in the Shoot. `None` where the
/// Shoot has no end of this epoch any more. The revisions of the same snapshot may differ by revisions after
/// the seal.
fn describe_other_end(shoot: &Shoot, seed: &str, end: &SealedEpoch) -> Option<String> {
    let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
    let reported = ownership.sealed.as_ref();
    let is_same =
        |reported: &SealedEpoch| (&reported.snapshot, &reported.sha256) == (&end.snapshot, &end.sha256);
    let reported = reported.filter(|reported| reported.epoch == end.epoch && !is_same(reported))?;
    Some(format!(
        "the Shoot was handed over with snapshot {} of revision {} (status.ownership.sealed), and etcd-main in seed {seed} has ended at \
         revision {}, with snapshot {} in the bucket of the seed: the gardenlet of the seed has not written this hand-over. Withdraw the \
         certificate of the gardenlet",
        reported.snapshot, reported.revision, end.revision, end.snapshot
    ))
}

/// Waits until the changes are saved, and returns the end of an etcd that still exists. `epoch`: the epoch of
/// the residency; the etcd may be of an earlier epoch.
pub(crate) async fn wait_until_saved(residency: &Residency, epoch: i64) -> Result<Option<SealedEpoch>> {
    let saved = Backups::save_what_is_left(residency, epoch).await;
    saved.context("what this seed acknowledged last is not saved, and stays until it is")
}

/// Writes only `lostRevisions`, and only while the Shoot reports no number yet (docs/look-up/admission.md).
async fn report_lost_changes(context: &Context, shoot: &Shoot, epoch: i64, lost: i64) -> Result<()> {
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
            find_unsaved_changes(&fresh, &context.seed_name, epoch),
            UnsavedChanges::Changes { .. }
        ) {
            return Ok(());
        }
        let patch = json!({"ownership": {"restored": {"lostRevisions": lost}}});
        if let Some(written) = MANAGER.try_merge_status_of(&api, &fresh, &patch).await? {
            let losses = data_loss::metrics(&context.metrics);
            losses.revisions.observe(data_loss::revisions_metric(lost));
            let sentence = data_loss::describe_exact_loss(&context.seed_name, lost);
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
        left_by(1, ownership)
    }

    /// The changes in seed `a`, which had the shoot last in this epoch.
    fn left_by(epoch: i64, ownership: Value) -> String {
        let shoot: Shoot = serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": epoch}], "ownership": ownership},
        }))
        .unwrap();
        match find_unsaved_changes(&shoot, "a", epoch) {
            UnsavedChanges::Nothing => "nothing".into(),
            UnsavedChanges::Unknown => "unknown".into(),
            UnsavedChanges::Changes { begun_with, data: 1 } => format!("after {begun_with}"),
            UnsavedChanges::Changes { begun_with, data } => format!("after {begun_with} of epoch {data}"),
            UnsavedChanges::LossNotReported => "untold".into(),
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
            "a later residency of the same seed was taken over, too"
        );
        // The second seed died as well: the record reports the loss of the second seed, and the first seed
        // still has its own changes.
        restored["source"] = json!({"name": "b", "epoch": 2});
        restored["lostRevisions"] = json!(3);
        assert_eq!(left(with(restored)), "untold");
        assert_eq!(left(Value::Null), "nothing");
    }

    #[test]
    fn an_end_that_differs_from_the_end_in_the_shoot_is_reported() {
        let end = |epoch: i64, revision: i64| SealedEpoch {
            epoch,
            revision,
            snapshot: format!("Full-{revision}"),
            sha256: "a".repeat(64),
        };
        let described = |reported: Option<SealedEpoch>| {
            let ownership = json!({"epoch": 2, "phase": "Held", "drained": true, "sealed": reported});
            let shoot: Shoot = serde_json::from_value(json!({
                "metadata": {"name": "web"}, "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {}},
                "status": {"seedName": "b", "ownership": ownership},
            }))
            .unwrap();
            describe_other_end(&shoot, "a", &end(1, 90))
        };
        assert_eq!(described(Some(end(1, 90))), None);
        let after_the_seal = SealedEpoch {
            revision: 93,
            ..end(1, 90)
        };
        assert_eq!(described(Some(after_the_seal)), None);
        assert_eq!(described(Some(end(2, 54))), None, "a later hand-over");
        assert_eq!(described(None), None);
        let other = described(Some(end(1, 54))).unwrap();
        for part in ["revision 54", "etcd-main in seed a", "revision 90", "Full-90"] {
            assert!(other.contains(part), "{other}");
        }
    }

    /// Seed `b` took over the shoot of seed `a`, and has kept the shoot in epoch 3 since (a renewal, or a
    /// cancelled move). Epoch 3 has no loss of its own.
    #[test]
    fn a_former_seed_saves_its_changes_also_after_the_owner_has_renewed_the_epoch() {
        let b = json!({"name": "b", "epoch": 2});
        let held =
            |before: Value| json!({"epoch": 3, "phase": "Held", "source": b, "restoredBefore": before});
        let mut loss = json!({"epoch": 2, "lastRevision": 832, "fenced": "2026-01-01T00:01:30Z",
            "source": {"name": "a", "epoch": 1}});
        assert_eq!(left(held(json!([loss]))), "untold");
        loss["lostRevisions"] = json!(3);
        assert_eq!(left(held(json!([loss]))), "nothing", "it was told");
        loss["source"] = json!({"name": "c", "epoch": 1});
        loss["lostRevisions"] = Value::Null;
        assert_eq!(left(held(json!([loss]))), "nothing", "the loss of another seed");
        // Of two takeovers, the record of the first may be gone.
        loss["source"] = b.clone();
        assert_eq!(left(held(json!([loss]))), "untold");
        assert_eq!(left(held(json!([]))), "nothing");
    }

    /// Seed `a` opened epoch 2, took the shoot back in a later epoch, or kept the shoot in a new epoch, and
    /// lost the shoot again before the choice of the data.
    #[test]
    fn a_seed_that_lost_the_shoot_twice_knows_the_epoch_of_its_data() {
        let opened = |name: &str, epoch: i64| json!({"name": name, "epoch": epoch});
        let record = |epoch: i64, phase: &str, source: &Value| json!({"epoch": epoch, "phase": phase, "source": source});
        let claimed = |epoch: i64, source: &Value| record(epoch, "Claiming", source);
        let fenced = "2026-01-01T00:01:30Z";
        let begun = |epoch: i64, source: &Value| {
            let mut begun = record(epoch, "Held", source);
            begun["restored"] =
                json!({"epoch": epoch, "lastRevision": 832, "fenced": fenced, "source": source});
            begun
        };
        // The owner of epoch 5, which began with the data of epoch 2, has handed over the shoot.
        let passed_on = |owner: &str| {
            let mut passed_on = claimed(6, &opened(owner, 5));
            passed_on["drained"] = json!(true);
            passed_on["restored"] = begun(5, &opened("a", 2))["restored"].clone();
            passed_on
        };
        let own = opened("a", 2);
        for (case, epoch, ownership, expected) in [
            ("taken back once", 2, claimed(3, &own), "unknown"),
            ("taken back twice", 4, claimed(5, &own), "unknown"),
            ("taken back three times", 6, claimed(7, &own), "unknown"),
            ("kept in a new epoch", 3, claimed(4, &own), "unknown"),
            ("claimed by two seeds in turn", 4, claimed(6, &own), "unknown"),
            ("opened elsewhere", 4, begun(5, &own), "after 832 of epoch 2"),
            (
                "opened elsewhere and handed over",
                4,
                passed_on("b"),
                "after 832 of epoch 2",
            ),
            (
                "opened in between by another seed",
                4,
                claimed(7, &opened("c", 5)),
                "nothing",
            ),
            (
                "opened by the seed, which has proved the end",
                5,
                passed_on("a"),
                "nothing",
            ),
            ("restored before this stay", 6, begun(3, &own), "nothing"),
        ] {
            assert_eq!(left_by(epoch, ownership), expected, "{case}");
        }
    }
}
