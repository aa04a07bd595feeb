//! A takeover begins with the longest sound chain in the bucket of its source. The chain counts as complete
//! only if the source has recorded the end of its epoch.

use crate::lab::{EtcdServer, Lab, Ran, Server, Stay};
use etcd_backup_restore::seal_note::SealNote;
use serde_json::{Value, json};
use std::fs;

const TAKES_OVER: [&str; 3] = [
    "--ownership-epoch=2",
    "--wait-for-final-snapshot=true",
    "--wait-for-final-snapshot-timeout=2s",
];
/// A restore skips at least this number of revisions if the end of the source is unknown.
const LEFT_OUT: i64 = 1_000_000_000;

/// A source in epoch 1, with a full snapshot and three deltas.
struct Source {
    lab: Lab,
    etcd: EtcdServer,
    server: Server,
    deltas: Vec<String>,
    /// The revision that the deltas reach.
    revision: i64,
}

impl Source {
    async fn begin() -> Self {
        let lab = Lab::new();
        let etcd = EtcdServer::start(&lab.path("etcd")).await;
        etcd.put_key("/early", "x").await;
        let server = Server::start(&lab, "a", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
        server.snapshot("/snapshot/full").await;
        let (mut deltas, mut revision) = (Vec::new(), 0);
        for number in 0..3 {
            revision = etcd.put_key(&format!("/delta/{number}"), "x").await;
            deltas.push(server.snapshot("/snapshot/delta").await);
        }
        Self {
            lab,
            etcd,
            server,
            deltas,
            revision,
        }
    }

    async fn seal_noted(&self, revision: i64) {
        let note = SealNote {
            epoch: 1,
            revision,
            beat: 0,
        };
        note.write(&self.lab.store("a")).await.unwrap();
    }

    /// Changes a field of `finished.json`.
    async fn finished_says(&self, field: &str, value: Value) {
        let store = self.lab.store("a");
        let content = store.note("finished.json").await.unwrap().unwrap();
        let mut record: Value = serde_json::from_slice(&content).unwrap();
        record[field] = value;
        let content = serde_json::to_vec(&record).unwrap();
        store.put_note("finished.json", content).await.unwrap();
    }

    /// The revision with which an etcd begins after the copy.
    async fn begins_with(&self, place: &str) -> i64 {
        let volume = self.lab.path(&format!("volume-{place}/new.etcd"));
        let ran = self
            .lab
            .initialize(place, &volume, &["--ownership-epoch=2"])
            .await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        ran.json["revision"].as_i64().unwrap()
    }
}

fn is_complete(ran: &Ran) -> bool {
    assert!(ran.success, "{}", ran.errors);
    ran.json["complete"].as_bool().unwrap()
}

/// A user or a script requests the final snapshot in a quiet moment, and clients continue to write. Then the
/// machine of the source dies without a seal.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_that_was_taken_while_the_epoch_served_is_no_end() {
    let source = Source::begin().await;
    let name = source.server.snapshot("/snapshot/full?final=true").await;
    let lost = source.etcd.put_key("/late", "acknowledged").await;
    let ran = source.lab.copy("a", "b", &TAKES_OVER).await;
    assert!(!is_complete(&ran), "{}", ran.json);
    assert_eq!(ran.json["lastRevision"], source.revision);
    assert!(!is_complete(&source.lab.copy("a", "b", &TAKES_OVER).await));
    assert!(source.begins_with("b").await >= lost + LEFT_OUT - 1);

    // The end that a sealed source has recorded counts, for this epoch and this snapshot alone.
    source.finished_says("sealed", json!(true)).await;
    source.finished_says("epoch", json!(7)).await;
    assert!(!is_complete(&source.lab.copy("a", "c", &TAKES_OVER).await));
    source.finished_says("epoch", json!(1)).await;
    source
        .finished_says("snapshot", json!("Full-00000000-00000001-1.gz.final"))
        .await;
    assert!(!is_complete(&source.lab.copy("a", "d", &TAKES_OVER).await));
    source.finished_says("snapshot", json!(name)).await;
    let ran = source.lab.copy("a", "e", &TAKES_OVER).await;
    assert!(
        is_complete(&ran) && ran.json["waitTimedOut"] == false,
        "{}",
        ran.json
    );
    assert_eq!(source.begins_with("e").await, source.revision);
    source.finished_says("sealed", json!(false)).await;
    source.seal_noted(source.revision).await;
    assert!(is_complete(&source.lab.copy("a", "f", &TAKES_OVER).await));
    assert_eq!(source.begins_with("f").await, source.revision);
}

/// The source is dead: no process can correct the name of such an object.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_is_left_aside_by_a_takeover_and_is_named() {
    let source = Source::begin().await;
    let strange = "Incr-00000000-99999999-1518427675.Z";
    for name in [strange, "backup-of-a-colleague.tar"] {
        fs::write(source.lab.object("a", name), "x").unwrap();
    }
    let ran = source.lab.copy("a", "b", &TAKES_OVER).await;
    assert!(!is_complete(&ran), "{}", ran.json);
    assert_eq!(ran.json["lastRevision"], source.revision);
    // An object with a different name pattern is not a snapshot.
    assert_eq!(ran.json["leftAside"], json!([strange]), "{}", ran.json);
    assert!(source.begins_with("b").await > LEFT_OUT);
    // A repeated copy for the recorded chain.
    let ran = source.lab.copy("a", "b", &TAKES_OVER).await;
    assert!(!is_complete(&ran), "{}", ran.json);

    // The source has stated the end of the epoch: no change is missing.
    source.seal_noted(source.revision).await;
    let ran = source.lab.copy("a", "c", &TAKES_OVER).await;
    assert!(is_complete(&ran), "{}", ran.json);
    assert_eq!(ran.json["leftAside"], json!([strange]), "{}", ran.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_serves_clients_takes_no_final_snapshot_before_phase_sealing() {
    let stay = Stay::begin().await;
    let (status, refused) = stay.server().post("/snapshot/full?final=true").await;
    assert_eq!(
        (status, &refused["code"]),
        (503, &json!("not-permitted")),
        "{refused}"
    );
    assert!(refused["error"].as_str().unwrap().contains("serves"), "{refused}");
    assert_eq!(stay.finals(), Vec::<String>::new());
    assert_eq!(stay.server().get("/healthz").await.1["finished"], false);
    // The gardenlet of a seed without owner checks requests the final snapshot after the API server has
    // stopped.
    stay.passes_sealing().await;
    stay.server().snapshot("/snapshot/full?final=true").await;
    assert_eq!(stay.finals().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_final_snapshot_costs_a_takeover_nothing_that_lies_beside_it() {
    let source = Source::begin().await;
    let name = source.server.snapshot("/snapshot/full?final=true").await;
    source.finished_says("sealed", json!(true)).await;
    source.seal_noted(source.revision).await;
    source.lab.garble("a", &name);
    let ran = source.lab.copy("a", "b", &TAKES_OVER).await;
    assert!(is_complete(&ran), "{}", ran.json);
    assert_eq!(ran.json["finalSnapshot"], false);
    assert_eq!(source.begins_with("b").await, source.revision);
}

/// A permanently lost object must not keep a shoot down for ever: its source cannot put the object back.
#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_begins_with_the_chain_up_to_a_hole_and_reports_it_as_incomplete() {
    for garbled in [true, false] {
        let source = Source::begin().await;
        source.seal_noted(source.revision).await;
        if garbled {
            source.lab.garble("a", &source.deltas[1]);
        } else {
            fs::remove_file(source.lab.object("a", &source.deltas[1])).unwrap();
        }
        let ran = source.lab.copy("a", "b", &TAKES_OVER).await;
        assert!(!is_complete(&ran), "{}", ran.json);
        assert_eq!(
            (&ran.json["lastRevision"], &ran.json["sealedRevision"]),
            (&json!(source.revision - 2), &json!(source.revision))
        );
        assert!(ran.json["saved"].is_string(), "{}", ran.json);
        assert!(source.begins_with("b").await > LEFT_OUT);
    }
}

/// A renewed epoch, or an epoch that came back to the same seed, dies before its etcd has begun.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_never_began_is_taken_over_with_the_end_of_the_one_before_it() {
    let source = Source::begin().await;
    let flags = ["--ownership-epoch=3", TAKES_OVER[1], TAKES_OVER[2]];
    let held = |holding: Value| source.lab.hold("a", holding);
    held(json!({"epoch": 3, "seed": "b", "state": "Claimed", "origin": 2}));
    let ran = source.lab.copy("a", "b", &flags).await;
    assert!(
        !ran.success && ran.errors.contains("SnapshotMissing: "),
        "nothing says that the epoch goes on with what lies here: {}",
        ran.errors
    );
    for (place, holding) in [
        (
            "c",
            json!({"epoch": 3, "seed": "b", "state": "Claimed", "origin": 2, "formerOrigins": [1]}),
        ),
        (
            "d",
            json!({"epoch": 2, "seed": "a", "state": "Owned", "origin": 1}),
        ),
    ] {
        held(holding);
        let ran = source.lab.copy("a", place, &flags).await;
        assert!(!is_complete(&ran), "{}", ran.json);
        assert_eq!(ran.json["lastRevision"], source.revision);
        let volume = source.lab.path(&format!("volume-{place}/new.etcd"));
        let begun = source.lab.initialize(place, &volume, &flags[..1]).await;
        assert!(
            begun.json["revision"].as_i64() > Some(LEFT_OUT),
            "{}",
            begun.errors
        );
    }
}

/// A process of an epoch that is over still beats.
#[tokio::test(flavor = "multi_thread")]
async fn the_note_of_a_later_epoch_is_never_replaced() {
    let lab = Lab::new();
    let store = lab.store("a");
    let note = |epoch| SealNote {
        epoch,
        revision: 10 * epoch,
        beat: 0,
    };
    note(3).write(&store).await.unwrap();
    note(2).write(&store).await.unwrap();
    assert_eq!(SealNote::read(&store).await.unwrap(), Some(note(3)));
    // Also not by a process that has read an older note a moment before.
    store.delete_note("sealed.json").await.unwrap();
    note(1).write(&store).await.unwrap();
    let content = |epoch| serde_json::to_vec(&note(epoch)).unwrap();
    let is_later = |found: &[u8]| {
        let found: SealNote = serde_json::from_slice(found).unwrap();
        if found.epoch == 1 {
            let in_between = note(3);
            tokio::task::block_in_place(|| {
                let runtime = tokio::runtime::Handle::current();
                runtime.block_on(in_between.write(&store)).unwrap();
            });
        }
        found.epoch > 2
    };
    let written = store.replace_note("sealed.json", content(2), is_later).await;
    assert!(!written.unwrap(), "the note of epoch 3 was written in between");
    assert_eq!(SealNote::read(&store).await.unwrap(), Some(note(3)));
}
