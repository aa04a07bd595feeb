//! Commands that change no object: watch and check.

use std::{sync::Mutex, time::Duration};

use anyhow::Result;
use api::gardencore::Seed;
use clap::Parser;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_repot::{
    check::check,
    flags::Flags,
    moves::{request_move, wait_for_arrival},
    session::{Session, SilenceTimes},
    takeover::{LANE_WITHIN, TakeoverSettings, take_over_shoot},
    version::warn_of_skew,
    watch::watch,
};
use serde_json::{Value, json};

use testkit::apply;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::fixture::{Fixture, SOON, object, operation, session, silent};

/// The state of the source in the report about a silence.
const NEVER_REPORTED: &str = "Seed seed-a has never reported (condition GardenletReady)";

fn progress(seed: &str, step: &str) -> Value {
    json!({"source": "seed-a", "destination": "seed-b", "generation": 1, "spec": {},
        "progress": {"seedName": seed, "step": step, "startTime": "2026-01-01T00:00:00Z", "awaited": "the bucket"}})
}

pub async fn a_watch_reports_steps_until_the_operation_ends(fixture: &Fixture) -> Result<()> {
    fixture.shoot("observed", "Migrate Processing").await?;
    fixture
        .merge("observed", json!({"spec": {"seedName": "seed-b"}}))
        .await?;
    let leaving = json!({"migration": progress("seed-a", "Creating ETCD Snapshot"), "settledSeedName": null});
    fixture.write_status("observed", leaving).await?;
    let reports = Mutex::new(Vec::new());
    // The next state is written when the watch has reported the state before.
    let (reported, mut next) = tokio::sync::mpsc::unbounded_channel();
    let report = |sentence: &str| {
        reports.lock().unwrap().push(sentence.to_owned());
        let _ = reported.send(());
    };
    let watched = Box::pin(watch(&fixture.session, "observed", SOON, &report));
    let gardenlets = async {
        let _ = testkit::timeout(SOON, next.recv()).await?;
        let restoring = json!({"seedName": "seed-b", "lastOperation": operation("Restore Processing"),
            "migration": progress("seed-b", "Copying backups")});
        fixture.write_status("observed", restoring).await?;
        let _ = testkit::timeout(SOON, next.recv()).await?;
        let there = json!({"settledSeedName": "seed-b", "lastOperation": operation("Restore Succeeded"), "migration": null});
        fixture.write_status("observed", there).await
    };
    let (answer, written) = tokio::join!(watched, gardenlets);
    written?;
    let answer = answer?;
    let steps = answer.json["steps"].as_array().unwrap();
    let steps: Vec<(&str, &str)> = steps
        .iter()
        .filter_map(|step| Some((step["seed"].as_str()?, step["step"].as_str()?)))
        .collect();
    assert_eq!(
        steps,
        [
            ("seed-a", "Creating ETCD Snapshot"),
            ("seed-b", "Copying backups")
        ]
    );
    assert!(answer.text.contains("Restore Succeeded"), "{}", answer.text);
    let reports = reports.lock().unwrap().clone();
    assert!(
        reports[0].contains("on seed seed-a") && reports[0].contains("waits for: the bucket"),
        "{reports:?}"
    );
    let ghost = watch(&fixture.session, "ghost", SOON, &silent).await.unwrap_err();
    assert!(ghost.to_string().contains("does not exist"), "{ghost}");
    Ok(())
}

/// The next report about a silence. The scenario has a short bound of the silence.
async fn next_silence(reports: &mut UnboundedReceiver<String>) -> Result<String> {
    let found = async {
        while let Some(sentence) = reports.recv().await {
            if sentence.contains("no new state") {
                return Some(sentence);
            }
        }
        None
    };
    Ok(testkit::timeout(SOON, found).await?.unwrap_or_default())
}

/// A session that reports a silence soon.
fn impatient_session(fixture: &Fixture) -> Session {
    session(fixture.client.clone()).with_silence_times(SilenceTimes {
        after: Duration::from_millis(200),
        poll_interval: Duration::from_millis(50),
    })
}

/// A watch and the wait for a move both report the seed that works for the shoot, and go on.
pub async fn a_seed_that_hangs_is_reported(fixture: &Fixture) -> Result<()> {
    let session = impatient_session(fixture);
    let there = json!({"seedName": "seed-b", "settledSeedName": "seed-b",
        "lastOperation": operation("Restore Succeeded"), "migration": null});
    let leaving = json!({"migration": progress("seed-a", "Creating ETCD Snapshot"), "settledSeedName": null,
        "lastOperation": operation("Migrate Processing")});

    let read = fixture.shoot("hangs", "Reconcile Succeeded").await?;
    request_move(&session, read, "seed-b").await?;
    fixture.write_status("hangs", leaving.clone()).await?;
    let (reported, mut reports) = unbounded_channel();
    let report = |sentence: &str| drop(reported.send(sentence.to_owned()));
    let watched = Box::pin(watch(&session, "hangs", SOON, &report));
    let gardenlets = async {
        let sentence = next_silence(&mut reports).await?;
        assert!(sentence.contains(NEVER_REPORTED), "{sentence}");
        fixture.write_status("hangs", there.clone()).await
    };
    let (answer, written) = tokio::join!(watched, gardenlets);
    written?;
    assert!(answer?.text.contains("Restore Succeeded"));

    let read = fixture.shoot("hangs-too", "Reconcile Succeeded").await?;
    let moved = request_move(&session, read, "seed-b").await?;
    let leaves = fixture.write_status("hangs-too", leaving).await?;
    assert_eq!(leaves.spec.seed_name, moved.shoot.spec.seed_name);
    let (reported, mut reports) = unbounded_channel();
    let report = |sentence: &str| drop(reported.send(sentence.to_owned()));
    let never = std::future::pending();
    let arrival = Box::pin(wait_for_arrival(
        &session, &leaves, "seed-b", SOON, &report, never,
    ));
    let gardenlets = async {
        let sentence = next_silence(&mut reports).await?;
        assert!(sentence.contains(NEVER_REPORTED), "{sentence}");
        fixture.write_status("hangs-too", there).await
    };
    let (followed, written) = tokio::join!(arrival, gardenlets);
    written?;
    followed?;
    Ok(())
}

/// A source that lives can end the takeover, so the user needs the state of the source.
pub async fn the_source_is_reported_while_the_garden_decides(fixture: &Fixture) -> Result<()> {
    let session = impatient_session(fixture);
    fixture.shoot("undecided", "Reconcile Succeeded").await?;
    fixture
        .host_on(&fixture.shoots, "undecided", "seed-a", "testing")
        .await?;
    let settings = TakeoverSettings {
        to: "seed-b",
        source_is_off: true,
        approval: Some("undecided"),
        excluded: &[],
        lane_within: LANE_WITHIN,
        wait: None,
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let (reported, mut reports) = unbounded_channel();
    let report = |sentence: &str| drop(reported.send(sentence.to_owned()));
    let taken = Box::pin(take_over_shoot(&session, "undecided", settings, &nobody, &report));
    let garden = async {
        // On a busy machine a silence comes before the first read of the Shoot.
        let found = async {
            while !next_silence(&mut reports).await?.contains(NEVER_REPORTED) {}
            anyhow::Ok(())
        };
        testkit::timeout(SOON, found).await??;
        let granted = json!({"seedName": "seed-b", "ownership": {"epoch": 2, "phase": "Claiming"},
            "lastOperation": operation("Migrate Aborted")});
        fixture.write_status("undecided", granted).await
    };
    let (answer, written) = tokio::join!(taken, garden);
    written?;
    assert!(!answer?.has_obstacles);
    Ok(())
}

pub async fn an_old_plugin_is_reported(fixture: &Fixture) -> Result<()> {
    let spec = json!({"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "provider": {"type": "local", "region": "local"}});
    apply(
        &fixture.client,
        object("Seed", json!({"name": "seed-newer"}), &spec),
    )
    .await?;
    let status = json!({"status": {"gardener": {"id": "i", "name": "n", "version": "99.1.0"}}});
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    let params = PatchParams::default();
    seeds
        .patch_status("seed-newer", &params, &Patch::Merge(status))
        .await?;
    let moves = |seed: &str| Flags::try_parse_from(["kubectl-repot", "move", "demo", seed]).unwrap();
    let warning = warn_of_skew(&fixture.session, &moves("seed-newer").command).await;
    let warning = warning.unwrap_or_default();
    assert!(
        warning.contains("seed seed-newer has version 99.1.0"),
        "{warning}"
    );
    // A gardenlet without a version, and a caller without the right to read the Seed.
    let none = warn_of_skew(&fixture.session, &moves("seed-a").command).await;
    assert_eq!(none, None);
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let none = warn_of_skew(&stranger, &moves("seed-newer").command).await;
    assert_eq!(none, None);
    Ok(())
}

pub async fn a_check_names_faults_and_missing_rights(fixture: &Fixture) -> Result<()> {
    let checked = check(&fixture.session, false).await?;
    for words in [
        "kinds of the suite are served",
        "these admission policies are not bound: gardenlet-shoot",
        "you may patch seeds in the whole garden",
        "seed seed-a\n",
        "condition GardenletReady was never reported",
        "the seed has no Lease",
        "flag --etcd-compaction-interval of the garden's kube-apiserver is not known",
        "flag --quota-backend-bytes of the garden's etcd is not known",
    ] {
        assert!(checked.text.contains(words), "{words}: {}", checked.text);
    }
    assert!(checked.has_obstacles, "{}", checked.text);
    assert_eq!(checked.json["failed"], true);
    let before = check(&fixture.session, true).await?;
    assert!(
        before.text.contains("are installed already") && before.text.contains("your rights to install"),
        "{}",
        before.text
    );
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let limited = check(&stranger, false).await?;
    assert!(
        limited.text.contains("you may not get shoots")
            && limited.text.contains("Seeds cannot be listed")
            && limited
                .text
                .contains("--quota-backend-bytes of the garden's etcd cannot be read"),
        "{}",
        limited.text
    );
    Ok(())
}
