//! Shoots without an answer to the dry run of a drain, and exclusions.

use std::sync::Mutex;

use anyhow::Result;
use api::gardencore::Seed;
use kube::{Api, api::DeleteParams};
use kubectl_repot::drain::{DrainRequest, drain};
use serde_json::json;

use crate::{
    drain::{answer_dry_run, arrive, asks, bring_seed, bring_shoot, names, remove_question, request, until},
    fixture::{Fixture, silent},
};

/// A user removes the question about the own shoot, and the Shoots of further users are deleted meanwhile.
pub async fn a_shoot_without_an_answer_is_left_out_of_a_drain(fixture: &Fixture) -> Result<()> {
    for seed in ["beset", "haven"] {
        bring_seed(fixture, seed).await?;
    }
    for name in ["mute", "fleeting", "remnant", "sound"] {
        bring_shoot(fixture, name, "testing", ["beset", "beset"]).await?;
    }
    // The gardenlet has deleted the control plane, and a user keeps the Shoot.
    let own = json!({"metadata": {"finalizers": ["example.org/own"]}});
    fixture.merge("remnant", own).await?;
    let deleted = DeleteParams::default();
    fixture.shoots.delete("remnant", &deleted).await?;
    let (to, excluded) = (["haven".to_owned()], ["garden-dev/departed".to_owned()]);
    let request = DrainRequest {
        excluded: &excluded,
        ..request("beset", &to, Some("beset"))
    };
    a_mistyped_name_is_refused(fixture, request).await?;
    let asked = Mutex::new(String::new());
    let approves = |text: &str, name: &str| -> Option<String> {
        text.clone_into(&mut asked.lock().unwrap());
        Some(name.to_owned())
    };
    let unapproved = DrainRequest {
        approval: None,
        ..request
    };
    let drained = Box::pin(drain(&fixture.session, unapproved, &approves, &silent));
    // As garden-controller-manager, the gardenlets and the users.
    let garden = async {
        remove_question(fixture, "mute").await?;
        until(&fixture.shoots, "fleeting", asks).await?;
        fixture.shoots.delete("fleeting", &deleted).await?;
        answer_dry_run(fixture, "sound", "haven", true).await?;
        until(&fixture.shoots, "sound", names("haven")).await?;
        arrive(fixture, "sound", "haven").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert!(answer.has_obstacles, "{}", answer.text);
    let outcomes = answer.json["shoots"].as_array().unwrap();
    let results = outcomes
        .iter()
        .map(|outcome| (outcome["shoot"].as_str(), outcome["result"].as_str()));
    let results: Vec<_> = results.collect();
    let expected = [("mute", "LeftOut"), ("sound", "Moved")].map(|(name, result)| (Some(name), Some(result)));
    assert_eq!(results, expected, "{}", answer.text);
    let question = asked.into_inner().unwrap();
    for words in [
        "remnant is deleted, and does not count",
        "--exclude garden-dev/departed leaves no Shoot on seed beset out: no Shoot has this name",
    ] {
        assert!(question.contains(words), "{words}: {question}");
        let notes = answer.json["notes"].to_string();
        assert!(notes.contains(words), "{words}: {notes}");
    }
    a_drain_without_any_answer_fails(fixture, &to).await?;
    let released = json!({"metadata": {"finalizers": null}});
    fixture.merge("remnant", released).await.map(drop)
}

/// With an approval in advance the shoot of the correct name would move.
async fn a_mistyped_name_is_refused(fixture: &Fixture, request: DrainRequest<'_>) -> Result<()> {
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let refused = Box::pin(drain(&fixture.session, request, &nobody, &silent)).await;
    let failure = refused.unwrap_err().to_string();
    assert!(
        failure.contains("no Shoot has this name") && failure.contains("nothing was changed"),
        "{failure}"
    );
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    assert!(!seeds.get("beset").await?.spec.is_cordoned());
    Ok(())
}

/// A single shoot is left on the seed.
async fn a_drain_without_any_answer_fails(fixture: &Fixture, to: &[String]) -> Result<()> {
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let request = request("beset", to, Some("beset"));
    let drained = Box::pin(drain(&fixture.session, request, &nobody, &silent));
    let (failed, removed) = tokio::join!(drained, remove_question(fixture, "mute"));
    removed?;
    let failure = failed.unwrap_err().to_string();
    assert!(
        failure.contains("no dry run of 1 was answered") && failure.contains("removed without an answer"),
        "{failure}"
    );
    // All shoots of a namespace are left out on purpose, so the garden is not asked. The seed is cordoned, so
    // that no approval is needed.
    let excluded = ["garden-dev/*".to_owned()];
    let request = DrainRequest {
        excluded: &excluded,
        approval: None,
        ..request
    };
    let nothing = Box::pin(drain(&fixture.session, request, &nobody, &silent)).await?;
    assert!(
        !nothing.has_obstacles && nothing.text.contains("left out: --exclude"),
        "{}",
        nothing.text
    );
    assert!(
        nothing.text.contains("Seed beset is drained except for"),
        "{}",
        nothing.text
    );
    Ok(())
}
