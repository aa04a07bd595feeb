//! The controllers on a real API server, with its policies in force.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../garden/mod.rs"]
mod garden;

mod backups;
mod keys;
mod projects;
mod schedules;
mod seeds;
mod silence;
mod zones;

use std::time::Duration;

use anyhow::Result;
use api::{
    constants::{condition::READY_FOR_MIGRATION, finalizer::SHOOT_STATE},
    gardencore::{BackupBucket, CloudProfile, Project, ProjectPhase, Seed, Shoot, ShootState},
    meta::{Condition, ConditionStatus, ErrorCode, find_condition},
};
use garden::{Controlled, Garden, NAMESPACE, allowed, operation};
use garden_controller_manager::{
    Context, backup_entry_placement, project, seed, shoot_hibernation, shoot_kubeconfig, shoot_migration,
    shoot_placement, shoot_state, shoot_version, shoot_zone_expiry,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, ResourceQuota},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use runtime::clock;
use serde_json::{Value, json};
use testkit::eventually;

/// Longer than several pauses of a controller (10 s each) in sequence on a slow machine.
const SOON: Duration = Duration::from_secs(60);
/// The monitor period in these tests.
const SILENCE_BORNE: Duration = Duration::from_secs(8);
/// Much shorter than the monitor period, so that a machine that stalls for seconds does not make the
/// gardenlet look silent.
const RENEWED_EVERY: Duration = Duration::from_millis(250);

// At the same time: each scenario has separate objects, and mostly waits.
testkit::scenarios! {
    mod in_a_garden for Controlled = start() => Controlled::end;
    at_once:
    a_project_has_a_namespace,
    a_move_waits_for_its_destination,
    a_shoot_without_seed_says_so,
    a_namespace_that_was_there_is_not_taken,
    projects::{
        a_finalizer_that_keeps_a_deleted_project_is_reported,
        a_lost_label_of_a_namespace_comes_back,
        a_member_runs_no_pod_in_the_garden,
        each_kind_that_members_create_is_bounded,
        pods_of_an_assigned_namespace_are_restricted,
        no_project_gets_the_namespace_of_a_seed,
    },
    keys::{
        are_for_the_seed_that_has_the_shoot,
        of_a_shoot_that_is_deleted_change_hands_too,
        without_an_owner_are_reported_until_they_have_one,
    },
    backups::{
        follow_their_shoot,
        of_the_source_outlive_marks_in_phase_claiming,
        are_named_by_the_garden,
        of_a_planted_entry_are_reported,
        of_a_lost_seed_are_reported,
        of_a_preparation_follow_the_grant,
        of_a_preparation_are_in_the_bucket_of_the_destination,
    },
    a_version_is_completed_once,
    seeds::{
        stay_while_a_shoot_needs_them,
        go_with_the_last_object_that_needs_them,
        end_although_a_member_keeps_a_deleted_shoot,
    },
    zones::{are_taken_back_at_their_time},
    schedules::{are_kept_and_nobody_else_is_put_to_sleep};
}

async fn start() -> Result<Controlled> {
    let garden = Garden::start().await?;
    let context = context(&garden);
    let mut controlled = Controlled::new(garden, &context);
    controlled.start(backup_entry_placement::run(context.clone()));
    controlled.start(project::run(context.clone()));
    controlled.start(seed::run(context.clone()));
    controlled.start(shoot_hibernation::run(context.clone()));
    controlled.start(shoot_kubeconfig::run(context.clone()));
    controlled.start(shoot_migration::run(context.clone()));
    controlled.start(shoot_placement::run(context.clone()));
    controlled.start(shoot_state::run(context.clone()));
    controlled.start(shoot_version::run(context.clone()));
    controlled.start(shoot_zone_expiry::run(context));
    Ok(controlled)
}

fn context(garden: &Garden) -> Context {
    let silence_borne = format!("--seed-monitor-period-seconds={}", SILENCE_BORNE.as_secs());
    garden.context(&[
        silence_borne.as_str(),
        "--seed-sync-period-seconds=1",
        "--project-quota=count/internalsecrets.core.gardener.cloud=50",
        "--project-quota=pods=0",
        "--project-quota=count/configmaps=3",
    ])
}

async fn a_project_has_a_namespace(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    allowed(
        garden
            .apply(&projects, "web", garden::project_of("web", None))
            .await,
    );
    let web = until(&projects, "web", |p| {
        p.status.as_ref().and_then(|s| s.phase) == Some(ProjectPhase::Ready)
    })
    .await;
    assert_eq!(web.spec.namespace.as_deref(), Some("garden-web"));
    let namespace = namespaces.get("garden-web").await.unwrap();
    assert_eq!(namespace.labels()["project.gardener.cloud/name"], "web");
    let quotas: Api<ResourceQuota> = garden.admin("garden-web");
    let hard = quotas.get("gardener").await.unwrap().spec.unwrap().hard.unwrap();
    assert_eq!(hard["count/internalsecrets.core.gardener.cloud"].0, "50");
    // Only an empty namespace is deleted.
    let shoots: Api<Shoot> = garden.admin("garden-web");
    garden.shoot_in("garden-web", "last", "", None, ("", "")).await;
    projects.delete("web", &DeleteParams::default()).await.unwrap();
    until(&projects, "web", |p| {
        p.status.as_ref().and_then(|s| s.phase) == Some(ProjectPhase::Terminating)
    })
    .await;
    assert!(
        namespaces
            .get("garden-web")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&shoots, "last", confirmed).await);
    shoots.delete("last", &DeleteParams::default()).await.unwrap();
    gone(&projects, "web").await;
    gone(&namespaces, "garden-web").await;
}

/// An operator's labels assign the namespace to a project; and the namespace is not deleted with a project
/// that did not create it.
async fn a_namespace_that_was_there_is_not_taken(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "precious"}});
    allowed(garden.apply(&namespaces, "precious", body).await);
    let wanted = garden::project_of("greedy", Some("precious"));
    allowed(garden.apply(&projects, "greedy", wanted).await);
    let phase = |wanted| move |p: &Project| p.status.as_ref().and_then(|s| s.phase) == Some(wanted);
    until(&projects, "greedy", phase(ProjectPhase::Failed)).await;
    let untouched = namespaces.get("precious").await.unwrap();
    assert!(!untouched.labels().contains_key("project.gardener.cloud/name"));
    let labels = json!({"project.gardener.cloud/name": "greedy", "gardener.cloud/role": "project"});
    let given = json!({"metadata": {"labels": labels}});
    allowed(garden.patch(&namespaces, "precious", given).await);
    until(&projects, "greedy", phase(ProjectPhase::Ready)).await;
    projects.delete("greedy", &DeleteParams::default()).await.unwrap();
    gone(&projects, "greedy").await;
    let left = namespaces.get("precious").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_none());
}

/// Renews the Lease like a gardenlet.
async fn renew(garden: &Garden, seed: &str) -> Result<(), kube::Error> {
    let leases: Api<Lease> = garden.admin("gardener-system-seed-lease");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": seed},
        "spec": {"renewTime": format!("{:.6}", clock::now())},
    });
    garden.apply(&leases, seed, lease).await
}

fn gardenlet_of(seed: &Seed) -> Option<ConditionStatus> {
    find_condition(&seed.status.as_ref()?.conditions, "GardenletReady").map(|c| c.status)
}

/// R7-46, I8, and the ShootState that a move needs.
async fn a_move_waits_for_its_destination(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let seeds: Api<Seed> = Api::all(garden.administrator());
    garden
        .shoot("mover", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden
        .status(
            &shoots,
            "mover",
            json!({"technicalID": "shoot--dev--mover", "uid": "m"}),
        )
        .await;
    let bucket = garden.bucket_of("seed-a").await;
    garden.entry("shoot--dev--mover--m", "seed-a", &bucket).await;
    allowed(
        garden
            .patch(&shoots, "mover", json!({"spec": {"seedName": "seed-b"}}))
            .await,
    );
    let refused = until(&shoots, "mover", |shoot| constraint(shoot).is_some()).await;
    let refused = constraint(&refused).unwrap();
    assert_eq!(
        (refused.status, refused.reason.as_str()),
        (ConditionStatus::False, "DestinationSeedHasNoBackup")
    );
    // Cancelled: the constraint is removed, and all further fields are unchanged.
    allowed(
        garden
            .patch(&shoots, "mover", json!({"spec": {"seedName": "seed-a"}}))
            .await,
    );
    until(&shoots, "mover", |shoot| constraint(shoot).is_none()).await;
    // The destination is fixed while the move is requested.
    allowed(
        garden
            .patch(&shoots, "mover", json!({"spec": {"seedName": "seed-b"}}))
            .await,
    );
    allowed(
        garden
            .patch(
                &seeds,
                "seed-b",
                json!({"spec": {"backup": {"provider": "local"}}}),
            )
            .await,
    );
    for seed in ["seed-a", "seed-b"] {
        bring_ready_bucket(garden, seed).await;
    }
    // The gardenlet renews its Lease all the time.
    let conditions = [
        "GardenletReady",
        "SeedSystemComponentsHealthy",
        "BackupBucketsReady",
    ]
    .map(|type_| condition(type_, ConditionStatus::True));
    eventually("the move may begin", SOON, || async {
        renew(garden, "seed-b").await.map_err(|e| e.to_string())?;
        garden
            .patch_status(&seeds, "seed-b", json!({"conditions": conditions}))
            .await
            .map_err(|e| e.to_string())?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let shoot = shoots.get("mover").await.map_err(|e| e.to_string())?;
        let found = constraint(&shoot).ok_or("no constraint")?;
        if found.status == ConditionStatus::True {
            Ok(())
        } else {
            Err(found.message)
        }
    })
    .await
    .unwrap();
    a_shoot_state_outlives_its_move(garden).await;
}

/// The seed has a bucket that is ready.
async fn bring_ready_bucket(garden: &Garden, seed: &str) {
    let uid = garden.bucket_of(seed).await;
    let buckets: Api<BackupBucket> = Api::all(garden.administrator());
    allowed(garden.apply(&buckets, &uid, garden::bucket(&uid, seed)).await);
    garden
        .status(
            &buckets,
            &uid,
            json!({"lastOperation": operation("Create", "Succeeded")}),
        )
        .await;
}

/// While a move runs its ShootState cannot be lost.
async fn a_shoot_state_outlives_its_move(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let states: Api<ShootState> = garden.admin(NAMESPACE);
    let old = until(&states, "mover", |_| true).await.uid();
    garden
        .status(
            &shoots,
            "mover",
            json!({"lastOperation": operation("Migrate", "Processing")}),
        )
        .await;
    until(&states, "mover", |state| {
        state.finalizers().iter().any(|f| f == SHOOT_STATE)
    })
    .await;
    states.delete("mover", &DeleteParams::default()).await.unwrap();
    let restored = json!({"seedName": "seed-b", "lastOperation": operation("Restore", "Processing")});
    garden.status(&shoots, "mover", restored).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(states.get_opt("mover").await.unwrap().is_some());
    garden
        .status(
            &shoots,
            "mover",
            json!({"lastOperation": operation("Restore", "Succeeded")}),
        )
        .await;
    until(&states, "mover", |state| state.uid() != old).await;
}

async fn a_shoot_without_seed_says_so(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.shoot("nowhere", "sede-a", None, ("", "")).await;
    let told = |words: &'static str| {
        move |shoot: &Shoot| {
            let errors = shoot
                .status
                .as_ref()
                .map(|s| s.last_errors.as_slice())
                .unwrap_or_default();
            errors
                .first()
                .is_some_and(|error| error.description.contains(words))
        }
    };
    until(&shoots, "nowhere", told("there is no seed sede-a")).await;
    allowed(
        garden
            .patch(&shoots, "nowhere", json!({"spec": {"seedName": "seed-a"}}))
            .await,
    );
    let mended = until(&shoots, "nowhere", |shoot| {
        shoot.status.as_ref().unwrap().last_errors.is_empty()
    })
    .await;
    let description = mended.status.unwrap().last_operation.unwrap().description;
    assert_eq!(description, "Waiting for the gardenlet of seed seed-a.");

    // No policy compares a Shoot with a Seed that is registered later.
    garden.shoot("early", "seed-late", None, ("", "")).await;
    until(&shoots, "early", told("there is no seed seed-late")).await;
    let mut late = garden::seed("seed-late");
    late["spec"]["taints"] = json!([{"key": "protected"}]);
    garden.bring(&late).await.unwrap();
    let refused = until(&shoots, "early", told("Seed seed-late has the taint protected")).await;
    let status = refused.status.unwrap();
    assert_eq!(status.last_errors[0].codes, [ErrorCode::ErrConfigurationProblem]);
    assert_eq!(status.seed_name, None, "no seed has a right");
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let untainted = json!({"spec": {"taints": null}});
    allowed(garden.patch(&seeds, "seed-late", untainted).await);
    until(&shoots, "early", |shoot| {
        shoot.status.as_ref().unwrap().last_errors.is_empty()
    })
    .await;
}

fn constraint(shoot: &Shoot) -> Option<Condition> {
    shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION).cloned()
}

fn condition(type_: &str, status: ConditionStatus) -> Value {
    let now = "2026-01-01T00:00:00Z";
    json!({
        "type": type_, "status": status, "lastTransitionTime": now, "lastUpdateTime": now, "reason": "R", "message": "m",
    })
}

/// C16: a Shoot may leave its version open, and a profile that offers more later upgrades no shoot.
async fn a_version_is_completed_once(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let profiles: Api<CloudProfile> = Api::all(garden.administrator());
    let offer = |versions: &[&str]| {
        let versions: Vec<_> = versions
            .iter()
            .map(|version| json!({"version": version}))
            .collect();
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "growing"},
            "spec": {"type": "local", "regions": [{"name": "local"}], "kubernetes": {"versions": versions}},
        })
    };
    let shoot = |name: &str, version: Option<&str>| {
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name},
            "spec": {
                "cloudProfile": {"name": "growing", "kind": "CloudProfile"}, "region": "local",
                "provider": {"type": "local"}, "kubernetes": version.map_or(json!({}), |version| json!({"version": version})),
            },
        })
    };
    // The profile is created after the Shoot: the Shoot needs no further change.
    allowed(garden.apply(&shoots, "open", shoot("open", None)).await);
    allowed(garden.apply(&shoots, "half", shoot("half", Some("1.33"))).await);
    allowed(
        garden
            .apply(&profiles, "growing", offer(&["1.33.2", "1.34.4"]))
            .await,
    );
    let is = |version: &'static str| {
        move |shoot: &Shoot| shoot.spec.kubernetes.version.as_deref() == Some(version)
    };
    until(&shoots, "open", is("1.34.4")).await;
    let half = until(&shoots, "half", is("1.33.2")).await;
    allowed(
        garden
            .apply(
                &profiles,
                "growing",
                offer(&["1.33.2", "1.33.9", "1.34.4", "1.35.0"]),
            )
            .await,
    );
    // This Shoot is completed from the new offer, so the controller has seen the offer by then.
    allowed(garden.apply(&shoots, "late", shoot("late", None)).await);
    until(&shoots, "late", is("1.35.0")).await;
    assert!(is("1.34.4")(&shoots.get("open").await.unwrap()));
    let later = shoots.get("half").await.unwrap();
    assert_eq!(later.metadata.generation, half.metadata.generation);
}

async fn until<K>(api: &Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> K
where
    K: garden::Object,
{
    eventually(&format!("{name} is as awaited"), SOON, || async {
        let object = api.get(name).await.map_err(|e| e.to_string())?;
        if holds(&object) {
            Ok(object)
        } else {
            Err(format!("it is {object:?}"))
        }
    })
    .await
    .unwrap()
}

async fn gone<K: garden::Object>(api: &Api<K>, name: &str) {
    eventually(&format!("{name} is gone"), SOON, || async {
        match api.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(format!("it is {object:?}")),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
    .unwrap();
}
