//! The trials before the takeover of a dead seed, and the shoots after the trials.

use std::{sync::Mutex, time::Duration};

use anyhow::Result;
use api::{constants::SHOOT_FORCE_RESTORE, gardencore::Shoot};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_repot::{
    answer::Answer,
    failure::Failure,
    follow::{Step, follow},
    takeover::{LANE_WITHIN, TakeoverSettings, take_over_seed},
};
use serde_json::{Value, json};
use testkit::apply;

use crate::fixture::{Fixture, NAMESPACE, SOON, object, operation, silent};

/// The project of a tenant with a trial that fails.
const HOSTILE: &str = "garden-hostile";
const DEAD: &str = "seed-dead";
const GONE: &str = "seed-gone";
const BURIED: &str = "seed-buried";
const RUINED: &str = "seed-ruined";

/// Far below the time without progress that makes a takeover stall.
const BRIEF: Duration = Duration::from_secs(2);

/// The trial of a hostile project fails for as long as the command waits, and holds up no further project.
pub async fn a_failing_trial_holds_up_no_other_project(fixture: &Fixture) -> Result<()> {
    let of_hostile = [("trap", "evaluation")];
    let of_others = [("modest", "testing"), ("vital", "production")];
    let hostile = shoots_on_dead_seed(fixture, DEAD, &of_hostile, &of_others).await?;
    let settings = approved(DEAD);
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let taken = take_over_seed(&fixture.session, DEAD, 1, settings, &nobody, &silent);
    // As garden-controller-manager and the gardenlet of seed-b.
    let garden = async {
        asked(&hostile, "trap").await?;
        let waits = fixture.shoots.get("modest").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some(DEAD));
        write(&hostile, "trap", failing()).await?;
        // The second trial, and then the rest.
        for name in ["modest", "vital"] {
            asked(&fixture.shoots, name).await?;
            write(&fixture.shoots, name, restored()).await?;
        }
        // The first trial is watched until the end.
        write(&hostile, "trap", restored()).await
    };
    let (answer, acted) = tokio::join!(Box::pin(taken), garden);
    acted?;
    let answer = answer?;
    assert!(!answer.has_obstacles, "{}", answer.text);
    let names = names_in(&answer);
    assert_eq!(names, ["modest", "vital", "trap"], "{}", answer.text);
    Ok(())
}

/// After a good trial, shoots of a hostile project come first by purpose. The first shoot fails for as
/// long as the command waits, and holds up no further project. The second waits for all further projects.
pub async fn a_failing_takeover_after_the_trial_holds_no_lane(fixture: &Fixture) -> Result<()> {
    let of_hostile = [
        ("first-trap", "infrastructure"),
        ("second-trap", "infrastructure"),
    ];
    let of_others = [("humble", "testing"), ("needed", "production")];
    let hostile = shoots_on_dead_seed(fixture, GONE, &of_hostile, &of_others).await?;
    let settings = approved(GONE);
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let taken = take_over_seed(&fixture.session, GONE, 1, settings, &nobody, &silent);
    // As garden-controller-manager and the gardenlet of seed-b.
    let garden = async {
        asked(&fixture.shoots, "humble").await?;
        write(&fixture.shoots, "humble", restored()).await?;
        asked(&hostile, "first-trap").await?;
        let waits = fixture.shoots.get("needed").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some(GONE));
        write(&hostile, "first-trap", failing()).await?;
        asked(&fixture.shoots, "needed").await?;
        let waits = hostile.get("second-trap").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some(GONE));
        write(&fixture.shoots, "needed", restored()).await?;
        asked(&hostile, "second-trap").await?;
        write(&hostile, "second-trap", restored()).await?;
        // The first stays watched until the end.
        write(&hostile, "first-trap", restored()).await
    };
    let (answer, acted) = tokio::join!(Box::pin(taken), garden);
    acted?;
    let answer = answer?;
    assert!(!answer.has_obstacles, "{}", answer.text);
    let names = names_in(&answer);
    assert_eq!(
        names,
        ["humble", "needed", "second-trap", "first-trap"],
        "{}",
        answer.text
    );
    Ok(())
}

/// The trial of a hostile project copies backups for as long as the command waits, without an error.
pub async fn a_slow_trial_holds_up_no_other_project(fixture: &Fixture) -> Result<()> {
    let of_hostile = [("crawl", "evaluation")];
    let of_others = [("brisk", "testing"), ("prime", "production")];
    let hostile = shoots_on_dead_seed(fixture, BURIED, &of_hostile, &of_others).await?;
    let settings = TakeoverSettings {
        lane_within: BRIEF,
        ..approved(BURIED)
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let reports = Mutex::new(Vec::new());
    let report = |sentence: &str| reports.lock().unwrap().push(sentence.to_owned());
    let taken = take_over_seed(&fixture.session, BURIED, 1, settings, &nobody, &report);
    // As garden-controller-manager and the gardenlet of seed-b.
    let garden = async {
        asked(&hostile, "crawl").await?;
        write(&hostile, "crawl", copying()).await?;
        for name in ["brisk", "prime"] {
            asked(&fixture.shoots, name).await?;
            write(&fixture.shoots, name, restored()).await?;
        }
        // The first trial is watched until the end.
        write(&hostile, "crawl", restored()).await
    };
    let (answer, acted) = tokio::join!(Box::pin(taken), garden);
    acted?;
    let answer = answer?;
    assert!(!answer.has_obstacles, "{}", answer.text);
    let mut names = names_in(&answer);
    names.sort_unstable();
    assert_eq!(names, ["brisk", "crawl", "prime"], "{}", answer.text);
    let reports = reports.into_inner().unwrap();
    let is_slow = |sentence: &String| sentence.contains("crawl: the trial makes progress and takes long");
    assert!(reports.iter().any(is_slow), "{reports:?}");
    Ok(())
}

/// A repeated command: the failing shoot of the message is on the new seed.
pub async fn a_trial_that_has_left_the_seed_is_left_out(fixture: &Fixture) -> Result<()> {
    let of_hostile = [("snare", "evaluation"), ("bait", "evaluation")];
    let hostile = shoots_on_dead_seed(fixture, RUINED, &of_hostile, &[("spared", "testing")]).await?;
    write(&hostile, "snare", failing()).await?;
    let excluded = ["snare", "deleted"].map(|name| format!("{HOSTILE}/{name}"));
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let reports = Mutex::new(Vec::new());
    let report = |sentence: &str| reports.lock().unwrap().push(sentence.to_owned());
    let settings = TakeoverSettings {
        excluded: &excluded,
        approval: None,
        ..approved(RUINED)
    };
    let shown = take_over_seed(&fixture.session, RUINED, 1, settings, &nobody, &report);
    let shown = Box::pin(shown).await?;
    for words in [
        "snare leaves no Shoot",
        "the Shoot is on seed seed-b",
        "no Shoot has this name",
    ] {
        assert!(shown.text.contains(words), "{words}: {}", shown.text);
    }
    let notes = shown.json["notes"].to_string();
    assert!(notes.contains("no Shoot has this name"), "{notes}");
    let mistyped = TakeoverSettings {
        excluded: &excluded,
        ..approved(RUINED)
    };
    let refused = take_over_seed(&fixture.session, RUINED, 1, mistyped, &nobody, &report);
    let failure = Box::pin(refused).await.unwrap_err();
    assert!(
        matches!(&failure, Failure::Refused(why) if why.contains("no Shoot has this name")),
        "{failure}"
    );
    // The whole project, and an approval in advance.
    let excluded = ["snare", "*"].map(|name| format!("{HOSTILE}/{name}"));
    let settings = TakeoverSettings {
        excluded: &excluded,
        ..approved(RUINED)
    };
    let taken = take_over_seed(&fixture.session, RUINED, 1, settings, &nobody, &report);
    let garden = async {
        asked(&fixture.shoots, "spared").await?;
        write(&fixture.shoots, "spared", restored()).await
    };
    let (answer, acted) = tokio::join!(Box::pin(taken), garden);
    acted?;
    let answer = answer?;
    assert_eq!(names_in(&answer), ["bait", "spared"], "{}", answer.text);
    let kept = hostile.get("bait").await?;
    assert_eq!(kept.spec.seed_name.as_deref(), Some(RUINED));
    let reports = reports.into_inner().unwrap();
    let is_named = |sentence: &String| sentence.contains("the Shoot is on seed seed-b");
    assert!(reports.iter().any(is_named), "{reports:?}");
    Ok(())
}

/// Shoots of the hostile project and of the project of the fixture on a dead seed, each with a purpose.
async fn shoots_on_dead_seed(
    fixture: &Fixture,
    dead: &str,
    of_hostile: &[(&str, &str)],
    of_others: &[(&str, &str)],
) -> Result<Api<Shoot>> {
    let hostile: Api<Shoot> = Api::namespaced(fixture.client.clone(), HOSTILE);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}});
    apply(&fixture.client, namespace).await?;
    for (shoots, namespace, all) in [
        (&hostile, HOSTILE, of_hostile),
        (&fixture.shoots, NAMESPACE, of_others),
    ] {
        for (name, purpose) in all {
            let spec = json!({"cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
                "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": dead});
            let metadata = json!({"name": name, "namespace": namespace});
            apply(&fixture.client, object("Shoot", metadata, &spec)).await?;
            fixture.host_on(shoots, name, dead, purpose).await?;
        }
    }
    Ok(hostile)
}

/// The settings of an approved takeover of all shoots of a dead seed.
fn approved(dead: &str) -> TakeoverSettings<'_> {
    TakeoverSettings {
        to: "seed-b",
        source_is_off: true,
        approval: Some(dead),
        excluded: &[],
        lane_within: LANE_WITHIN,
        wait: Some(SOON * 3),
    }
}

fn names_in(answer: &Answer) -> Vec<&str> {
    let results = answer.json["shoots"].as_array().unwrap();
    let names = results.iter().filter_map(|result| result["shoot"].as_str());
    names.collect()
}

/// The seed has the shoot, and cannot restore the control plane.
fn failing() -> Value {
    json!({"seedName": "seed-b", "settledSeedName": null, "ownership": {"epoch": 2},
        "lastErrors": [{"description": "the credentials do not exist"}], "lastOperation": operation("Restore Error")})
}

/// The seed has the shoot, and copies the backups.
fn copying() -> Value {
    json!({"seedName": "seed-b", "settledSeedName": null, "ownership": {"epoch": 2},
        "lastOperation": operation("Restore Processing")})
}

fn restored() -> Value {
    json!({"seedName": "seed-b", "settledSeedName": "seed-b", "ownership": {"epoch": 2}, "lastErrors": null,
        "lastOperation": operation("Restore Succeeded")})
}

/// Waits until the command has asked for the takeover.
async fn asked(shoots: &Api<Shoot>, name: &str) -> Result<()> {
    let asks = |shoot: Option<&Shoot>| {
        let annotations = shoot.and_then(|shoot| shoot.metadata.annotations.as_ref());
        let asks = annotations.is_some_and(|all| all.contains_key(SHOOT_FORCE_RESTORE));
        Ok(if asks {
            Step::Done(())
        } else {
            Step::Waiting("not asked".to_owned())
        })
    };
    follow(shoots.clone(), name, "the request", SOON, &silent, asks).await?;
    Ok(())
}

async fn write(shoots: &Api<Shoot>, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    shoots.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
