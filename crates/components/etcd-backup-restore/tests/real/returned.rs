//! An epoch that begins again in its own store: a renewal, a cancelled move, a shoot that came back.

use crate::lab::{EtcdServer, Lab, Server, after_loss};
use etcd_backup_restore::seal_note::SealNote;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const RETURNED: [&str; 1] = ["--ownership-epoch=2"];

/// A store of epoch 1 with a full snapshot and three deltas, whose epoch 2 continues epoch 1.
struct Place {
    lab: Lab,
    volume: PathBuf,
    deltas: Vec<String>,
    /// The newest revision of etcd, in no snapshot.
    revision: i64,
}

impl Place {
    async fn begin() -> Self {
        let lab = Lab::new();
        let volume = lab.path("volume/new.etcd");
        let etcd = EtcdServer::start(&volume).await;
        let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
        server.snapshot("/snapshot/full").await;
        let mut deltas = Vec::new();
        for number in 0..3 {
            etcd.put_key(&format!("/delta/{number}"), "x").await;
            deltas.push(server.snapshot("/snapshot/delta").await);
        }
        drop(server);
        let revision = etcd.put_key("/late", "in no snapshot").await;
        etcd.stop();
        lab.hold(
            "p",
            json!({"epoch": 2, "seed": "a", "state": "Owned", "origin": 1}),
        );
        Self {
            lab,
            volume,
            deltas,
            revision,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returned_epoch_without_its_volume_does_not_begin_with_less_than_was_sealed() {
    let place = Place::begin().await;
    let (lab, end) = (&place.lab, place.revision);
    let note = SealNote {
        epoch: 1,
        revision: end,
        beat: 0,
    };
    note.write(&lab.store("p")).await.unwrap();
    let lost = lab.path("lost/new.etcd");
    let ran = lab.initialize("p", &lost, &RETURNED).await;
    assert!(!ran.success, "{}", ran.json);
    for part in [
        "SnapshotMissing: ",
        &format!("sealed at revision {end}"),
        &format!("end at revision {}", end - 1),
        "1 revisions",
        "sealed.json",
    ] {
        assert!(ran.errors.contains(part), "{part}: {}", ran.errors);
    }
    assert!(!lost.exists(), "something was begun with");
    // The volume has all changes; a broken volume does not.
    let kept = lab.initialize("p", &place.volume, &RETURNED).await;
    assert_eq!(kept.json["result"], "Kept", "{}", kept.errors);
    fs::remove_dir_all(place.volume.join("member/wal")).unwrap();
    let broken = lab.initialize("p", &place.volume, &RETURNED).await;
    assert!(
        !broken.success && broken.errors.contains("SnapshotMissing: "),
        "{}",
        broken.errors
    );
    // A person accepts the loss.
    lab.store("p").delete_note("sealed.json").await.unwrap();
    let ran = lab.initialize("p", &lost, &RETURNED).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(ran.json["revision"].as_i64().unwrap() > 1_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_of_an_epoch_reports_with_which_data_the_epoch_begins() {
    for sealed in [None, Some(1)] {
        let place = Place::begin().await;
        let (lab, end) = (&place.lab, place.revision);
        if let Some(unsaved) = sealed {
            // The chain reaches the seal: no change is lost.
            let note = SealNote {
                epoch: 1,
                revision: end - unsaved,
                beat: 0,
            };
            note.write(&lab.store("p")).await.unwrap();
        }
        let lost = lab.path("lost/new.etcd");
        let restored = lab.initialize("p", &lost, &RETURNED).await;
        let begin = &restored.json["begin"];
        assert_eq!(begin["epoch"], 2, "{restored:?}");
        assert_eq!(begin["lastRevision"], end - 1, "{restored:?}");
        assert_eq!(begin["complete"], sealed.is_some(), "{restored:?}");
        assert!(begin["saved"].is_string(), "{restored:?}");
        // A later start does not know the data with which the epoch began.
        let again = lab.initialize("p", &lost, &RETURNED).await;
        assert_eq!(again.json["result"], "Kept", "{again:?}");
        assert!(again.json["begin"].is_null(), "{again:?}");

        let kept = lab.initialize("p", &place.volume, &RETURNED).await;
        assert_eq!(kept.json["result"], "Kept", "{kept:?}");
        let begin = &kept.json["begin"];
        assert_eq!((&begin["epoch"], &begin["complete"]), (&2.into(), &true.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_data_of_a_returned_epoch_start_beside_a_hole_in_the_bucket() {
    let place = Place::begin().await;
    let lab = &place.lab;
    fs::remove_file(lab.object("p", &place.deltas[1])).unwrap();
    // Without the volume the hole still counts.
    let lost = lab.path("lost/new.etcd");
    let ran = lab.initialize("p", &lost, &RETURNED).await;
    assert!(
        !ran.success && ran.errors.contains("are in no snapshot"),
        "{}",
        ran.errors
    );
    for _ in 0..2 {
        let ran = lab.initialize("p", &place.volume, &RETURNED).await;
        assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
    }
    // A chain of the epoch's own snapshots is complete without the hole.
    let etcd = EtcdServer::start(&place.volume).await;
    let server = Server::start(lab, "p", &etcd.endpoint, &RETURNED).await;
    server.snapshot("/snapshot/full").await;
    let now = etcd.dump().await;
    let ran = lab.initialize("p", &lost, &RETURNED).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(EtcdServer::start(&lost).await.dump().await == after_loss(&now, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_data_of_a_returned_epoch_start_beside_an_object_that_cannot_be_read() {
    let place = Place::begin().await;
    let stranger = "Full-00000000-00000099-1518427675.Z";
    fs::write(place.lab.object("p", stranger), "x").unwrap();
    let ran = place.lab.initialize("p", &place.volume, &RETURNED).await;
    assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
    // The volume was not compared with the store.
    assert!(ran.json["begin"].is_null(), "{}", ran.json);
}

/// An operator has put back a volume of the former epoch from before the seal. The volume is newer than the
/// bucket.
#[tokio::test(flavor = "multi_thread")]
async fn a_returned_epoch_does_not_keep_a_volume_that_ends_before_the_seal() {
    let place = Place::begin().await;
    let (lab, held) = (&place.lab, place.revision);
    let seal = async |revision| {
        let note = SealNote {
            epoch: 1,
            revision,
            beat: 0,
        };
        note.write(&lab.store("p")).await.unwrap();
    };
    seal(held + 50).await;
    let ran = lab.initialize("p", &place.volume, &RETURNED).await;
    assert!(!ran.success, "{}", ran.json);
    for part in [
        "SnapshotMissing: ",
        &format!("sealed at revision {}", held + 50),
        &format!("end at revision {}:", held - 1),
        &format!("an older state of epoch 1, which ends at revision {held}"),
        "delete the volume",
        "sealed.json",
    ] {
        assert!(ran.errors.contains(part), "{part}: {}", ran.errors);
    }
    // An object that cannot be read does not hide the seal.
    let stranger = lab.object("p", "Full-00000000-00000099-1518427675.Z");
    fs::write(&stranger, "x").unwrap();
    let ran = lab.initialize("p", &place.volume, &RETURNED).await;
    assert!(!ran.success, "{}", ran.json);
    fs::remove_file(stranger).unwrap();

    // The volume was not changed, and a volume that reaches the seal is kept.
    seal(held).await;
    let kept = lab.initialize("p", &place.volume, &RETURNED).await;
    assert_eq!(kept.json["result"], "Kept", "{}", kept.errors);
    assert_eq!(kept.json["begin"]["complete"], true, "{}", kept.json);
}
