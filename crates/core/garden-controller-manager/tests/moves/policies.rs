//! The users that may write the fields of a move.

use api::{gardencore::Shoot, meta::LastOperationState};
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, operation, refused};

/// R7-43, R7-44, I8: the permitted moves, and the times at which a move is refused.
pub async fn seed_name_of_a_shoot(garden: &Garden) {
    // A user without the right to force a restore.
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let shoots: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    garden
        .shoot("web", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let same = to("seed-b");
    garden::until_allowed(|| garden::try_patch(&shoots, "web", &same)).await;
    allowed(garden.patch(&shoots, "web", to("seed-a")).await);
    let web = |body| garden.patch(&shoots, "web", body);
    refused(
        web(json!({"spec": {"seedName": ""}})).await,
        "spec.seedName in body should be at least 1 chars",
    );
    refused(
        web(json!({"spec": {"seedName": null}})).await,
        "seedName cannot be removed once",
    );
    // A move that has not begun may go elsewhere, and may be cancelled.
    for last in [
        ("Reconcile", "Succeeded"),
        ("Reconcile", "Error"),
        ("Migrate", "Pending"),
    ] {
        been(garden, "seed-a", last).await;
        for seed in ["seed-b", "seed-c", "seed-b", "seed-a"] {
            allowed(web(to(seed)).await);
        }
    }
    allowed(web(to("seed-b")).await);
    before_the_hand_over(garden, &shoots).await;
    after_the_hand_over(garden, &shoots).await;
    // A shoot that has arrived can move on.
    been(garden, "seed-b", ("Restore", "Succeeded")).await;
    allowed(web(to("seed-a")).await);
}

/// The shoot is wanted on seed-b and still on seed-a.
async fn before_the_hand_over(garden: &Garden, shoots: &Api<Shoot>) {
    let web = |body| garden.patch(shoots, "web", body);
    for state in [
        LastOperationState::Processing,
        LastOperationState::Error,
        LastOperationState::Failed,
    ] {
        been(garden, "seed-a", ("Migrate", &format!("{state:?}"))).await;
        allowed(web(to("seed-c")).await);
        allowed(web(to("seed-b")).await);
        // The seed first takes back a cancelled move: its recorded specification is gone.
        allowed(web(to("seed-a")).await);
        for seed in ["seed-b", "seed-c"] {
            refused(
                web(to(seed)).await,
                "the move was cancelled and seed seed-a takes the shoot back: wait until status.lastOperation is Restore Succeeded",
            );
        }
        been(garden, "seed-a", ("Restore", "Processing")).await;
        refused(
            web(to("seed-b")).await,
            "while seed seed-a restores the shoot (Restore Processing)",
        );
        // The seed may be dead: a user who may force a restore names another seed, and both destinations are
        // possible again.
        let administrator = garden.admin::<Shoot>(NAMESPACE);
        for last in [("Restore", "Processing"), ("Migrate", "Processing")] {
            been(garden, "seed-a", last).await;
            allowed(garden.patch(&administrator, "web", to("seed-b")).await);
            allowed(garden.patch(&administrator, "web", to("seed-a")).await);
        }
        been(garden, "seed-a", ("Restore", "Succeeded")).await;
        allowed(web(to("seed-b")).await);
    }
}

async fn after_the_hand_over(garden: &Garden, shoots: &Api<Shoot>) {
    let web = |body| garden.patch(shoots, "web", body);
    been(garden, "seed-b", ("Migrate", "Succeeded")).await;
    for seed in ["seed-c", "seed-a", "seed-b"] {
        allowed(web(to(seed)).await);
    }
    for last in [
        ("Migrate", "Aborted"),
        ("Restore", "Processing"),
        ("Restore", "Error"),
        ("Restore", "Failed"),
        ("Restore", "Pending"),
    ] {
        been(garden, "seed-b", last).await;
        for seed in ["seed-a", "seed-c"] {
            let words = format!("while seed seed-b restores the shoot ({} {})", last.0, last.1);
            refused(web(to(seed)).await, &words);
        }
        // All other fields may be edited.
        allowed(web(json!({"metadata": {"labels": {"a": last.1}}})).await);
    }
}

/// Only the garden approves: a seed could otherwise take a shoot with its own specification.
pub async fn a_seed_approves_nothing(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("coveted", "seed-b", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let approval = |destination: &str| {
        json!({"migration": {
            "source": "seed-a", "destination": destination, "generation": 1, "spec": {"purpose": "evaluation"},
        }})
    };
    let ready = json!({"constraints": [{
        "type": "ReadyForMigration", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
    }]});
    let seeds = [&garden.seed_a, &garden.seed_b]
        .map(|client| -> Api<Shoot> { Api::namespaced(client.clone(), NAMESPACE) });
    let words = "status.migration of Shoot coveted";
    // A policy takes effect a moment after its creation.
    garden::until_refused(words, || {
        let (api, body) = (seeds[0].clone(), json!({"status": approval("seed-b")}));
        Box::pin(async move {
            let params = kube::api::PatchParams::default().dry_run();
            let patch = kube::api::Patch::Merge(body);
            api.patch_status("coveted", &params, &patch).await.map(drop)
        })
    })
    .await;
    let [host, destination] = &seeds;
    let any = "Shoot coveted";
    refused(
        garden.patch_status(host, "coveted", approval("seed-b")).await,
        words,
    );
    refused(
        garden.patch_status(host, "coveted", ready.clone()).await,
        "constraint ReadyForMigration of Shoot coveted",
    );
    refused(
        garden
            .patch_status(destination, "coveted", approval("seed-b"))
            .await,
        any,
    );
    refused(garden.patch_status(destination, "coveted", ready).await, any);
    garden.status(&admin, "coveted", approval("seed-b")).await;
    let generation = json!({"migration": {"generation": 2}});
    for change in [approval("seed-c"), generation, json!({"migration": null})] {
        refused(garden.patch_status(host, "coveted", change.clone()).await, words);
        refused(garden.patch_status(destination, "coveted", change).await, any);
    }
    // The seed still writes the seed's own fields.
    let own = json!({"lastOperation": operation("Migrate", "Processing")});
    allowed(garden.patch_status(host, "coveted", own).await);
}

fn to(seed: &str) -> Value {
    json!({"spec": {"seedName": seed}})
}

async fn been(garden: &Garden, host: &str, last: (&str, &str)) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let status = json!({"seedName": host, "lastOperation": operation(last.0, last.1)});
    garden.status(&shoots, "web", status).await;
}
