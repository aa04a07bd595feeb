//! Obstacles of actuators, and forbidden actions; with real components.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod addresses;
mod backups;
mod control_plane;
mod dns;
mod infrastructure;
mod late;
mod lost_right;
mod mutations;
mod owner;
mod ownership;
mod roles;
mod tap;
#[path = "../world/mod.rs"]
mod world;
mod zones;

use anyhow::{Context, Result, ensure};
use api::extensions::ExtensionObject;
use extension::{Actuator, ExtensionReconciler};
use kube::{Api, Client, ResourceExt, api::DeleteParams};
use runtime::controller::Next;
use serde_json::json;
use testkit::{ControlPlane, NameServer, ObjectStore};
use world::{ZONE, create};

struct World {
    seed: Client,
    control_plane: ControlPlane,
    cloud: std::collections::BTreeMap<String, Vec<u8>>,
    dns: NameServer,
    store: ObjectStore,
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::start("seed").await?;
        let world = Self {
            seed: world::seed(&control_plane).await?,
            cloud: world::account(&control_plane, "cloud-user").await?,
            dns: NameServer::start(&[ZONE]).await?,
            store: ObjectStore::start().await?,
            control_plane,
        };
        // Several scenarios write records with the credentials of these namespaces.
        for namespace in [owner::NAMESPACE, addresses::NAMESPACE] {
            world::namespace(&world.seed, namespace, &world::dns_credentials(&world.dns)).await?;
        }
        Ok(world)
    }
}

testkit::scenarios! {
    mod actuators for World = World::start();
    in_sequence:
    infrastructure::{
        networks_never_overlap,
        a_lost_network_is_never_replaced,
        a_list_of_instances_is_begun_once,
        refused_cloud_credentials,
        unknown_configuration_survives,
        a_failed_shoot_is_left_alone,
    };
    at_once:
    control_plane::{
        flags_follow_the_spec,
        pods_follow_secrets,
        ready_means_rolled_out,
        migrated_means_that_no_pod_is_left,
        force_does_not_wait_for_ever,
    };
    in_sequence:
    zones::{
        a_zone_opened_by_hand_is_closed_again,
        a_zone_closed_by_others_is_left_alone,
        a_zone_that_is_none_is_refused,
        an_awaited_machine_occupies_no_worker,
    },
    roles::{only_the_acting_seed_acts},
    mutations::{an_actuator_without_a_right_is_noticed, an_update_without_a_test_is_noticed},
    ownership::{
        a_lost_record_ends_the_work,
        one_silent_witness_ends_nothing,
        without_witnesses_nothing_is_done,
    },
    lost_right::{
        nothing_reaches_an_object_store,
        nothing_reaches_a_name_server,
        nothing_reaches_a_cloud,
    },
    late::{a_finalizer_that_goes_late_undoes_no_success},
    dns::{
        a_late_deletion_leaves_the_record_of_another_seed,
        an_alias_and_addresses_replace_each_other,
        a_refused_dns_key_is_told,
    },
    owner::{
        a_record_is_handed_over,
        a_shoot_that_goes_leaves_nothing,
        what_is_not_ours_is_left_alone,
        a_key_that_may_not_write_takes_no_shoot,
        of_two_writers_one_has_the_epoch,
        a_writer_that_slept_changes_nothing,
        an_update_that_lands_late_changes_nothing,
        a_writer_may_end_anywhere,
    },
    addresses::{
        an_address_that_lands_late_changes_nothing,
        an_update_outside_of_the_owners_zone_that_lands_late_changes_nothing,
        without_an_owner_record_nothing_is_written,
    },
    backups::{
        a_backup_entry_waits_for_its_namespace,
        an_entry_takes_its_place,
        a_source_that_cannot_help_is_claimed,
        only_the_own_entry_removes_objects,
        a_place_of_a_later_epoch_keeps_its_backups,
        a_forced_entry_leaves_its_backups,
        refused_store_credentials,
    };
}

async fn run<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> runtime::Result<Next>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    // Boxed: the futures of operations are large, and a test has many.
    Box::pin(reconciler.run(object)).await
}

async fn run_created<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> Result<()>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    create(&reconciler.api_of(object), object).await?;
    run(reconciler, object).await?;
    Ok(())
}

async fn delete<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> Result<()>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    let api = reconciler.api_of(object);
    api.delete(&object.name_any(), &DeleteParams::default()).await?;
    run(reconciler, object).await?;
    ensure!(
        api.get_opt(&object.name_any()).await?.is_none(),
        "{} is still there",
        object.name_any()
    );
    Ok(())
}

/// Checks the code of the last error, and returns the sentence.
async fn codes<K: ExtensionObject>(api: &Api<K>, name: &str, code: &str) -> Result<String> {
    let object = api.get(name).await?;
    let error = object
        .default_status()
        .and_then(|s| s.last_error.clone())
        .context("no lastError")?;
    ensure!(json!(error.codes) == json!([code]), "{error:?} is not {code}");
    Ok(error.description)
}
