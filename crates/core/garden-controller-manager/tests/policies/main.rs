//! The garden's policies on a real API server: each refusal by its message, each allowance by its success.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod accidents;
mod deletions;
#[path = "../garden/mod.rs"]
mod garden;
mod nodes;
mod nulls;
mod optional_fields;
mod registered_seeds;
mod samples;
mod seeds;
mod warnings;
mod zones;

use api::{
    constants::LEFTOVER_NAMESPACES,
    gardencore::{BackupEntry, Seed, Shoot},
};
use garden::{Garden, NAMESPACE, allowed, refused};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

// In sequence: some scenarios change a policy's parameters, or the definition of Shoots, for a time.
testkit::scenarios! {
    mod refusals for Garden = Garden::start();
    in_sequence:
    seed_name_before_creation,
    seed_name_alone,
    controller_leaders_of_a_shoot,
    version_of_a_shoot,
    nodes::{a_shoot_has_nodes_or_has_none, pools_have_bounds, pools_have_what_nodes_can_run},
    zones::{
        one_zone_is_cut_off_at_a_time,
        a_zone_that_is_cut_off_stays_in_its_pools,
        a_zone_is_cut_off_until_a_time,
        the_order_of_a_failover_is_a_known_word,
        a_pool_names_a_zone_once,
        a_question_is_answered_by_the_seed_that_has_the_shoot,
    },
    seeds::{
        names_and_networks_of_shoots_stay_while_shoots_are_on_the_seed,
        a_shoot_gets_no_name_of_another_shoot,
        a_gardenlet_takes_no_domain,
        a_gardenlet_prevents_no_takeover_from_its_seed,
        a_gardenlet_does_not_delete_its_seed,
        a_gardenlet_changes_no_owner_checks,
        a_shoot_is_created_on_a_tolerated_and_selected_seed,
        a_seed_in_deletion_takes_no_new_shoot,
        a_project_bounds_the_taints_that_its_shoots_tolerate,
    },
    registered_seeds::{
        a_gardenlet_changes_no_place_of_its_backups,
        a_gardenlet_changes_no_labels_and_removes_no_taint,
        a_gardenlet_holds_no_move_back_by_an_annotation,
        a_gardenlet_keeps_the_identity_of_its_cluster,
    },
    nulls::{a_null_of_a_shoot_names_no_secret_and_no_domain, a_null_of_a_seed_names_no_secret},
    schedules_of_a_shoot,
    warnings::{a_sleep_that_a_webhook_may_not_let_end},
    operations,
    deletions::{a_deletion_is_confirmed},
    own_seed_and_lease,
    own_shoots,
    own_backups,
    accidents::{a_namespace_with_shoots_or_backups_stays, a_definition_of_the_garden_stays},
    optional_fields::{no_optional_field_ends_in_an_error_of_a_policy};
}

/// An older API server may not be able to read the data of a newer server, and the same holds for a skipped
/// minor version.
async fn version_of_a_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("versioned", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let patch = |version: Value| {
        garden.patch(
            &shoots,
            "versioned",
            json!({"spec": {"kubernetes": {"version": version}}}),
        )
    };
    for version in ["1.33.9", "1.36.0", "2.34.4", "0.34.4"] {
        refused(
            patch(json!(version)).await,
            "one minor version at a time, and not down",
        );
    }
    for version in ["1.34.3", "v1.34.0-rc.1"] {
        refused(patch(json!(version)).await, "kubernetes.version may not go down");
    }
    for version in [json!("1.34"), json!(null)] {
        refused(patch(version).await, "cannot be removed or shortened");
    }
    for version in [
        "1.34.4",
        "v1.34.4",
        "1.34.10",
        "1.34.11+local",
        "1.35.0-rc.1",
        "1.35.0",
    ] {
        allowed(patch(json!(version)).await);
    }
}

/// A time that never comes would be a shoot that never wakes.
async fn schedules_of_a_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("scheduled", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let patch = |schedule: Value| {
        let body = json!({"spec": {"hibernation": {"schedules": [schedule]}}});
        garden.patch(&shoots, "scheduled", body)
    };
    for time in ["20:00", "0 20 * *", "0 0 20 * * *", ""] {
        refused(patch(json!({"end": time})).await, "write five fields like");
    }
    refused(
        patch(json!({"location": "Europe/Berlin"})).await,
        "has neither start nor end",
    );
    for time in ["0 20 * * *", "00 8 * * MON-FRI", "*/15  1,2 1-7 JAN ?"] {
        allowed(patch(json!({"start": time, "end": time})).await);
    }
    let long = format!("0 20 * * {}", "1,".repeat(40));
    for schedule in [
        json!({"end": long}),
        json!({"end": "0 20 * * *", "location": "x".repeat(65)}),
    ] {
        refused(patch(schedule).await, "has more than 64 characters");
    }
    let many =
        |count| json!({"spec": {"hibernation": {"schedules": vec![json!({"end": "0 20 * * *"}); count]}}});
    refused(
        garden.patch(&shoots, "scheduled", many(17)).await,
        "has 17 schedules, and at most 16 are allowed",
    );
    allowed(garden.patch(&shoots, "scheduled", many(16)).await);
}

/// RK-03, RK-34: a controller that would run nowhere or twice is refused by its name.
async fn controller_leaders_of_a_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let leaders = |leaders: Value| json!({"spec": {"kubernetes": {"controllerLeaders": leaders}}});
    let leader = |name: &str, component: &str| json!({"name": name, "component": component});
    garden
        .shoot("leaders", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let patch = |body| garden.patch(&shoots, "leaders", body);
    let node_ipam = "node-ipam-controller";
    refused(
        patch(leaders(json!([leader(
            "route-controller",
            "cloud-controller-manager"
        )])))
        .await,
        "Unsupported value: \"route-controller\": supported values: \"node-ipam-controller\"",
    );
    refused(
        patch(leaders(json!([leader(node_ipam, "*")]))).await,
        "supported values: \"kube-controller-manager\", \"cloud-controller-manager\"",
    );
    let twice = [
        leader(node_ipam, "kube-controller-manager"),
        leader(node_ipam, "cloud-controller-manager"),
    ];
    refused(patch(leaders(json!(twice))).await, "Duplicate value");
    allowed(patch(leaders(json!([leader(node_ipam, "cloud-controller-manager")]))).await);
    allowed(patch(leaders(json!(null))).await);
    allowed(patch(json!({"spec": {"networking": {"pods": "fd00::/56"}}})).await);
    allowed(patch(leaders(json!([leader(node_ipam, "kube-controller-manager")]))).await);
    refused(
        patch(leaders(json!([leader(node_ipam, "cloud-controller-manager")]))).await,
        "gives ranges of IPv4 addresses only",
    );
}

/// R7-43: before its creation a shoot cannot be moved; a name of a missing seed can be corrected.
async fn seed_name_before_creation(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let to = |seed: &str| json!({"spec": {"seedName": seed}});
    garden.shoot("young", "seed-a", None, ("", "")).await;
    refused(
        garden.patch(&shoots, "young", to("seed-b")).await,
        "seed seed-a is about to make it",
    );
    let status = json!({"seedName": "seed-a", "lastOperation": garden::operation("Create", "Processing")});
    garden.status(&shoots, "young", status).await;
    // Only those who may force a restore name another seed, because the seed may be dead.
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let mover: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    garden::until_refused("before the shoot was created", || {
        garden::try_patch(&mover, "young", &to("seed-b"))
    })
    .await;
    refused(
        garden.patch(&mover, "young", to("seed-b")).await,
        "before the shoot was created",
    );
    allowed(garden.patch(&shoots, "young", to("seed-b")).await);
    garden.shoot("typo", "sede-a", None, ("", "")).await;
    allowed(garden.patch(&shoots, "typo", to("seed-a")).await);
    garden.shoot("later", "", None, ("", "")).await;
    allowed(garden.patch(&shoots, "later", to("seed-a")).await);
}

/// The source would hand over a specification that was never reconciled.
async fn seed_name_alone(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let healthy = ("Reconcile", "Succeeded");
    garden.shoot("whole", "seed-a", Some("seed-a"), healthy).await;
    for other in [
        json!({"kubernetes": {"version": "1.35.0"}}),
        json!({"hibernation": {"enabled": true}}),
        json!({"purpose": "production"}),
        json!({"tolerations": [{"key": "x"}]}),
    ] {
        let mut spec = other;
        spec["seedName"] = json!("seed-b");
        refused(
            garden.patch(&shoots, "whole", json!({"spec": spec})).await,
            "cannot be changed together with other fields of spec",
        );
    }
    let moved = json!({
        "spec": {"seedName": "seed-b", "tolerations": []}, "metadata": {"annotations": {"x": "y"}},
    });
    allowed(garden.patch(&shoots, "whole", moved).await);
}

async fn operations(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.shoot("operated", "seed-a", None, ("", "")).await;
    let ask = |key: &'static str, value: &str| {
        garden.patch(
            &shoots,
            "operated",
            json!({"metadata": {"annotations": {key: value}}}),
        )
    };
    for operation in ["reconcile", "retry"] {
        allowed(ask("gardener.cloud/operation", operation).await);
    }
    for operation in ["migrate", "restore"] {
        refused(
            ask("gardener.cloud/operation", operation).await,
            "edit spec.seedName to move it",
        );
    }
    for operation in ["maintain", "rotate-credentials-start", "rollout-workers=a"] {
        refused(
            ask("gardener.cloud/operation", operation).await,
            "is not supported by this version yet",
        );
    }
    refused(
        ask("gardener.cloud/operation", "recnocile").await,
        "gardener.cloud/operation=recnocile is unknown",
    );
    refused(
        ask("maintenance.gardener.cloud/operation", "reconcile").await,
        "not supported by this version yet",
    );
}

async fn own_seed_and_lease(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.seed_a.clone());
    let note = json!({"metadata": {"annotations": {LEFTOVER_NAMESPACES: "y"}}});
    allowed(garden.patch(&seeds, "seed-a", note.clone()).await);
    let word = "the gardenlet of seed \"seed-a\" may not write Seed seed-b";
    refused(garden.patch(&seeds, "seed-b", note.clone()).await, word);
    let expiry =
        |time: Value| json!({"kubernetesVersion": "v9", "clientCertificateExpirationTimestamp": time});
    let report = expiry(json!("2036-11-26T07:03:10Z"));
    refused(garden.patch_status(&seeds, "seed-b", report.clone()).await, word);
    for report in [report, expiry(json!("8999-12-31T23:59:59Z")), expiry(Value::Null)] {
        allowed(garden.patch_status(&seeds, "seed-a", report).await);
    }
    // A time that the suite cannot read would end the watches of all Seeds.
    let late = expiry(json!("9999-12-31T23:59:59Z"));
    let refusal = garden.patch_status(&seeds, "seed-a", late).await;
    refused(refusal, "clientCertificateExpirationTimestamp");
    let leases: Api<Lease> = Api::namespaced(garden.seed_a.clone(), "gardener-system-seed-lease");
    let lease = |name: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    allowed(garden.apply(&leases, "seed-a", lease("seed-a")).await);
    refused(
        garden.apply(&leases, "seed-b", lease("seed-b")).await,
        "may not write Lease seed-b",
    );
    // The group alone is not enough.
    let nameless: Api<Seed> = Api::all(garden.nameless.clone());
    refused(
        garden.patch(&nameless, "seed-a", note).await,
        "the gardenlet of seed \"\" may not write Seed seed-a",
    );
}

async fn own_shoots(garden: &Garden) {
    garden
        .shoot("mine", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden
        .shoot("theirs", "seed-b", Some("seed-b"), ("Reconcile", "Succeeded"))
        .await;
    garden
        .shoot("moving", "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let label = json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}});
    let status = json!({"observedGeneration": 7});
    for name in ["mine", "moving"] {
        allowed(garden.patch(&shoots, name, label.clone()).await);
        allowed(garden.patch_status(&shoots, name, status.clone()).await);
    }
    let word = "may not write Shoot theirs, which is on seed \"seed-b\"";
    refused(garden.patch(&shoots, "theirs", label).await, word);
    refused(garden.patch_status(&shoots, "theirs", status).await, word);
    let spec = json!({"spec": {"purpose": "production"}});
    refused(
        garden.patch(&shoots, "mine", spec).await,
        "may not change the spec of Shoot mine",
    );
    // Roles refuse before policies are asked.
    refused(
        shoots.delete("mine", &DeleteParams::default()).await.map(|_| ()),
        "cannot delete resource \"shoots\"",
    );
}

/// R17-22, and the seed of a BackupEntry.
async fn own_backups(garden: &Garden) {
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    garden.entry("e1", "seed-a", "bucket-a").await;
    allowed(garden.patch_status(&a, "e1", json!({"seedName": "seed-a"})).await);
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    refused(
        garden.patch(&b, "e1", label).await,
        "may not write BackupEntry e1, which is on seed \"seed-a\"",
    );
    // Backups never move before their shoot: even the owning seed cannot hand them over.
    // Two policies refuse, and the API server names one of them.
    let word = "may not change the spec of BackupEntry e1";
    refused(garden.patch(&a, "e1", to_b.clone()).await, word);
    let editor = garden.editor_of_backups(NAMESPACE).await.unwrap();
    let editor: Api<BackupEntry> = Api::namespaced(editor, NAMESPACE);
    refused(
        garden.patch(&editor, "e1", to_b.clone()).await,
        "garden-controller-manager does, after its shoot was handed over",
    );
    let manager: Api<BackupEntry> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    allowed(garden.patch(&manager, "e1", to_b).await);
    // The entry is assigned to seed-b now. Seed-b may neither send it on nor back, and seed-a may only
    // release it.
    let back = json!({"spec": {"seedName": "seed-a"}});
    refused(garden.patch(&b, "e1", back).await, word);
    for seed in [&a, &b] {
        let elsewhere = json!({"spec": {"bucketName": "bucket-x"}});
        refused(garden.patch(seed, "e1", elsewhere).await, word);
    }
    refused(
        garden.patch_status(&a, "e1", json!({"seedName": "seed-c"})).await,
        "is on seed \"seed-c\"",
    );
    leaving_an_entry(garden, &a).await;
    allowed(garden.patch_status(&a, "e1", json!({"seedName": "seed-b"})).await);
    refused(
        garden
            .patch_status(&a, "e1", json!({"observedGeneration": 1}))
            .await,
        "which is on seed \"seed-b\"",
    );
    for metadata in [
        json!({"annotations": {"gardener.cloud/operation": null}}),
        json!({"finalizers": null}),
        json!({"finalizers": ["gardener", "x/y"]}),
    ] {
        let body = json!({"metadata": metadata});
        refused(garden.patch(&a, "e1", body).await, "may not write BackupEntry e1");
    }
    refused(
        a.delete("e1", &DeleteParams::default()).await.map(|_| ()),
        "may not write BackupEntry e1",
    );
    garden.entry("source-e1", "seed-b", "bucket-a").await;
    allowed(b.delete("source-e1", &DeleteParams::default()).await.map(|_| ()));
}

/// The seed that has handed over a shoot ends its own work on the BackupEntry, and writes the status alone. A
/// late epoch or a finalizer of that seed would decide about the restore and the deletion.
async fn leaving_an_entry(garden: &Garden, former: &Api<BackupEntry>) {
    let annotated = |key: &str, value: Value| {
        garden.patch(former, "e1", json!({"metadata": {"annotations": {key: value}}}))
    };
    let words = "may not change the metadata of BackupEntry e1, which is meant for seed \"seed-b\"";
    refused(
        annotated("shoot.gardener.cloud/ownership-epoch", json!("999")).await,
        words,
    );
    refused(
        annotated("gardener.cloud/operation", json!("restore")).await,
        words,
    );
    for finalizers in [json!(["gardener"]), json!(["gardener", "x/y"])] {
        let body = json!({"metadata": {"finalizers": finalizers}});
        refused(garden.patch(former, "e1", body).await, words);
    }
    refused(
        former.delete("e1", &DeleteParams::default()).await.map(|_| ()),
        "may not delete BackupEntry e1, which is meant for seed \"seed-b\"",
    );
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let asked = json!({"metadata": {"annotations": {"gardener.cloud/operation": "migrate"}, "finalizers": ["gardener"]}});
    garden.patch(&entries, "e1", asked).await.unwrap();
    refused(annotated("gardener.cloud/operation", json!(null)).await, words);
    let released = json!({"metadata": {"finalizers": null}});
    refused(garden.patch(former, "e1", released.clone()).await, words);
    // A deletion that an administrator has begun ends where the entry is.
    garden.entry("e2", "seed-a", "bucket-a").await;
    garden.status(&entries, "e2", json!({"seedName": "seed-a"})).await;
    let given = json!({"metadata": {"finalizers": ["gardener"]}, "spec": {"seedName": "seed-b"}});
    garden.patch(&entries, "e2", given).await.unwrap();
    entries.delete("e2", &DeleteParams::default()).await.unwrap();
    allowed(garden.patch(former, "e2", released).await);
}
