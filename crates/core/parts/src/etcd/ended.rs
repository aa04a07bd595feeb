//! The etcd-main of an epoch that has ended in this seed, when the seed gets the shoot again. This occurs
//! when a move was cancelled after the source had sealed the epoch. The etcd stops and keeps the volume,
//! because no seed has newer data. [`crate::Etcds`] starts the etcd again in the next epoch.
//!
//! The seed may lose that next epoch before etcd has started. Then the stopped etcd looks like the etcd of a
//! hibernated shoot, and only the stopped etcd has changes that no snapshot has. The annotation
//! [`STOPPED_FOR_EPOCH`] distinguishes the two cases ([`is_stopped_unsaved`]). The Etcd and the namespace of
//! the shoot have the annotation, and either is enough: a policy of the seed protects the annotation of the
//! namespace against edits.

use api::{
    constants::{HANDED_OVER_IN_EPOCH, STOPPED_FOR_EPOCH},
    druid::Etcd,
};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use runtime::{
    Error, Result,
    client::{Cluster, wait},
    error::Explain,
};
use serde_json::{Value, json};

use crate::{
    ConflictLimit, FIELD_MANAGER, Facts, Residency, configuration_problem,
    etcd::{etcds::MAIN, owner},
    task::{BUCKET, PartTask},
};

/// See the module.
#[derive(Debug)]
pub struct EndedEtcd;

impl EndedEtcd {
    /// [`Self::stop`] and [`Self::stopped`], as tasks. Not a [`crate::Sleep`], which creates a missing Etcd,
    /// and also stops an etcd of the present epoch.
    pub const STOP: [PartTask<Facts>; 2] = [
        PartTask::new("Stopping etcd of the epoch that has ended", BUCKET, |input| {
            Box::pin(Self::stop(input))
        }),
        PartTask::new(
            "Waiting until etcd of the epoch that has ended has stopped",
            BUCKET,
            |input| Box::pin(Self::stopped(input)),
        ),
    ];

    /// Stops an etcd-main of an earlier epoch, and marks the Etcd as stopped.
    pub async fn stop(f: &Facts) -> Result<()> {
        let runs = |found: &Etcd| is_of_earlier_epoch(found, f.epoch()) && found.spec.replicas > 0;
        let found = f.residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        if !found.as_ref().is_some_and(runs) {
            return Ok(());
        }
        // The namespace comes first: without effect on an etcd that runs.
        annotate_namespace(&f.residency, Some(&f.epoch().to_string())).await?;
        // The annotation and the stop are a single write: a gardenlet that ends here leaves no unmarked etcd.
        let stop = json!({
            "metadata": {"annotations": {STOPPED_FOR_EPOCH: f.epoch().to_string()}}, "spec": {"replicas": 0},
        });
        patch_where(&f.residency, runs, &stop).await
    }

    /// Waits until the pod of an etcd-main of an earlier epoch is gone.
    pub async fn stopped(f: &Facts) -> Result<()> {
        let found = f.residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        if !found.is_some_and(|found| is_of_earlier_epoch(&found, f.epoch())) {
            return Ok(());
        }
        let pods = f.residency.seed.namespaced::<Pod>(&f.residency.namespace);
        wait::until_gone(&pods, &member(), f.residency.settings.timeouts.etcd.timeout).await
    }

    /// Starts the etcd again for its final snapshot. The seed has stopped this etcd for a later epoch, and
    /// has lost the shoot in that epoch (`residency_epoch`) before etcd was opened. Changes that no snapshot
    /// has are on the volume alone. etcd serves no client: the owner check has lost the epoch, and the gate
    /// stays shut. The annotation stays until the changes are saved. `shoot_sleeps`: the shoot is hibernated.
    pub async fn wake_to_save(residency: &Residency, residency_epoch: i64, shoot_sleeps: bool) -> Result<()> {
        let noted = read_namespace_annotation(residency).await?;
        let wakes = |found: &Etcd| may_wake(found, noted.as_deref(), residency_epoch, shoot_sleeps);
        patch_where(residency, wakes, &json!({"spec": {"replicas": 1}})).await
    }

    /// Notes that this gardenlet has proved the final snapshot of the epoch, and has handed over the shoot.
    pub async fn note_hand_over(residency: &Residency, epoch: i64) -> Result<()> {
        let epoch = epoch.to_string();
        residency.mark_etcd(HANDED_OVER_IN_EPOCH, Some(&epoch)).await
    }

    /// Whether the seed may delete etcd-main on the report of the Shoot that no changes are left here: this
    /// gardenlet has handed over the shoot in the epoch, or no etcd with backups is here. A gardenlet or a
    /// user has given up an Etcd in deletion, and etcd-backup-restore may not report any more.
    pub async fn is_handed_over(residency: &Residency, epoch: i64) -> Result<bool> {
        let found = residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        Ok(found.is_none_or(|etcd| needs_no_report(&etcd, epoch)))
    }
}

fn needs_no_report(etcd: &Etcd, epoch: i64) -> bool {
    let is_given_up = etcd.metadata.deletion_timestamp.is_some();
    is_given_up || !owner::has_own_backups(etcd) || was_handed_over(etcd, epoch)
}

fn was_handed_over(etcd: &Etcd, epoch: i64) -> bool {
    let noted = etcd.annotations().get(HANDED_OVER_IN_EPOCH);
    noted.and_then(|noted| noted.parse().ok()) == Some(epoch)
}

/// Patches etcd-main where the Etcd meets the condition. The patch is conditional on the version that was
/// read: after a concurrent write, the loop reads the Etcd again.
async fn patch_where(residency: &Residency, condition: impl Fn(&Etcd) -> bool, patch: &Value) -> Result<()> {
    let api = residency.etcds();
    let mut conflicts = ConflictLimit::default();
    loop {
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        let Some(found) = found.filter(&condition) else {
            return Ok(());
        };
        if FIELD_MANAGER.try_merge_of(&api, &found, patch).await?.is_some() {
            return Ok(());
        }
        conflicts.count("Etcd", MAIN)?;
    }
}

/// Refuses a stopped etcd with changes that no snapshot has. The caller would delete the changes.
pub(crate) async fn check_saved(residency: &Residency, etcd: &Etcd) -> Result<()> {
    let noted = read_namespace_annotation(residency).await?;
    if is_stopped_unsaved(etcd, noted.as_deref()) {
        return Err(unsaved_error(etcd, noted.as_deref()));
    }
    Ok(())
}

/// Removes the annotations after the changes are saved. A start of etcd in a later epoch removes only the
/// annotation of the Etcd: an annotation that names the epoch of the data has no effect.
pub(crate) async fn forget_stop(residency: &Residency) -> Result<()> {
    residency.mark_etcd(STOPPED_FOR_EPOCH, None).await?;
    annotate_namespace(residency, None).await
}

async fn annotate_namespace(residency: &Residency, epoch: Option<&str>) -> Result<()> {
    let Some(namespace) = residency.read_namespace().await? else {
        return Ok(());
    };
    if stop_epoch(&namespace) == epoch {
        return Ok(());
    }
    // The uid refuses a namespace that was created since.
    let body = json!({"metadata": {"uid": namespace.uid(), "annotations": {STOPPED_FOR_EPOCH: epoch}}});
    let api = residency.seed.cluster_wide::<Namespace>();
    FIELD_MANAGER
        .merge(&api, &residency.namespace, &body)
        .await
        .map(|_| ())
}

async fn read_namespace_annotation(residency: &Residency) -> Result<Option<String>> {
    let namespace = residency.read_namespace().await?;
    Ok(namespace.as_ref().and_then(stop_epoch).map(ToOwned::to_owned))
}

/// The annotation with the epoch for which the gardenlet stopped etcd.
fn stop_epoch(object: &impl ResourceExt) -> Option<&str> {
    object.annotations().get(STOPPED_FOR_EPOCH).map(String::as_str)
}

/// Whether the gardenlet has stopped etcd for an epoch after the epoch of the data, so that changes may be on
/// the volume alone. `noted`: the annotation of the namespace. The state of the Shoot does not matter: a
/// different seed may have hibernated the shoot since. An Etcd in deletion was given up by a user.
pub(crate) fn is_stopped_unsaved(etcd: &Etcd, noted: Option<&str>) -> bool {
    is_stopped_with_backups(etcd) && is_stopped_for_later_epoch(etcd, noted)
}

/// Whether the etcd may start for its final snapshot. Without an annotation, the etcd of a hibernated shoot
/// was saved before the hibernation, and an older gardenlet or a user has stopped any other etcd. An etcd
/// without an owner check has no gate, and stays stopped.
fn may_wake(etcd: &Etcd, noted: Option<&str>, residency_epoch: i64, shoot_sleeps: bool) -> bool {
    let stopped_awake = !shoot_sleeps && is_of_earlier_epoch(etcd, residency_epoch);
    is_stopped_with_backups(etcd)
        && etcd.spec.backup.owner_check.is_some()
        && (is_stopped_for_later_epoch(etcd, noted) || stopped_awake)
}

fn is_stopped_with_backups(etcd: &Etcd) -> bool {
    etcd.spec.replicas <= 0 && etcd.metadata.deletion_timestamp.is_none() && owner::has_own_backups(etcd)
}

/// An annotation of the epoch of the data or an earlier epoch is a leftover: etcd has started since.
fn is_stopped_for_later_epoch(etcd: &Etcd, noted: Option<&str>) -> bool {
    let mut stopped_for = stop_epoch(etcd).into_iter().chain(noted);
    stopped_for.any(|text| match text.parse::<i64>() {
        Ok(epoch) => is_of_earlier_epoch(etcd, epoch),
        // Unreadable after an edit. Only a stop for a later epoch writes the annotation.
        Err(_) => true,
    })
}

/// The error for a caller that would otherwise delete the changes. Without an owner check only a user can end
/// the error.
fn unsaved_error(etcd: &Etcd, noted: Option<&str>) -> Error {
    let epoch = stop_epoch(etcd).or(noted).unwrap_or("unknown");
    let stopped = format!(
        "etcd-main was stopped for ownership epoch {epoch}, and the volume may have changes that no snapshot has"
    );
    match etcd.spec.backup.owner_check {
        Some(_) => Error::transient(format!(
            "{stopped}: the gardenlet starts etcd-main for the final snapshot"
        )),
        None => configuration_problem(format!(
            "{stopped}: without spec.backup.ownerCheck no gate keeps clients out, and the gardenlet does not start \
             etcd-main: back the volume up if a user needs the changes, and delete the Etcd"
        )),
    }
}

/// Whether no etcd from an earlier epoch of the shoot in this seed can run or start.
pub(crate) async fn has_ended(f: &Facts) -> Result<bool> {
    let etcd = f.residency.etcds().get_opt(MAIN).await;
    let etcd = etcd.context("could not read Etcd etcd-main")?;
    let pods = f.residency.seed.namespaced::<Pod>(&f.residency.namespace);
    let pod = pods
        .get_opt(&member())
        .await
        .context("could not read the pod of etcd-main")?;
    let stopped = |etcd: &Etcd| etcd.spec.replicas <= 0 && is_of_earlier_epoch(etcd, f.epoch());
    Ok(pod.is_none() && etcd.as_ref().is_none_or(stopped))
}

fn is_of_earlier_epoch(etcd: &Etcd, epoch: i64) -> bool {
    owner::epoch_of(etcd).is_some_and(|own| own < epoch)
}

/// The pod of etcd-main, the only member.
pub(crate) fn member() -> String {
    format!("{MAIN}-0")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants::OWNERSHIP_EPOCH;

    use super::*;

    /// An etcd with data of epoch 3 that was stopped without an annotation, with a change.
    fn stopped(field: &str, value: &Value) -> Etcd {
        let check =
            json!({"name": "owner.web.example.test", "id": "a", "zone": "example.test", "shootUID": "u"});
        let mut etcd = json!({
            "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
            "metadata": {"name": "etcd-main", "annotations": {(OWNERSHIP_EPOCH): "3"}},
            "spec": {"labels": {}, "etcd": {}, "replicas": 0,
                "backup": {"ownerCheck": check, "store": {"prefix": "p"}}},
        });
        if !field.is_empty() {
            *etcd.pointer_mut(field).unwrap() = value.clone();
        }
        crate::from_json(etcd).unwrap()
    }

    /// R17-46: the etcd starts for its final snapshot alone, and only behind a gate that stays shut.
    #[test]
    fn an_etcd_that_was_stopped_for_a_lost_epoch_starts_to_save_its_last_changes() {
        let whole = stopped("", &Value::Null);
        assert!(may_wake(&whole, None, 5, false));
        // The present seed has hibernated the shoot, or the shoot was hibernated in this seed.
        assert!(!may_wake(&whole, None, 5, true));
        // The shoot hibernated in the epoch of the residency, or the record is older than the etcd.
        for residency_epoch in [3, 2] {
            assert!(
                !may_wake(&whole, None, residency_epoch, false),
                "{residency_epoch}"
            );
        }
        for (field, value) in [
            ("/spec/replicas", json!(1)),
            ("/spec/backup/ownerCheck", Value::Null),
            ("/spec/backup/store", Value::Null),
        ] {
            let other = stopped(field, &value);
            assert!(!may_wake(&other, None, 5, false), "{field}");
        }
        let mut copies = whole;
        copies.spec.backup.source_store = copies.spec.backup.store.clone();
        assert!(!may_wake(&copies, None, 5, false));
    }

    /// Security: the Shoot alone does not say that the data of an etcd are saved.
    #[test]
    fn an_etcd_counts_as_handed_over_in_the_noted_epoch_alone() {
        let mut etcd = stopped("", &Value::Null);
        assert!(!was_handed_over(&etcd, 3));
        for (noted, expected) in [("3", true), ("2", false), ("4", false), ("three", false)] {
            let annotations = etcd.annotations_mut();
            annotations.insert(HANDED_OVER_IN_EPOCH.to_owned(), noted.to_owned());
            assert_eq!(was_handed_over(&etcd, 3), expected, "{noted}");
        }
    }

    /// The clean-up of a takeover whose loss is reported goes on after an interruption of the deletion.
    #[test]
    fn an_etcd_in_deletion_has_no_report_to_wait_for() {
        let mut etcd = stopped("", &Value::Null);
        assert!(!needs_no_report(&etcd, 3));
        etcd.metadata.deletion_timestamp = Some(runtime::clock::now_k8s());
        assert!(needs_no_report(&etcd, 3));
    }

    fn stopped_for(epoch: &str) -> Etcd {
        let mut etcd = stopped("", &Value::Null);
        etcd.annotations_mut()
            .insert(STOPPED_FOR_EPOCH.to_owned(), epoch.to_owned());
        etcd
    }

    /// R17-46: the annotation alone marks an etcd as unsaved. The data are of epoch 3.
    #[test]
    fn an_etcd_that_was_stopped_for_a_later_epoch_is_unsaved_although_the_shoot_sleeps() {
        for (epoch, is_unsaved) in [
            ("5", true),
            ("4", true),
            // A user edited the annotation.
            ("five", true),
            // Leftovers: etcd has started in epoch 3.
            ("3", false),
            ("2", false),
        ] {
            let etcd = stopped_for(epoch);
            assert_eq!(is_stopped_unsaved(&etcd, None), is_unsaved, "{epoch}");
            // Also for the record of an earlier residency, e.g. of a garden that was restored.
            for residency_epoch in [3, 5] {
                assert_eq!(
                    may_wake(&etcd, None, residency_epoch, true),
                    is_unsaved,
                    "{epoch} {residency_epoch}"
                );
            }
        }
        assert!(!is_stopped_unsaved(&stopped("", &Value::Null), None));
    }

    /// R17-46: a user removes or edits the annotation of the Etcd while the shoot is hibernated.
    #[test]
    fn the_annotation_of_the_namespace_alone_marks_an_etcd_as_unsaved() {
        for (noted, is_unsaved) in [("5", true), ("five", true), ("3", false), ("2", false)] {
            for etcd in [stopped("", &Value::Null), stopped_for("3")] {
                assert_eq!(is_stopped_unsaved(&etcd, Some(noted)), is_unsaved, "{noted}");
                assert_eq!(may_wake(&etcd, Some(noted), 5, true), is_unsaved, "{noted}");
            }
        }
        let why = unsaved_error(&stopped("", &Value::Null), Some("5")).to_string();
        assert!(why.contains("stopped for ownership epoch 5"), "{why}");
    }

    /// An etcd that cannot start keeps the changes, and the error states the reason.
    #[test]
    fn an_etcd_that_cannot_be_woken_is_still_unsaved() {
        let marked = || stopped_for("5");
        let said = |etcd: &Etcd| unsaved_error(etcd, None).to_string();
        assert!(said(&marked()).contains("stopped for ownership epoch 5"));
        let mut open = marked();
        open.spec.backup.owner_check = None;
        assert!(is_stopped_unsaved(&open, None) && !may_wake(&open, None, 5, false));
        assert!(said(&open).contains("does not start"), "{}", said(&open));
        assert_eq!(unsaved_error(&open, None).class(), "Config");
        assert_eq!(unsaved_error(&marked(), None).class(), "Transient");

        let mut runs = marked();
        runs.spec.replicas = 1;
        let mut deleted = marked();
        deleted.metadata.deletion_timestamp = Some(runtime::clock::now_k8s());
        let mut copies = marked();
        copies.spec.backup.source_store = copies.spec.backup.store.clone();
        let mut without_backups = marked();
        without_backups.spec.backup.store = None;
        for (case, etcd) in [
            ("runs", runs),
            ("deleted", deleted),
            ("copies", copies),
            ("no backups", without_backups),
        ] {
            assert!(!is_stopped_unsaved(&etcd, None), "{case}");
        }
    }
}
