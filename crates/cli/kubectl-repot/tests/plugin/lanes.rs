//! Drains beside hostile projects, and beside Shoots that are created again.

use std::time::Duration;

use anyhow::Result;
use api::gardencore::Shoot;
use kube::{Api, api::DeleteParams};
use kubectl_repot::drain::{DrainRequest, drain};
use serde_json::{Value, json};
use testkit::apply;

use crate::{
    drain::{answer_dry_run_in, arrive_in, bring_seed, bring_shoot, names, request, until},
    fixture::{Fixture, object, silent},
};

/// The project of the second tenant. The name comes after the name of the first project.
const GUESTS: &str = "garden-guests";
/// Far below the time without progress that makes a move stall. A move that arrives at once ends within it
/// also on a busy machine.
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
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GUESTS}});
    apply(&fixture.client, namespace).await?;
    let spec = json!({"cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
        "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": "crowded"});
    let (own, guests) = (
        &fixture.shoots,
        Api::<Shoot>::namespaced(fixture.client.clone(), GUESTS),
    );
    for name in ["guest", "visitor"] {
        let metadata = json!({"name": name, "namespace": GUESTS});
        apply(&fixture.client, object("Shoot", metadata, &spec)).await?;
        fixture.host_on(&guests, name, "crowded", "testing").await?;
    }
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
