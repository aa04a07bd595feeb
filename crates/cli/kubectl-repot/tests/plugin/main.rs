//! The commands on a real API server with the kinds of a garden: status, plan, moves with concurrent
//! requests, drains, takeovers that need an approval, and a user without rights.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod drain;
mod fixture;
mod lanes;
mod observation;
mod trials;
mod unanswered;

use std::sync::Mutex;

use anyhow::Result;
use api::{
    constants::{MIGRATION_DRY_RUN, SHOOT_FORCE_RESTORE},
    gardencore::Shoot,
};
use kubectl_repot::{
    answer::Answer,
    diagnose::diagnose,
    failure::{EXIT_REFUSED, Failure},
    follow::{Step, follow},
    moves::{request_cancellation, request_move, wait_for_arrival},
    plan::plan,
    status,
    takeover::{LANE_WITHIN, TakeoverSettings, take_over_seed, take_over_shoot},
    version::version,
};
use serde_json::json;
use testkit::apply;

use fixture::{Fixture, NAMESPACE, SOON, object, operation, session, silent};

/// As in the program.
const STACK: usize = 8 * 1024 * 1024;

testkit::scenarios! {
    mod commands for Fixture = Fixture::start(), stack STACK;
    in_sequence:
    a_user_without_rights_is_told_the_missing_right,
    an_object_that_does_not_exist_is_named,
    status_shows_lines_and_a_tree,
    a_plan_is_answered_by_the_garden,
    of_two_moves_at_once_the_second_is_refused,
    a_move_is_followed_and_an_interrupt_leaves_the_move_alone,
    a_cancellation_names_the_acting_seed,
    a_takeover_needs_an_approval,
    shoots_of_a_dead_seed_follow_the_trial,
    trials::{
        a_failing_takeover_after_the_trial_holds_no_lane, a_failing_trial_holds_up_no_other_project,
        a_slow_trial_holds_up_no_other_project, a_trial_that_has_left_the_seed_is_left_out,
    },
    a_bundle_has_no_secret,
    drain::{
        a_cordoned_seed_keeps_its_taints, a_drain_moves_shoots_within_the_bound_and_goes_on_after_refusals,
        a_drain_without_an_approval_changes_nothing, a_failing_move_holds_no_lane_of_a_repeated_drain,
    },
    unanswered::{a_shoot_without_an_answer_is_left_out_of_a_drain},
    lanes::{
        a_shoot_that_is_created_again_has_not_left_the_seed, a_slow_move_holds_no_lane_from_other_projects,
        failed_moves_of_an_earlier_drain_end_no_repeated_drain,
    },
    observation::{
        a_check_names_faults_and_missing_rights, a_seed_that_hangs_is_reported,
        a_watch_reports_steps_until_the_operation_ends, an_old_plugin_is_reported,
        the_source_is_reported_while_the_garden_decides,
    };
}

async fn a_user_without_rights_is_told_the_missing_right(fixture: &Fixture) -> Result<()> {
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let failure = status::of_shoot(&stranger, "demo").await.unwrap_err();
    assert_eq!(failure.exit_code(), EXIT_REFUSED);
    assert!(failure.to_string().contains("no right"), "{failure}");
    let failure = status::of_shoots(&stranger, true).await.unwrap_err();
    assert!(
        matches!(&failure, Failure::Refused(why) if why.contains("stranger")),
        "{failure}"
    );
    // A watch without the right ends at once.
    let check = |_: Option<&Shoot>| Ok(Step::<()>::Waiting("nothing".to_owned()));
    let shoots = stranger.shoots(NAMESPACE);
    let failure = follow(shoots, "demo", "the goal", SOON, &silent, check)
        .await
        .unwrap_err();
    assert!(failure.to_string().contains("no right"), "{failure}");
    // Versions that the caller may not read are reported as unknown.
    let answer = version(&stranger).await;
    assert!(
        answer.text.contains("plugin: ") && answer.text.contains("unknown: "),
        "{}",
        answer.text
    );
    Ok(())
}

async fn an_object_that_does_not_exist_is_named(fixture: &Fixture) -> Result<()> {
    let failure = status::of_shoot(&fixture.session, "ghost").await.unwrap_err();
    let text = failure.to_string();
    assert!(
        text.contains("garden-dev/ghost") && text.contains("does not exist"),
        "{text}"
    );
    let shoot = fixture.shoot("nowhere", "Reconcile Succeeded").await?;
    let failure = request_move(&fixture.session, shoot, "seed-x").await.unwrap_err();
    assert_eq!(failure, Failure::refused("no Seed has the name seed-x"));
    Ok(())
}

async fn status_shows_lines_and_a_tree(fixture: &Fixture) -> Result<()> {
    fixture.shoot("shown", "Reconcile Succeeded").await?;
    let lines = status::of_shoots(&fixture.session, false).await?;
    assert!(
        lines.text.contains("shown") && lines.text.contains("Reconcile Succeeded"),
        "{}",
        lines.text
    );
    let tree = status::of_shoot(&fixture.session, "shown").await?;
    assert!(tree.text.starts_with("Shoot garden-dev/shown"), "{}", tree.text);
    assert_eq!(tree.json["actingSeed"], "seed-a");
    let overview = status::of_seeds(&fixture.session).await?;
    for words in [
        "Garden: ",
        "seed seed-a: ",
        "condition GardenletReady was never reported",
    ] {
        assert!(overview.text.contains(words), "{words}: {}", overview.text);
    }
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let failure = status::of_seeds(&stranger).await.unwrap_err();
    assert!(
        failure.to_string().contains("Seeds cannot be listed: no right"),
        "{failure}"
    );
    Ok(())
}

async fn a_plan_is_answered_by_the_garden(fixture: &Fixture) -> Result<()> {
    fixture.shoot("asker", "Reconcile Succeeded").await?;
    let first = Some("2026-01-01T00:00:00Z");
    let answer = plan_and_answer(fixture, first).await??;
    assert_eq!(answer.exit_code(), EXIT_REFUSED);
    assert_eq!(answer.json["reason"], "DestinationSeedFull");
    assert!(
        answer.text.starts_with("asker to seed seed-b: not allowed"),
        "{}",
        answer.text
    );
    let shoot = fixture.shoots.get("asker").await?;
    assert_eq!(shoot.spec.seed_name.as_deref(), Some("seed-a"));
    // As a user removes the question: the former answer is not taken.
    let removed = plan_and_answer(fixture, None).await?;
    assert!(
        matches!(&removed, Err(failure) if failure.to_string().contains("removed without an answer")),
        "{removed:?}"
    );
    // The garden repeats the verdict at a later time.
    let repeated = plan_and_answer(fixture, Some("2026-01-01T00:00:01Z")).await??;
    assert_eq!(repeated.json["reason"], "DestinationSeedFull");
    Ok(())
}

/// Asks about a move. The garden answers at the given time, or the question is removed without an answer.
async fn plan_and_answer(fixture: &Fixture, time: Option<&str>) -> Result<Result<Answer, Failure>> {
    let asked = Box::pin(plan(&fixture.session, "asker", "seed-b", SOON, &silent));
    let answers = async {
        let asks = |shoot: Option<&Shoot>| {
            let annotations = shoot.and_then(|shoot| shoot.metadata.annotations.as_ref());
            let asks = annotations.is_some_and(|all| all.contains_key(MIGRATION_DRY_RUN));
            Ok(if asks {
                Step::Done(())
            } else {
                Step::Waiting("not asked".to_owned())
            })
        };
        follow(
            fixture.shoots.clone(),
            "asker",
            "the question",
            SOON,
            &silent,
            asks,
        )
        .await?;
        if let Some(time) = time {
            let answer = json!({"type": "MigrationDryRun", "status": "False", "reason": "DestinationSeedFull",
                "message": "A move to seed seed-b could not begin now. Seed seed-b is full.",
                "lastTransitionTime": time, "lastUpdateTime": time});
            fixture
                .write_status("asker", json!({"constraints": [answer]}))
                .await?;
        }
        fixture
            .merge(
                "asker",
                json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: null}}}),
            )
            .await
    };
    let (answer, written) = tokio::join!(asked, answers);
    written?;
    Ok(answer)
}

async fn of_two_moves_at_once_the_second_is_refused(fixture: &Fixture) -> Result<()> {
    let read = fixture.shoot("wanted", "Reconcile Succeeded").await?;
    let first = request_move(&fixture.session, read.clone(), "seed-b").await?;
    assert_eq!(first.shoot.spec.seed_name.as_deref(), Some("seed-b"));
    let failure = request_move(&fixture.session, read, "seed-c").await.unwrap_err();
    assert!(
        matches!(&failure, Failure::Refused(why) if why.contains("spec.seedName to seed-b")),
        "{failure}"
    );
    let kept = fixture.shoots.get("wanted").await?;
    assert_eq!(kept.spec.seed_name.as_deref(), Some("seed-b"));
    // A concurrent write of a gardenlet to the status does not get in the way.
    let read = fixture.shoot("busy", "Reconcile Succeeded").await?;
    fixture
        .write_status("busy", json!({"observedGeneration": 1}))
        .await?;
    let moved = request_move(&fixture.session, read, "seed-c").await?;
    assert_eq!(moved.unchanged, None);
    assert_eq!(moved.shoot.spec.seed_name.as_deref(), Some("seed-c"));
    Ok(())
}

async fn a_move_is_followed_and_an_interrupt_leaves_the_move_alone(fixture: &Fixture) -> Result<()> {
    let read = fixture.shoot("mover", "Reconcile Succeeded").await?;
    let moved = request_move(&fixture.session, read, "seed-b").await?;
    let reports = Mutex::new(Vec::new());
    let report = |sentence: &str| reports.lock().unwrap().push(sentence.to_owned());
    let ended = wait_for_arrival(&fixture.session, &moved.shoot, "seed-b", SOON, &report, async {});
    let ended = ended.await;
    let shoot = fixture.shoots.get("mover").await?;
    assert!(
        matches!(&ended, Err(Failure::Failed(why)) if why.contains("the move goes on")),
        "{ended:?}"
    );
    assert_eq!(shoot.spec.seed_name.as_deref(), Some("seed-b"));
    let never = std::future::pending();
    let arrival = wait_for_arrival(&fixture.session, &moved.shoot, "seed-b", SOON, &report, never);
    let status_writes = async {
        let moving = json!({"lastOperation": operation("Migrate Processing"), "settledSeedName": null});
        fixture.write_status("mover", moving).await?;
        let there = json!({"seedName": "seed-b", "settledSeedName": "seed-b",
            "lastOperation": operation("Restore Succeeded")});
        fixture.write_status("mover", there).await
    };
    let (followed, written) = tokio::join!(arrival, status_writes);
    written?;
    followed?;
    Ok(())
}

async fn a_cancellation_names_the_acting_seed(fixture: &Fixture) -> Result<()> {
    let read = fixture.shoot("stayer", "Reconcile Succeeded").await?;
    request_move(&fixture.session, read, "seed-b").await?;
    let leaving = json!({"lastOperation": operation("Migrate Processing"), "settledSeedName": null});
    let leaving = fixture.write_status("stayer", leaving).await?;
    let cancelled = request_cancellation(&fixture.session, leaving).await?;
    assert_eq!(cancelled.shoot.spec.seed_name.as_deref(), Some("seed-a"));
    // After the hand-over the cancellation is refused, also for a caller that has read the Shoot before.
    let read = fixture
        .merge("stayer", json!({"spec": {"seedName": "seed-b"}}))
        .await?;
    let handed_over = json!({"seedName": "seed-b", "lastOperation": operation("Migrate Succeeded"),
        "ownership": {"epoch": 2, "phase": "Claiming"}, "formerSeeds": [{"name": "seed-a", "epoch": 1}]});
    fixture.write_status("stayer", handed_over).await?;
    let failure = request_cancellation(&fixture.session, read).await.unwrap_err();
    assert!(failure.to_string().contains("point of no return"), "{failure}");
    Ok(())
}

async fn a_takeover_needs_an_approval(fixture: &Fixture) -> Result<()> {
    fixture.shoot("lost", "Reconcile Succeeded").await?;
    let time = "2026-01-01T00:00:00Z";
    let saved = json!({"type": "ShootStateUpToDate", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": time, "lastUpdateTime": time});
    fixture
        .write_status("lost", json!({"constraints": [saved]}))
        .await?;
    let settings = |approval: Option<&'static str>, source_is_off: bool| TakeoverSettings {
        to: "seed-b",
        source_is_off,
        approval,
        excluded: &[],
        lane_within: LANE_WITHIN,
        wait: None,
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let fenced = take_over_shoot(
        &fixture.session,
        "lost",
        settings(Some("lost"), false),
        &nobody,
        &silent,
    )
    .await?;
    assert!(
        fenced.has_obstacles && fenced.text.contains("does not publish in DNS"),
        "{}",
        fenced.text
    );
    let shown = take_over_shoot(&fixture.session, "lost", settings(None, true), &nobody, &silent).await?;
    assert!(
        shown.text.contains("expected loss") && shown.text.contains("--yes lost"),
        "{}",
        shown.text
    );
    let wrong = take_over_shoot(
        &fixture.session,
        "lost",
        settings(Some("yes"), true),
        &nobody,
        &silent,
    )
    .await;
    assert!(matches!(wrong, Err(Failure::Refused(_))), "{wrong:?}");
    let untouched = fixture.shoots.get("lost").await?;
    assert_eq!(untouched.spec.seed_name.as_deref(), Some("seed-a"));
    let approved = Box::pin(take_over_shoot(
        &fixture.session,
        "lost",
        settings(Some("lost"), true),
        &nobody,
        &silent,
    ));
    // As garden-controller-manager grants the request.
    let grants = async {
        let asks = |shoot: Option<&Shoot>| {
            let annotations = shoot.and_then(|shoot| shoot.metadata.annotations.as_ref());
            let value = annotations.and_then(|all| all.get(SHOOT_FORCE_RESTORE));
            let asks = value.is_some_and(|value| value == "source-is-off");
            Ok(if asks {
                Step::Done(())
            } else {
                Step::Waiting("not asked".to_owned())
            })
        };
        follow(fixture.shoots.clone(), "lost", "the request", SOON, &silent, asks).await?;
        let granted = json!({"seedName": "seed-b", "ownership": {"epoch": 2, "phase": "Claiming"},
            "lastOperation": operation("Migrate Aborted")});
        fixture.write_status("lost", granted).await
    };
    let (answer, written) = tokio::join!(approved, grants);
    written?;
    assert!(!answer?.has_obstacles);
    let taken = fixture.shoots.get("lost").await?;
    assert_eq!(taken.spec.seed_name.as_deref(), Some("seed-b"));
    Ok(())
}

async fn shoots_of_a_dead_seed_follow_the_trial(fixture: &Fixture) -> Result<()> {
    let time = "2026-01-01T00:00:00Z";
    for (name, purpose) in [
        ("important", "production"),
        ("trial", "testing"),
        ("unsaved", "testing"),
    ] {
        fixture.shoot(name, "Reconcile Succeeded").await?;
        fixture
            .merge(name, json!({"spec": {"seedName": "seed-d", "purpose": purpose}}))
            .await?;
        let saved = json!({"type": "ShootStateUpToDate", "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time});
        let constraints = if name == "unsaved" {
            json!([])
        } else {
            json!([saved])
        };
        fixture
            .write_status(name, json!({"seedName": "seed-d", "constraints": constraints}))
            .await?;
    }
    let settings = TakeoverSettings {
        to: "seed-b",
        source_is_off: true,
        approval: Some("seed-d"),
        excluded: &[],
        lane_within: LANE_WITHIN,
        wait: Some(SOON),
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let taken = Box::pin(take_over_seed(
        &fixture.session,
        "seed-d",
        2,
        settings,
        &nobody,
        &silent,
    ));
    // As garden-controller-manager and the gardenlet of seed-b.
    let grants = async {
        for (name, later) in [("trial", Some("important")), ("important", None)] {
            let asks = |shoot: Option<&Shoot>| {
                let annotations = shoot.and_then(|shoot| shoot.metadata.annotations.as_ref());
                let asks = annotations.is_some_and(|all| all.contains_key(SHOOT_FORCE_RESTORE));
                Ok(if asks {
                    Step::Done(())
                } else {
                    Step::Waiting("not asked".to_owned())
                })
            };
            follow(fixture.shoots.clone(), name, "the request", SOON, &silent, asks).await?;
            if let Some(later) = later {
                let waits = fixture.shoots.get(later).await?;
                assert_eq!(waits.spec.seed_name.as_deref(), Some("seed-d"));
            }
            let restored = json!({"seedName": "seed-b", "settledSeedName": "seed-b", "ownership": {"epoch": 2},
                "lastOperation": operation("Restore Succeeded")});
            fixture.write_status(name, restored).await?;
        }
        Ok::<(), anyhow::Error>(())
    };
    let (answer, granted) = tokio::join!(taken, grants);
    granted?;
    let answer = answer?;
    assert!(
        answer.has_obstacles && answer.text.contains("garden-dev/unsaved"),
        "{}",
        answer.text
    );
    let results = answer.json["shoots"].as_array().unwrap();
    let taken = results.iter().filter(|result| result["takenOver"] == true);
    assert_eq!(taken.count(), 2, "{}", answer.text);
    Ok(())
}

async fn a_bundle_has_no_secret(fixture: &Fixture) -> Result<()> {
    fixture.shoot("ill", "Reconcile Error").await?;
    let state = json!({"gardener": [{"name": "ca", "type": "secret", "data": {"key": "s3cret"}}]});
    let metadata = json!({"name": "ill", "namespace": NAMESPACE});
    apply(&fixture.client, object("ShootState", metadata, &state)).await?;
    let ill = fixture.shoots.get("ill").await?;
    events_of_a_member_and_the_garden(fixture, &ill).await?;
    let answer = diagnose(&fixture.session, "ill", None).await?;
    assert!(
        !answer.text.contains("s3cret") && !answer.text.contains("managedFields"),
        "{}",
        answer.text
    );
    let items = answer.json["items"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["kind"].as_str()).collect();
    assert!(kinds.contains(&"Shoot") && kinds.contains(&"Seed"), "{kinds:?}");
    let notes = items.iter().filter(|item| item["kind"] == "Event");
    let notes: Vec<&str> = notes.filter_map(|item| item["message"].as_str()).collect();
    assert_eq!(
        notes,
        ["of garden-controller-manager", "of gardenlet", "of member"]
    );
    Ok(())
}

/// The Event of a member has a time that no type takes.
async fn events_of_a_member_and_the_garden(fixture: &Fixture, shoot: &Shoot) -> Result<()> {
    for (reporter, time) in [
        ("member", "9999-12-31T23:59:59Z"),
        ("garden-controller-manager", "2026-01-01T00:00:00Z"),
        ("gardenlet", "2026-01-01T00:00:00Z"),
    ] {
        let about = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "ill",
            "namespace": NAMESPACE, "uid": shoot.metadata.uid});
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("of-{reporter}"), "namespace": NAMESPACE}, "involvedObject": about,
            "reportingComponent": reporter, "reportingInstance": reporter, "reason": "R", "type": "Normal",
            "message": format!("of {reporter}"), "lastTimestamp": time});
        apply(&fixture.client, event).await?;
    }
    Ok(())
}
