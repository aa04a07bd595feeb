//! The clean-up in a seed after the departure of a shoot (role `Former`). The seed removes only objects in
//! the seed, and changes no external resource.
//!
//! The clean-up has two steps, and the destination acts between the two. First the seed deletes all but the
//! data of etcd-main. Then the destination records that the new etcd runs from the copy. After that record
//! the former seed deletes the data and the namespace, and last the own entry in `status.formerSeeds`.
//! Neither the destination nor a deletion of the Shoot waits for this clean-up.
//!
//! After a takeover without the help of the former seed, some changes may exist only there. The etcd of the
//! former seed stays until the changes are saved, and the Shoot reports the number of changes (R17-46).

use std::sync::Arc;

use api::{constants, gardencore::Shoot};
use k8s_openapi::api::core::v1;
use kube::ResourceExt;
use parts::{
    Cluster, ConflictLimit, Destroy, ManagedResources, Namespace, NamespaceState, Stay, Tenant, left_in,
    tenant,
};
use placement::{Journey, Role, journey, names, role};
use runtime::{Cluster as _, Error, Next, Result};
use serde_json::json;

use super::{
    departure, identity,
    leave_flow::{self, LeaveInputs},
    leftover::{self, Leftover},
    operation::class_of,
};
use crate::{context::Context, context::MANAGER};

/// Cleans up after the stay of a shoot in this epoch.
pub(super) async fn leave(context: &Context, shoot: &Shoot, epoch: i64) -> Result<Next> {
    identity::in_move_from(shoot, epoch, Box::pin(clean_up_after(context, shoot, epoch))).await
}

async fn clean_up_after(context: &Context, shoot: &Shoot, epoch: i64) -> Result<Next> {
    let stay = stay(context, names_of(shoot)?, tenant(shoot));
    if stay.namespace_state().await? != NamespaceState::Missing {
        Namespace::mark_as_left(&stay, epoch).await?;
        Cluster::tell(&stay, shoot).await?;
        match leftover::find_leftover(shoot, &context.seed_name, epoch) {
            Leftover::Nothing => {}
            Leftover::Unknown => {
                clean_up(&stay, AwaitFinalSnapshot(true)).await?;
                // The choice of the data triggers this controller again.
                return Ok(Next::Change);
            }
            Leftover::Changes(begun_with) => {
                clean_up(&stay, AwaitFinalSnapshot(true)).await?;
                leftover::save(context, &stay, shoot, begun_with, epoch).await?;
            }
            Leftover::LossNotReported => {
                clean_up(&stay, AwaitFinalSnapshot(true)).await?;
                leftover::saved(&stay, epoch).await?;
            }
        }
        clean_up(&stay, AwaitFinalSnapshot(false)).await?;
    }
    if journey(shoot) != Journey::Settled && journey(shoot) != Journey::Leaving {
        // The recorded restore triggers this controller again.
        return Ok(Next::Change);
    }
    remove(&stay).await?;
    forget(context, shoot, epoch).await?;
    Ok(Next::Change)
}

/// Cleans up a namespace that has the mark of a departure and no Shoot in the garden.
pub(super) async fn clean_up_without_shoot(context: &Context, namespace: &v1::Namespace) -> Result<()> {
    let (Some(tenant), Some(epoch)) = (tenant_of(namespace), left_in(namespace)) else {
        return Ok(());
    };
    let stay = stay(context, namespace.name_any(), tenant);
    // The Cluster names this seed where the mark came after the end of the Shoot.
    departure::tell(&stay, &context.seed_name, epoch).await?;
    clean_up(&stay, AwaitFinalSnapshot(false)).await?;
    remove(&stay).await
}

/// The shoot that owns the namespace, from annotation and labels of the namespace.
pub(super) fn tenant_of(namespace: &v1::Namespace) -> Option<Tenant> {
    Some(Tenant {
        uid: namespace.annotations().get(constants::SHOOT_UID)?.clone(),
        namespace: namespace.labels().get(constants::SHOOT_NAMESPACE)?.clone(),
        name: namespace.labels().get(constants::SHOOT_NAME)?.clone(),
    })
}

/// Whether etcd continues to run for its final snapshot.
struct AwaitFinalSnapshot(bool);

async fn clean_up(stay: &Stay, AwaitFinalSnapshot(awaits_final_snapshot): AwaitFinalSnapshot) -> Result<()> {
    let given = LeaveInputs {
        namespace_is_active: stay.namespace_state().await? == NamespaceState::Active,
        awaits_final_snapshot,
    };
    leave_flow::build(stay, given)
        .run(|_| ())
        .await
        .map(|_| ())
        .map_err(|error| class_of(&error))
}

/// The second step: no seed needs the data any more. The namespace goes last, because a gardenlet finds the
/// leftovers of a deleted Shoot by the mark of the namespace.
async fn remove(stay: &Stay) -> Result<()> {
    // Extensions read the shoot from the Cluster.
    ManagedResources::check_departed(stay).await?;
    Cluster::destroy(stay).await?;
    Namespace::destroy(stay).await?;
    Namespace::gone(stay).await
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

pub(super) fn stay(context: &Context, namespace: String, tenant: Tenant) -> Stay {
    Stay {
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
