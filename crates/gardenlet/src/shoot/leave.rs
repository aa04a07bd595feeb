//! What a seed does that the shoot has left (role `Former`): it cleans up what is its own, and nothing outside.
//!
//! Two steps, with the destination between them. At once: everything goes but the data of etcd-main. When the destination has
//! recorded that it runs from its copy: the data and the namespace go, and last the seed's entry in `status.formerSeeds`.
//! Nothing here holds up anybody: neither the destination nor a deletion of the Shoot waits for it.

use std::sync::Arc;

use api::{constants, gardencore::Shoot};
use botanist::{NamespaceState, Stay, Tenant, left_in};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use placement::{Journey, Role, journey, names, role};
use runtime::{Cluster, Error, Next, Result, wait};
use serde_json::json;

use super::{
    leave_flow::{self, Facts},
    operation::class_of,
};
use crate::{context::Context, context::MANAGER};

/// Time for the Cluster to go: nobody holds it.
const CLUSTER_GOES_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);

/// Cleans up after the stay of a shoot in this epoch.
pub(super) async fn leave(context: &Context, shoot: &Shoot, epoch: i64) -> Result<Next> {
    let stay = stay(context, names_of(shoot)?, botanist::tenant(shoot));
    if stay.namespace_state().await? != NamespaceState::Missing {
        stay.mark_as_left(epoch).await?;
        stay.tell_cluster_of(shoot).await?;
        clean_up(&stay).await?;
    }
    if journey(shoot) != Journey::Settled && journey(shoot) != Journey::Leaving {
        // The recorded restore wakes this again.
        return Ok(Next::Change);
    }
    remove(&stay).await?;
    forget(context, shoot, epoch).await?;
    Ok(Next::Change)
}

/// Cleans up a namespace that was marked as left and whose Shoot is gone.
pub(super) async fn clean_up_without_shoot(context: &Context, namespace: &Namespace) -> Result<()> {
    let Some(tenant) = tenant_of(namespace).filter(|_| left_in(namespace).is_some()) else {
        return Ok(());
    };
    let stay = stay(context, namespace.name_any(), tenant);
    clean_up(&stay).await?;
    remove(&stay).await
}

/// Whose namespace it is, as it says itself.
pub(super) fn tenant_of(namespace: &Namespace) -> Option<Tenant> {
    Some(Tenant {
        uid: namespace.annotations().get(constants::SHOOT_UID)?.clone(),
        namespace: namespace.labels().get(constants::SHOOT_NAMESPACE)?.clone(),
        name: namespace.labels().get(constants::SHOOT_NAME)?.clone(),
    })
}

async fn clean_up(stay: &Stay) -> Result<()> {
    let facts = Facts {
        namespace_is_active: stay.namespace_state().await? == NamespaceState::Active,
    };
    leave_flow::build(stay, facts)
        .run(|_| ())
        .await
        .map(|_| ())
        .map_err(|error| class_of(&error))
}

/// The rest: nobody needs the data any more. The namespace goes last: it is by its mark that a gardenlet which starts when the
/// Shoot is gone finds what is left.
async fn remove(stay: &Stay) -> Result<()> {
    stay.delete_cluster().await?;
    let clusters = stay.seed.cluster_wide::<api::extensions::Cluster>();
    wait::until_gone(&clusters, &stay.namespace, CLUSTER_GOES_WITHIN).await?;
    stay.delete_namespace().await?;
    stay.wait_until_namespace_deleted().await
}

/// Removes the own entry of this epoch and of older ones, and changes nothing else.
async fn forget(context: &Context, shoot: &Shoot, epoch: i64) -> Result<()> {
    let api = context
        .garden
        .namespaced::<Shoot>(&shoot.namespace().unwrap_or_default());
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
    }
}

fn stay(context: &Context, namespace: String, tenant: Tenant) -> Stay {
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
