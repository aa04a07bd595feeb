//! The clean-up in a seed after the departure of a shoot (role `Former`). The seed removes only objects in
//! the seed, and changes no external resource.
//!
//! The clean-up has two steps, and the destination acts between the two. First the seed deletes all but the
//! data of etcd-main. Then the destination records that the new etcd runs from the copy. After that record
//! the former seed deletes the data and the namespace, and last the own entry in `status.formerSeeds`.
//! Neither the destination nor a deletion of the Shoot waits for this clean-up.
//!
//! After a takeover without the help of the former seed, some changes may exist only there. The etcd of the
//! former seed stays until the changes are saved, and the Shoot reports the number of changes (R17-46). The
//! same holds after a hand-over in the name of this seed that its gardenlet has not written.
//!
//! A seed that claimed the shoot and opened no data has no data, and does not wait for the destination
//! (`unopened.rs`). Otherwise two seeds could wait for each other: the destination for a seed that is free
//! of the shoot, and the former claimant for the restore.

use std::{sync::Arc, time::Duration};

use api::{constants, gardencore::Shoot};
use k8s_openapi::api::core::v1;
use kube::ResourceExt;
use parts::{
    Cluster, ConflictLimit, Destroy, EndedEtcd, ManagedResources, Namespace, NamespaceState, ProvenEnd,
    Residency, Tenant, left_in, tenant,
};
use placement::{Journey, Role, journey, names, role};
use runtime::{Error, Result, client::Cluster as _, controller::Next};
use serde_json::json;
use tracing::warn;

use super::unopened;
use crate::{
    context::{Context, MANAGER},
    shoot::{
        flows::leave_flow::{self, LeaveInputs},
        operation::{failure::class_of, identity::OperationIdentity},
        ownership::{
            missed_takeover,
            unsaved_changes::{self, UnsavedChanges},
        },
    },
};

/// Requeue interval of a former claimant without proof of the present owner: DNS reports no change.
const PROOF_REQUEUE: Duration = Duration::from_secs(60);

/// Cleans up after the residency of a shoot in this epoch.
pub(crate) async fn leave(context: &Context, shoot: &Shoot, epoch: i64) -> Result<Next> {
    let work = Box::pin(clean_up_after(context, shoot, epoch));
    OperationIdentity::of_move_from(shoot, epoch).scope(work).await
}

async fn clean_up_after(context: &Context, shoot: &Shoot, epoch: i64) -> Result<Next> {
    let residency = residency(context, names_of(shoot)?, tenant(shoot));
    if residency.namespace_state().await? != NamespaceState::Missing {
        Namespace::mark_as_left(&residency, epoch).await?;
        Cluster::update_shoot(&residency, shoot).await?;
        match unsaved_changes::find_unsaved_changes(shoot, &context.seed_name, epoch) {
            UnsavedChanges::Nothing if EndedEtcd::is_handed_over(&residency, epoch).await? => {}
            UnsavedChanges::Nothing => {
                clean_up_around_etcd(&residency, shoot, epoch).await?;
                unsaved_changes::save_in_doubt(context, &residency, shoot, epoch).await?;
            }
            UnsavedChanges::Unknown => {
                clean_up_around_etcd(&residency, shoot, epoch).await?;
                // The choice of the data triggers this controller again.
                return Ok(Next::Change);
            }
            UnsavedChanges::Changes { begun_with, data } => {
                clean_up_around_etcd(&residency, shoot, epoch).await?;
                unsaved_changes::save_and_report(context, &residency, shoot, epoch, (begun_with, data))
                    .await?;
            }
            UnsavedChanges::LossNotReported => {
                clean_up_around_etcd(&residency, shoot, epoch).await?;
                unsaved_changes::wait_until_saved(&residency, epoch).await?;
            }
        }
        clean_up(&residency, AwaitFinalSnapshot(false)).await?;
    }
    if journey(shoot) != Journey::Settled && journey(shoot) != Journey::Leaving {
        if !unopened::opened_nothing(shoot, &context.seed_name, epoch) {
            // The recorded restore triggers this controller again.
            return Ok(Next::Change);
        }
        if !Box::pin(unopened::is_proven(context, &residency, shoot, epoch)).await? {
            return Ok(Next::After(PROOF_REQUEUE));
        }
    }
    remove(&residency).await?;
    forget(context, shoot, epoch).await?;
    Ok(Next::Change)
}

/// Notes in the seed that this gardenlet has handed over the Shoot. Without the note, the clean-up asks
/// etcd-backup-restore for the final snapshot, so a failure is only logged.
pub(crate) async fn note_hand_over(context: &Context, handed_over: &Shoot) {
    let noted = async {
        if let Role::Former { epoch } = role(handed_over, &context.seed_name) {
            let residency = residency(context, names_of(handed_over)?, tenant(handed_over));
            EndedEtcd::note_hand_over(&residency, epoch).await?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = noted.await {
        warn!(
            shoot = handed_over.name_any(),
            error = format_args!("{error:#}"),
            "the hand-over is not noted in Etcd etcd-main"
        );
    }
}

/// Notes a hand-over whose answer was lost: the write has failed, and the Shoot shows the hand-over. `end` is
/// the proof of this run. The proof alone allows the deletion of the Etcd, independent of the writer of the
/// hand-over.
pub(crate) async fn note_unanswered_hand_over(context: &Context, shoot: &Shoot, end: &ProvenEnd) {
    let api = context
        .garden
        .namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
    match api.get_opt(&shoot.name_any()).await {
        Ok(Some(newest)) if is_proved_departure(shoot, &newest, &context.seed_name, end) => {
            note_hand_over(context, &newest).await;
        }
        Ok(_) => {}
        Err(error) => warn!(
            shoot = shoot.name_any(),
            error = format_args!("{error:#}"),
            "could not read whether the Shoot is handed over"
        ),
    }
}

/// Whether the seed has lost the Shoot in the epoch whose end this run has proved.
fn is_proved_departure(shoot: &Shoot, newest: &Shoot, seed_name: &str, end: &ProvenEnd) -> bool {
    let is_same = newest.uid() == shoot.uid();
    is_same && matches!(role(newest, seed_name), Role::Former { epoch } if end.of_epoch(epoch).is_some())
}

/// Cleans up a namespace that has the mark of a departure and no Shoot in the garden.
pub(crate) async fn clean_up_without_shoot(context: &Context, namespace: &v1::Namespace) -> Result<()> {
    let (Some(tenant), Some(epoch)) = (tenant_of(namespace), left_in(namespace)) else {
        return Ok(());
    };
    let residency = residency(context, namespace.name_any(), tenant);
    // The Cluster names this seed where the mark came after the end of the Shoot.
    Box::pin(missed_takeover::write_into_cluster(
        &residency,
        &context.seed_name,
        epoch,
    ))
    .await?;
    clean_up(&residency, AwaitFinalSnapshot(false)).await?;
    remove(&residency).await
}

/// The shoot that owns the namespace, from annotation and labels of the namespace.
pub(crate) fn tenant_of(namespace: &v1::Namespace) -> Option<Tenant> {
    Some(Tenant {
        uid: namespace.annotations().get(constants::SHOOT_UID)?.clone(),
        namespace: namespace.labels().get(constants::SHOOT_NAMESPACE)?.clone(),
        name: namespace.labels().get(constants::SHOOT_NAME)?.clone(),
    })
}

/// Whether etcd continues to run for its final snapshot.
struct AwaitFinalSnapshot(bool);

async fn clean_up(
    residency: &Residency,
    AwaitFinalSnapshot(awaits_final_snapshot): AwaitFinalSnapshot,
) -> Result<()> {
    let given = LeaveInputs {
        namespace_is_active: residency.namespace_state().await? == NamespaceState::Active,
        awaits_final_snapshot,
    };
    leave_flow::build(residency, given)
        .into_flow()
        .run(|_| ())
        .await
        .map(|_| ())
        .map_err(|error| class_of(&error))
}

/// Cleans up all but etcd-main, which runs until the final snapshot exists. A seed that took the shoot back
/// has stopped this etcd, and starts the etcd again. The annotation of the Etcd precedes the state of the
/// Shoot: the present seed may have hibernated the shoot since.
async fn clean_up_around_etcd(residency: &Residency, shoot: &Shoot, epoch: i64) -> Result<()> {
    clean_up(residency, AwaitFinalSnapshot(true)).await?;
    EndedEtcd::wake_to_save(residency, epoch, placement::is_asleep(shoot)).await
}

/// The second step: no seed needs the data any more. The namespace goes last, because a gardenlet finds the
/// leftovers of a deleted Shoot by the mark of the namespace.
async fn remove(residency: &Residency) -> Result<()> {
    // Extensions read the shoot from the Cluster.
    ManagedResources::check_departed(residency).await?;
    Cluster::destroy(residency).await?;
    Namespace::destroy(residency).await?;
    Namespace::gone(residency).await
}

/// Removes the entries of this seed for this epoch and older epochs, and changes no further field.
async fn forget(context: &Context, shoot: &Shoot, epoch: i64) -> Result<()> {
    let api = context
        .garden
        .namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
    let mut conflicts = ConflictLimit::default();
    loop {
        let Some(fresh) = api.get_opt(&shoot.name_any()).await? else {
            return Ok(());
        };
        let Role::Former { .. } = role(&fresh, &context.seed_name) else {
            return Ok(());
        };
        let kept: Vec<_> = fresh
            .status
            .iter()
            .flat_map(|status| &status.former_seeds)
            .filter(|former| former.name != context.seed_name || former.epoch > epoch)
            .collect();
        let patch = json!({"formerSeeds": kept});
        if MANAGER.try_merge_status_of(&api, &fresh, &patch).await?.is_some() {
            return Ok(());
        }
        conflicts.count("Shoot", &fresh.name_any())?;
    }
}

pub(crate) fn residency(context: &Context, namespace: String, tenant: Tenant) -> Residency {
    Residency {
        seed: context.seed.clone(),
        settings: Arc::clone(&context.settings),
        namespace,
        tenant,
    }
}

/// A shoot that was handed over has a recorded technical id.
fn names_of(shoot: &Shoot) -> Result<String> {
    names::recorded_technical_id(shoot)
        .map(str::to_owned)
        .ok_or_else(|| Error::bug("a shoot that has left a seed has no technical id"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    fn shoot(uid: &str, status: &Value) -> Shoot {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web", "uid": uid},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {"version": "1.34.4"}},
            "status": status,
        }))
        .unwrap()
    }

    fn proven(epoch: i64) -> ProvenEnd {
        let end = ProvenEnd::default();
        let proof =
            json!({"epoch": epoch, "revision": 7, "snapshot": "Full-final", "sha256": "0".repeat(64)});
        end.record(serde_json::from_value(proof).unwrap());
        end
    }

    /// The answer of the hand-over was lost. Without the note the clean-up waits for etcd-backup-restore.
    #[test]
    fn a_departure_counts_as_proved_in_the_proved_epoch_alone() {
        let former = json!([{"name": "a", "epoch": 3}]);
        let left = json!({"seedName": "b", "ownership": {"epoch": 4}, "formerSeeds": former});
        let begun = shoot("u", &json!({"seedName": "a", "ownership": {"epoch": 3}}));
        let is_proved = |newest: &Shoot, end: &ProvenEnd| is_proved_departure(&begun, newest, "a", end);
        assert!(is_proved(&shoot("u", &left), &proven(3)));
        assert!(!is_proved(&shoot("u", &left), &proven(2)));
        assert!(!is_proved(&shoot("u", &left), &ProvenEnd::default()));
        assert!(!is_proved(&begun, &proven(3)));
        assert!(!is_proved(&shoot("a-later-shoot", &left), &proven(3)));
    }
}
