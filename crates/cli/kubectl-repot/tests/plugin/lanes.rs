//! Drains beside hostile projects, beside failed moves of an earlier drain, and beside Shoots that are
//! created again.

use std::time::Duration;

use anyhow::{Result, bail};
use api::{constants::OPERATION, gardencore::Shoot};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use kubectl_repot::drain::{DrainRequest, drain};
use serde_json::{Value, json};
use testkit::apply;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    drain::{answer_dry_run_in, arrive_in, assert_results, bring_seed, bring_shoot, names, request, until},
    fixture::{Fixture, SOON, object, operation, silent},
};

/// The project of the second tenant. The name comes after the name of the first project.
const GUESTS: &str = "garden-guests";
/// Far below the time without progress that makes a move stall. A move that arrives at once also does so
/// on a busy machine.
const BRIEF: Duration = Duration::from_secs(10);

/// Security: the first shoot of a hostile project makes progress and takes long. The second shoot of the
/// project comes before the second shoot of the further project.
pub async fn a_slow_move_holds_no_lane_from_other_projects(fixture: &Fixture) -> Result<()> {
    for seed in ["crowded", "roomy"] {
        bring_seed(fixture, seed).await?;
    }
    for name in ["sluggish", "tardy"] {
        bring_shoot(fixture, name, "testing", ["crowded", "crowded"]).await?;
    }
    let own = &fixture.shoots;
    let guests = bring_guests(fixture, &["guest", "visitor"], "crowded").await?;
    let to = ["roomy".to_owned()];
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let brief = DrainRequest {
        lane_within: BRIEF,
        ..request("crowded", &to, Some("crowded"))
    };
    let drained = Box::pin(drain(&fixture.session, brief, &nobody, &silent));
    let garden = async {
        for (shoots, name) in [
            (own, "sluggish"),
            (own, "tardy"),
            (&guests, "guest"),
            (&guests, "visitor"),
        ] {
            answer_dry_run_in(shoots, name, "roomy", true).await?;
        }
        until(own, "sluggish", names("roomy")).await?;
        // The first move has not ended.
        until(&guests, "guest", names("roomy")).await?;
        arrive_in(&guests, "guest", "roomy").await?;
        // The lane of the slow move is for further projects.
        until(&guests, "visitor", names("roomy")).await?;
        let waits = own.get("tardy").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some("crowded"));
        arrive_in(&guests, "visitor", "roomy").await?;
        arrive_in(own, "sluggish", "roomy").await?;
        until(own, "tardy", names("roomy")).await?;
        arrive_in(own, "tardy", "roomy").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert!(!answer.has_obstacles, "{}", answer.text);
    Ok(())
}

/// Shoots of the second tenant on the seed.
async fn bring_guests(fixture: &Fixture, names: &[&str], seed: &str) -> Result<Api<Shoot>> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GUESTS}});
    apply(&fixture.client, namespace).await?;
    let guests: Api<Shoot> = Api::namespaced(fixture.client.clone(), GUESTS);
    let spec = json!({"cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
        "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": seed});
    for name in names {
        let metadata = json!({"name": name, "namespace": GUESTS});
        apply(&fixture.client, object("Shoot", metadata, &spec)).await?;
        fixture.host_on(&guests, name, seed, "testing").await?;
    }
    Ok(guests)
}

/// As a gardenlet gives up the move that an interrupted drain has requested.
async fn fail_move(shoots: &Api<Shoot>, name: &str, to: &str) -> Result<()> {
    let params = PatchParams::default();
    let wanted = Patch::Merge(json!({"spec": {"seedName": to}}));
    let generation = shoots.patch(name, &params, &wanted).await?.metadata.generation;
    let failed = json!({"settledSeedName": null, "observedGeneration": generation,
        "lastErrors": [{"description": "the machines are not deleted"}], "lastOperation": operation("Migrate Failed")});
    let failed = Patch::Merge(json!({"status": failed}));
    shoots.patch_status(name, &params, &failed).await?;
    Ok(())
}

/// Security: moves of two projects have failed in an earlier drain. A further shoot of a project moves.
pub async fn failed_moves_of_an_earlier_drain_end_no_repeated_drain(fixture: &Fixture) -> Result<()> {
    for seed in ["stuck", "fresh"] {
        bring_seed(fixture, seed).await?;
    }
    for name in ["broken", "intact"] {
        bring_shoot(fixture, name, "testing", ["stuck", "stuck"]).await?;
    }
    let own = &fixture.shoots;
    let guests = bring_guests(fixture, &["halted"], "stuck").await?;
    fail_move(own, "broken", "fresh").await?;
    fail_move(&guests, "halted", "fresh").await?;
    let to = ["fresh".to_owned()];
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let request = request("stuck", &to, Some("stuck"));
    let drained = Box::pin(drain(&fixture.session, request, &nobody, &silent));
    let garden = async {
        answer_dry_run_in(own, "intact", "fresh", true).await?;
        until(own, "intact", names("fresh")).await?;
        arrive_in(own, "intact", "fresh").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert!(answer.has_obstacles, "{}", answer.text);
    let results = [("broken", "Failed"), ("halted", "Failed"), ("intact", "Moved")];
    assert_results(&answer, &results);
    a_failed_move_that_is_tried_again_is_awaited(fixture, request).await
}

/// A user has removed the cause, and the gardenlet has not begun.
async fn a_failed_move_that_is_tried_again_is_awaited(
    fixture: &Fixture,
    request: DrainRequest<'_>,
) -> Result<()> {
    let retry = json!({"metadata": {"annotations": {OPERATION: "retry"}}});
    fixture.merge("broken", retry).await?;
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let (reported, mut reports) = unbounded_channel();
    let report = |sentence: &str| {
        let _ = reported.send(sentence.to_owned());
    };
    let drained = Box::pin(drain(&fixture.session, request, &nobody, &report));
    let garden = async {
        until_reported(&mut reports, "broken: Migrate Failed").await?;
        arrive_in(&fixture.shoots, "broken", "fresh").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    assert_results(&answer?, &[("broken", "Moved"), ("halted", "Failed")]);
    Ok(())
}

async fn until_reported(reports: &mut UnboundedReceiver<String>, words: &str) -> Result<()> {
    let reported = async {
        while let Some(sentence) = reports.recv().await {
            if sentence.contains(words) {
                return Ok(());
            }
        }
        bail!("the command has ended without the report {words}")
    };
    testkit::timeout(SOON, reported).await?
}

/// Continuous integration deletes a cluster and creates a cluster of the same name, between the plan and the
/// move.
pub async fn a_shoot_that_is_created_again_has_not_left_the_seed(fixture: &Fixture) -> Result<()> {
    for seed in ["recycled", "calm"] {
        bring_seed(fixture, seed).await?;
    }
    for name in ["earlier", "reborn"] {
        bring_shoot(fixture, name, "testing", ["recycled", "recycled"]).await?;
    }
    let to = ["calm".to_owned()];
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let request = request("recycled", &to, Some("recycled"));
    let drained = Box::pin(drain(&fixture.session, request, &nobody, &silent));
    let garden = async {
        for name in ["earlier", "reborn"] {
            answer_dry_run_in(&fixture.shoots, name, "calm", true).await?;
        }
        // The single lane is held.
        until(&fixture.shoots, "earlier", names("calm")).await?;
        fixture.shoots.delete("reborn", &DeleteParams::default()).await?;
        bring_shoot(fixture, "reborn", "testing", ["recycled", "recycled"]).await?;
        arrive_in(&fixture.shoots, "earlier", "calm").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert!(answer.has_obstacles, "{}", answer.text);
    assert!(!answer.text.contains("is drained"), "{}", answer.text);
    let outcomes = answer.json["shoots"].as_array().unwrap();
    let is_newcomer = |outcome: &Value| {
        let message = outcome["message"].as_str().unwrap_or_default();
        outcome["shoot"] == "reborn" && message.contains("came to the seed after the plan")
    };
    assert!(outcomes.iter().any(is_newcomer), "{}", answer.text);
    Ok(())
}
