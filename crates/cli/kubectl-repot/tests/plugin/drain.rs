//! Seeds that are cordoned and drained.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use api::{
    constants::MIGRATION_DRY_RUN,
    gardencore::{Seed, Shoot},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::wait::await_condition,
};
use kubectl_repot::{
    answer::Answer,
    cordon::{cordon, set as set_cordon},
    drain::{DrainRequest, SLOT_WITHIN, drain},
    follow::{Step, follow},
    takeover::LANE_WITHIN,
};
use serde_json::{Value, json};
use testkit::apply;

use crate::fixture::{Fixture, SOON, object, operation, session, silent};

/// The whole bound is waited for. The answer to the dry run must arrive within the bound.
const IMPATIENT: Duration = Duration::from_secs(10);
/// Seconds of the next answer. The garden gives each answer a new time.
static NEXT_SECOND: AtomicU64 = AtomicU64::new(0);

pub async fn a_cordoned_seed_keeps_its_taints(fixture: &Fixture) -> Result<()> {
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    let protected = json!({"spec": {"taints": [{"key": "protected"}]}});
    seeds
        .patch("seed-c", &PatchParams::default(), &Patch::Merge(protected))
        .await?;
    let closed = cordon(&fixture.session, "seed-c", true).await?;
    assert!(closed.text.contains("is cordoned: no shoot"), "{}", closed.text);
    let again = cordon(&fixture.session, "seed-c", true).await?;
    assert_eq!(again.json["changed"], false, "{}", again.text);
    let seed = seeds.get("seed-c").await?;
    assert!(
        seed.spec.is_cordoned() && seed.spec.taints.len() == 2,
        "{:?}",
        seed.spec.taints
    );
    // Two users close and open the seed at once, and no taint is lost.
    let (first, second) = tokio::join!(
        set_cordon(&fixture.session, "seed-c", false),
        set_cordon(&fixture.session, "seed-c", false)
    );
    assert!(first? || second?);
    let seed = seeds.get("seed-c").await?;
    assert_eq!(seed.spec.taints.len(), 1, "{:?}", seed.spec.taints);
    assert_eq!(seed.spec.taints[0].key, "protected");
    let ghost = cordon(&fixture.session, "ghost", true).await.unwrap_err();
    assert!(ghost.to_string().contains("does not exist"), "{ghost}");
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let refused = cordon(&stranger, "seed-c", true).await.unwrap_err();
    assert!(refused.to_string().contains("no right"), "{refused}");
    Ok(())
}

/// A Seed without shoots.
pub async fn bring_seed(fixture: &Fixture, name: &str) -> Result<()> {
    let spec = json!({"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "provider": {"type": "local", "region": "local"}});
    let seed = object("Seed", json!({"name": name}), &spec);
    apply(&fixture.client, seed).await.map(drop)
}

/// A shoot on the seed, with a destination in the specification.
pub async fn bring_shoot(fixture: &Fixture, name: &str, purpose: &str, seeds: [&str; 2]) -> Result<()> {
    let [acting, wanted] = seeds;
    fixture.shoot(name, "Reconcile Succeeded").await?;
    let spec = json!({"spec": {"seedName": wanted, "purpose": purpose}});
    fixture.merge(name, spec).await?;
    let status = json!({"seedName": acting, "settledSeedName": acting});
    fixture.write_status(name, status).await.map(drop)
}

pub async fn until(shoots: &Api<Shoot>, name: &str, is_so: impl Fn(&Shoot) -> bool) -> Result<()> {
    let check = |shoot: Option<&Shoot>| {
        Ok(if shoot.is_some_and(&is_so) {
            Step::Done(())
        } else {
            Step::Waiting("not yet".to_owned())
        })
    };
    follow(shoots.clone(), name, name, SOON, &silent, check).await?;
    Ok(())
}

pub fn asks(shoot: &Shoot) -> bool {
    let annotations = shoot.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(MIGRATION_DRY_RUN))
}

/// As a user removes the question before the garden answers.
pub async fn remove_question(fixture: &Fixture, name: &str) -> Result<()> {
    until(&fixture.shoots, name, asks).await?;
    let removed = json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: null}}});
    fixture.merge(name, removed).await.map(drop)
}

/// As garden-controller-manager answers a dry run.
pub async fn answer_dry_run(fixture: &Fixture, name: &str, seed: &str, may_begin: bool) -> Result<()> {
    answer_dry_run_in(&fixture.shoots, name, seed, may_begin).await
}

pub async fn answer_dry_run_in(shoots: &Api<Shoot>, name: &str, seed: &str, may_begin: bool) -> Result<()> {
    until(shoots, name, asks).await?;
    let (answered, params) = (
        json!({"status": {"constraints": [verdict(seed, may_begin)]}}),
        PatchParams::default(),
    );
    shoots
        .patch_status(name, &params, &Patch::Merge(answered))
        .await?;
    let removed = json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: null}}});
    shoots.patch(name, &params, &Patch::Merge(removed)).await?;
    Ok(())
}

fn verdict(seed: &str, may_begin: bool) -> Value {
    let (status, reason) = if may_begin {
        ("True", "DestinationSeedReady")
    } else {
        ("False", "SeedTaintNotTolerated")
    };
    let message = format!("About a move to seed {seed} today.");
    constraint("MigrationDryRun", status, reason, &message)
}

fn constraint(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    let second = NEXT_SECOND.fetch_add(1, Ordering::Relaxed);
    let time = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
    json!({"type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time, "lastUpdateTime": time})
}

pub fn names(seed: &'static str) -> impl Fn(&Shoot) -> bool {
    move |shoot| shoot.spec.seed_name.as_deref() == Some(seed)
}

/// As both gardenlets move the shoot.
pub async fn arrive(fixture: &Fixture, name: &str, seed: &str) -> Result<()> {
    arrive_in(&fixture.shoots, name, seed).await
}

pub async fn arrive_in(shoots: &Api<Shoot>, name: &str, seed: &str) -> Result<()> {
    let there = json!({"seedName": seed, "settledSeedName": seed, "constraints": [],
        "lastOperation": operation("Restore Succeeded")});
    let arrived = Patch::Merge(json!({"status": there}));
    shoots
        .patch_status(name, &PatchParams::default(), &arrived)
        .await?;
    Ok(())
}

pub fn request<'a>(from: &'a str, to: &'a [String], approval: Option<&'a str>) -> DrainRequest<'a> {
    DrainRequest {
        from,
        to,
        parallel: 1,
        excluded: &[],
        approval,
        lane_within: LANE_WITHIN,
        slot_within: SLOT_WITHIN,
        within: SOON,
    }
}

/// Checks the result of each named shoot in the answer of a drain.
pub fn assert_results(answer: &Answer, expected: &[(&str, &str)]) {
    let outcomes = answer.json["shoots"].as_array().unwrap();
    for (name, result) in expected {
        let outcome = outcomes.iter().find(|outcome| outcome["shoot"] == *name);
        assert_eq!(outcome.unwrap()["result"], *result, "{}", answer.text);
    }
}

pub async fn a_drain_moves_shoots_within_the_bound_and_goes_on_after_refusals(
    fixture: &Fixture,
) -> Result<()> {
    for seed in ["drained", "near"] {
        bring_seed(fixture, seed).await?;
    }
    for (name, purpose) in [
        ("first", "testing"),
        ("second", "production"),
        ("held", "testing"),
    ] {
        bring_shoot(fixture, name, purpose, ["drained", "drained"]).await?;
    }
    // As an interrupted drain has left the shoot.
    bring_shoot(fixture, "midway", "testing", ["drained", "near"]).await?;
    let to = ["near".to_owned()];
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let request = request("drained", &to, Some("drained"));
    let drained = Box::pin(drain(&fixture.session, request, &nobody, &silent));
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    // As garden-controller-manager and the gardenlets.
    let garden = async {
        for (name, may_begin) in [("first", true), ("second", true), ("held", false)] {
            answer_dry_run(fixture, name, "near", may_begin).await?;
        }
        let cordoned = await_condition(seeds.clone(), "drained", |seed: Option<&Seed>| {
            seed.is_some_and(|seed| seed.spec.is_cordoned())
        });
        testkit::timeout(SOON, cordoned).await??;
        // The move that is under way fills the bound.
        let waits = fixture.shoots.get("first").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some("drained"));
        arrive(fixture, "midway", "near").await?;
        until(&fixture.shoots, "first", names("near")).await?;
        let waits = fixture.shoots.get("second").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some("drained"));
        let full = constraint(
            "ReadyForMigration",
            "False",
            "DestinationSeedFull",
            "Seed near is full.",
        );
        fixture
            .write_status("first", json!({"constraints": [full]}))
            .await?;
        // The refused request is taken back, and the drain goes on.
        until(&fixture.shoots, "first", names("drained")).await?;
        until(&fixture.shoots, "second", names("near")).await?;
        arrive(fixture, "second", "near").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert!(answer.has_obstacles, "{}", answer.text);
    let results = [
        ("midway", "Moved"),
        ("second", "Moved"),
        ("first", "Refused"),
        ("held", "LeftOut"),
    ];
    assert_results(&answer, &results);
    Ok(())
}

pub async fn a_drain_without_an_approval_changes_nothing(fixture: &Fixture) -> Result<()> {
    for seed in ["kept", "spare"] {
        bring_seed(fixture, seed).await?;
    }
    bring_shoot(fixture, "resident", "testing", ["kept", "kept"]).await?;
    let to = ["spare".to_owned()];
    let asked = Mutex::new(String::new());
    let refuses = |text: &str, _: &str| -> Option<String> {
        text.clone_into(&mut asked.lock().unwrap());
        None
    };
    let drained = drain(&fixture.session, request("kept", &to, None), &refuses, &silent);
    let (shown, dry_run) = tokio::join!(
        Box::pin(drained),
        answer_dry_run(fixture, "resident", "spare", true)
    );
    dry_run?;
    let shown = shown?;
    assert!(
        shown.has_obstacles && shown.text.contains("--yes"),
        "{}",
        shown.text
    );
    let plan = asked.lock().unwrap().clone();
    assert!(
        plan.contains("moves to seed spare") && plan.contains("expected duration"),
        "{plan}"
    );
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    assert!(!seeds.get("kept").await?.spec.is_cordoned());
    let shoot = fixture.shoots.get("resident").await?;
    assert_eq!(shoot.spec.seed_name.as_deref(), Some("kept"));
    let ghost = ["ghost".to_owned()];
    let unknown = drain(&fixture.session, request("kept", &ghost, None), &refuses, &silent);
    let failure = Box::pin(unknown).await.unwrap_err();
    assert_eq!(failure.to_string(), "no Seed has the name ghost");
    an_empty_seed_is_drained(fixture).await
}

/// The moves of an interrupted drain have ended, or the seed has never had a shoot.
async fn an_empty_seed_is_drained(fixture: &Fixture) -> Result<()> {
    let to = ["kept".to_owned()];
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    // A cordoned seed needs no approval.
    for (approval, is_drained) in [(None, false), (Some("spare"), true), (None, true)] {
        let drained = drain(
            &fixture.session,
            request("spare", &to, approval),
            &nobody,
            &silent,
        );
        let answer = Box::pin(drained).await?;
        assert_eq!(!answer.has_obstacles, is_drained, "{}", answer.text);
        assert_eq!(
            answer.text.contains("Seed spare is drained"),
            is_drained,
            "{}",
            answer.text
        );
        assert_eq!(seeds.get("spare").await?.spec.is_cordoned(), is_drained);
    }
    Ok(())
}

/// The move of a hostile tenant fails for as long as the command waits.
pub async fn a_failing_move_holds_no_lane_of_a_repeated_drain(fixture: &Fixture) -> Result<()> {
    for seed in ["jammed", "clear"] {
        bring_seed(fixture, seed).await?;
    }
    // As an interrupted drain has left the shoot.
    bring_shoot(fixture, "jam", "testing", ["jammed", "clear"]).await?;
    let fails = json!({"settledSeedName": null, "lastErrors": [{"description": "the machines are not deleted"}],
        "lastOperation": operation("Migrate Error")});
    fixture.write_status("jam", fails).await?;
    for name in ["queued", "apart"] {
        bring_shoot(fixture, name, "testing", ["jammed", "jammed"]).await?;
    }
    let (to, excluded) = (["clear".to_owned()], ["garden-dev/apart".to_owned()]);
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let repeated = DrainRequest {
        excluded: &excluded,
        ..request("jammed", &to, Some("jammed"))
    };
    let drained = Box::pin(drain(&fixture.session, repeated, &nobody, &silent));
    let garden = async {
        answer_dry_run(fixture, "queued", "clear", true).await?;
        until(&fixture.shoots, "queued", names("clear")).await?;
        arrive(fixture, "queued", "clear").await?;
        arrive(fixture, "jam", "clear").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    let results = [("jam", "Moved"), ("queued", "Moved"), ("apart", "Excluded")];
    assert_results(&answer, &results);
    a_request_without_an_answer_is_taken_back(fixture, &to).await
}

/// The garden approves no move within the bound of the wait.
async fn a_request_without_an_answer_is_taken_back(fixture: &Fixture, to: &[String]) -> Result<()> {
    let impatient = DrainRequest {
        within: IMPATIENT,
        ..request("jammed", to, Some("jammed"))
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let drained = Box::pin(drain(&fixture.session, impatient, &nobody, &silent));
    let (answer, answered) = tokio::join!(drained, answer_dry_run(fixture, "apart", "clear", true));
    answered?;
    let answer = answer?;
    assert_results(&answer, &[("apart", "Failed")]);
    assert!(
        answer.text.contains("the request was taken back"),
        "{}",
        answer.text
    );
    let kept = fixture.shoots.get("apart").await?;
    assert_eq!(kept.spec.seed_name.as_deref(), Some("jammed"));
    a_request_that_waits_for_a_slot_is_no_failed_move(fixture, impatient).await
}

/// Moves of a hostile tenant hold the slots of the destination.
async fn a_request_that_waits_for_a_slot_is_no_failed_move(
    fixture: &Fixture,
    impatient: DrainRequest<'_>,
) -> Result<()> {
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let drained = Box::pin(drain(&fixture.session, impatient, &nobody, &silent));
    let garden = async {
        until(&fixture.shoots, "apart", asks).await?;
        // Before the request of the move, so that the first state of the wait has the queue.
        let busy = constraint("ReadyForMigration", "False", "DestinationSeedBusy", "Wait.");
        let constraints = [verdict("clear", true), busy];
        fixture
            .write_status("apart", json!({"constraints": constraints}))
            .await?;
        remove_question(fixture, "apart").await
    };
    let (answer, acted) = tokio::join!(drained, garden);
    acted?;
    let answer = answer?;
    assert_results(&answer, &[("apart", "Refused")]);
    let kept = fixture.shoots.get("apart").await?;
    assert_eq!(kept.spec.seed_name.as_deref(), Some("jammed"));
    Ok(())
}
