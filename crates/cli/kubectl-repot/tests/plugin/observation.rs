//! Commands that change no object: watch and check.

use std::sync::Mutex;

use anyhow::Result;
use kubectl_repot::{check::check, watch::watch};
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, operation, session, silent};

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
