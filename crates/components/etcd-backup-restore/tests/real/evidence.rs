//! A copy transfers everything that the source acknowledged, or reports the number of missing changes. Both
//! follow from the objects that the copy has read and hashed.

use crate::lab::{EPOCH, EtcdServer, Lab, Ran, Server, Stay, Writer, eventually};
use etcd_backup_restore::seal_note::SealNote;
use etcd_backup_restore::snapshot_name::{Kind, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// A source that has handed its shoot over, and the recorded end of the hand-over.
struct HandedOver {
    lab: Lab,
    etcd: EtcdServer,
    end: Value,
}

impl HandedOver {
    /// `saved`: whether a delta holds the last write, as after a seal.
    async fn begin(saved: bool) -> Self {
        let lab = Lab::new();
        let etcd = EtcdServer::start(&lab.path("etcd")).await;
        etcd.put_key("/early", "x").await;
        let server = Server::start(&lab, "a", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
        etcd.put_key("/in-a-delta", "x").await;
        server.snapshot("/snapshot/delta").await;
        for number in 0..17 {
            etcd.put_key(&format!("/late/{number}"), "x").await;
        }
        if saved {
            server.snapshot("/snapshot/delta").await;
        }
        let (status, end) = server.post("/snapshot/full?final=true").await;
        assert_eq!((status, &end["verified"]), (200, &json!(true)), "{end}");
        drop(server);
        Self { lab, etcd, end }
    }

    fn name(&self) -> String {
        let name = self
            .lab
            .objects("a")
            .into_iter()
            .find(|name| name.contains(".final"));
        name.unwrap()
    }

    fn revision(&self) -> i64 {
        self.end["lastRevision"].as_i64().unwrap()
    }

    /// Copies with the flags that etcd-druid derives from the recorded hand-over.
    async fn copied(&self, name: &str, accepted: i64) -> Ran {
        let flags = [
            "--ownership-epoch=2".to_owned(),
            "--wait-for-final-snapshot=true".to_owned(),
            "--wait-for-final-snapshot-timeout=60s".to_owned(),
            format!("--required-revision={}", self.revision()),
            format!("--required-snapshot={name}"),
            format!(
                "--required-snapshot-sha256={}",
                self.end["sha256"].as_str().unwrap()
            ),
            format!("--accepted-loss={accepted}"),
        ];
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        self.lab.copy("a", "b", &flags).await
    }

    async fn keys_after_a_restore(&self) -> BTreeSet<Vec<u8>> {
        self.restored().await.0
    }

    /// The keys, and the revision at which etcd begins.
    async fn restored(&self) -> (BTreeSet<Vec<u8>>, i64) {
        let volume = self.lab.path("volume-b/new.etcd");
        let ran = self.lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        let etcd = EtcdServer::start(&volume).await;
        let keys = EtcdServer::keys(&etcd.endpoint).await;
        (keys, ran.json["revision"].as_i64().unwrap())
    }
}

/// R17-26, R17-27: 17 acknowledged writes were lost without a sign.
#[tokio::test(flavor = "multi_thread")]
pub async fn a_final_snapshot_that_is_gone_fails_the_copy_which_names_it_and_the_loss() {
    let source = HandedOver::begin(false).await;
    let (name, end) = (source.name(), source.revision());
    let before = fs::read(source.lab.object("a", &name)).unwrap();
    fs::remove_file(source.lab.object("a", &name)).unwrap();
    for accepted in [0, 16] {
        let ran = source.copied(&name, accepted).await;
        assert!(!ran.success, "{}", ran.json);
        for part in [
            "SnapshotMissing: ",
            &format!("the final snapshot {name} is missing"),
            &format!("revisions {} to {end} are in no snapshot", end - 16),
            "accept-loss=17",
        ] {
            assert!(ran.errors.contains(part), "{part}: {}", ran.errors);
        }
    }
    // The final snapshot is put back.
    fs::write(source.lab.object("a", &name), before).unwrap();
    let ran = source.copied(&name, 0).await;
    assert_eq!(
        (&ran.json["complete"], &ran.json["finalSnapshot"]),
        (&json!(true), &json!(true)),
        "{}",
        ran.errors
    );
    assert!(source.keys_after_a_restore().await.contains(&b"/late/16"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_that_a_person_accepts_is_reported_as_a_number() {
    let source = HandedOver::begin(false).await;
    let name = source.name();
    fs::remove_file(source.lab.object("a", &name)).unwrap();
    let ran = source.copied(&name, 17).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(
        (
            &ran.json["complete"],
            &ran.json["lostRevisions"],
            &ran.json["lastRevision"]
        ),
        (&json!(false), &json!(17), &json!(source.revision() - 17))
    );
    // The chain is chosen: a repeated copy asks for the same consent, and reports the same.
    assert!(!source.copied(&name, 16).await.success);
    let again = source.copied(&name, 17).await;
    assert_eq!(again.json["lostRevisions"], 17, "{}", again.errors);
    let (keys, revision) = source.restored().await;
    assert!(
        revision > 1_000_000_000,
        "the revisions of what is lost are given once more"
    );
    assert!(keys.contains(&b"/in-a-delta"[..]) && !keys.contains(&b"/late/0"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_reaches_the_end_of_the_source_is_as_good_as_the_final_snapshot() {
    let source = HandedOver::begin(true).await;
    let name = source.name();
    let all = source.etcd.dump().await.0;
    fs::remove_file(source.lab.object("a", &name)).unwrap();
    let ran = source.copied(&name, 0).await;
    assert_eq!(
        (
            &ran.json["complete"],
            &ran.json["finalSnapshot"],
            &ran.json["lostRevisions"]
        ),
        (&json!(true), &json!(false), &Value::Null),
        "{}",
        ran.errors
    );
    let all: BTreeSet<_> = all.into_iter().map(|key| key.0).collect();
    assert_eq!(source.restored().await, (all, source.revision()));
}

/// An older snapshot under the name of the final snapshot: sound, but with a different hash than the recorded
/// hash.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_with_another_hash_than_recorded_does_not_count() {
    for (saved, garbled) in [(false, false), (true, false), (true, true)] {
        let source = HandedOver::begin(saved).await;
        let name = source.name();
        let (path, objects) = (source.lab.object("a", &name), source.lab.objects("a"));
        if garbled {
            source.lab.garble("a", &name);
        } else {
            let older = objects
                .iter()
                .find(|other| other.starts_with("Full") && **other != name);
            fs::copy(source.lab.object("a", older.unwrap()), &path).unwrap();
        }
        let ran = source.copied(&name, 0).await;
        assert!(
            !source.lab.objects("b").contains(&name),
            "it appears in the target"
        );
        if saved {
            assert_eq!(ran.json["complete"], true, "{}", ran.errors);
            assert!(source.keys_after_a_restore().await.contains(&b"/late/16"[..]));
        } else {
            assert!(
                !ran.success && ran.errors.contains("cannot be used"),
                "{}",
                ran.errors
            );
            assert!(ran.errors.contains("accept-loss=17"), "{}", ran.errors);
        }
    }
}

/// Copied objects vanish from the own bucket: an empty or older etcd would pass for all of the shoot's data.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_does_not_begin_with_less_than_was_copied() {
    let source = HandedOver::begin(true).await;
    let name = source.name();
    fs::remove_file(source.lab.object("a", &name)).unwrap();
    let ran = source.copied(&name, 0).await;
    assert_eq!(ran.json["complete"], true, "{}", ran.errors);
    // The newest delta first, then all others.
    let mut objects = source.lab.objects("b");
    objects.sort_by_key(|name| std::cmp::Reverse(Snapshot::parse(name).unwrap().last_revision));
    let volume = source.lab.path("volume-b/new.etcd");
    for name in objects {
        fs::remove_file(source.lab.object("b", &name)).unwrap();
        let ran = source
            .lab
            .initialize("b", &volume, &["--ownership-epoch=2"])
            .await;
        assert!(
            !ran.success && ran.errors.contains("SnapshotMissing: ") && ran.errors.contains(&name),
            "{name}: {}",
            ran.errors
        );
        assert!(!volume.exists(), "something was begun with");
    }
}

/// The flags of a copy in a takeover; the copy runs while the fence waits.
const TAKES_OVER: [&str; 3] = [
    "--ownership-epoch=4",
    "--wait-for-final-snapshot=true",
    "--wait-for-final-snapshot-timeout=12s",
];

/// A source that learns of its loss first saves the changes that no snapshot has, and then takes the final
/// snapshot. Without the final snapshot no write is lost either.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_cut_off_from_the_garden_alone_loses_no_write() {
    let stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    let patient = [
        TAKES_OVER[0],
        TAKES_OVER[1],
        "--wait-for-final-snapshot-timeout=60s",
    ];
    let (ran, acknowledged) = tokio::join!(stay.lab.copy("p", "q", &patient), async {
        stay.is_fenced("Sealed").await;
        writer.settled().await
    });
    assert_eq!(ran.json["complete"], true, "{}\n{}", ran.json, ran.errors);
    assert_eq!(ran.json["waitTimedOut"], false, "{}", ran.json);
    let note = SealNote::read(&stay.store()).await.unwrap().unwrap();
    assert_eq!(
        (note.epoch, &json!(note.revision)),
        (EPOCH, &ran.json["sealedRevision"])
    );
    // Simulates a destination that lists the source before the final snapshot exists.
    eventually("the final snapshot is there", async || {
        (stay.finals().len() == 1).then_some(())
    })
    .await;
    for name in stay.finals() {
        fs::remove_file(stay.lab.object("p", &name)).unwrap();
    }
    let early = stay.lab.copy("p", "r", &TAKES_OVER).await;
    assert_eq!(
        (&early.json["complete"], &early.json["finalSnapshot"]),
        (&json!(true), &json!(false)),
        "{}",
        early.errors
    );
    assert!(!acknowledged.is_empty());
    for place in ["q", "r"] {
        let volume = stay.lab.path(&format!("volume-{place}/new.etcd"));
        let ran = stay
            .lab
            .initialize(place, &volume, &["--ownership-epoch=4"])
            .await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        let etcd = EtcdServer::start(&volume).await;
        let keys = EtcdServer::keys(&etcd.endpoint).await;
        for write in &acknowledged {
            assert!(
                keys.contains(write.key.as_bytes()),
                "{} was acknowledged and is lost",
                write.key
            );
        }
    }
}

/// The destination has claimed the store before the source seals: the source's data are saved all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_place_was_claimed_saves_its_last_changes() {
    let stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.held("Claimed", EPOCH + 1).await;
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.settled().await.len();
    eventually("the final snapshot is there", async || {
        (stay.finals().len() == 1).then_some(())
    })
    .await;
    let note = SealNote::read(&stay.store()).await.unwrap().unwrap();
    let deltas = stay
        .lab
        .objects("p")
        .into_iter()
        .filter_map(|name| Snapshot::parse(&name));
    let reached = deltas
        .filter(|s| s.kind == Kind::Delta)
        .map(|s| s.last_revision)
        .max();
    assert!(reached >= Some(note.revision), "{reached:?} {note:?}");
    assert!(note.revision > i64::try_from(acknowledged).unwrap());
    assert_eq!(stay.holding().await["state"], "Claimed");
}

/// A source in epoch 1 that has sealed its epoch, and has not stored its last change.
async fn sealed_source() -> (Lab, EtcdServer, Server, SealNote) {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/early", "x").await;
    let server = Server::start(&lab, "a", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
    let revision = etcd.put_key("/late", "x").await;
    let note = SealNote {
        epoch: 1,
        revision,
        beat: 0,
    };
    note.write(&lab.store("a")).await.unwrap();
    (lab, etcd, server, note)
}

/// Longer than the patience of the copies below, and shorter than a copy waits for a stalled source.
const STORES_FOR: Duration = Duration::from_secs(20);
const IMPATIENT: [&str; 3] = [
    "--ownership-epoch=2",
    "--wait-for-final-snapshot=true",
    "--wait-for-final-snapshot-timeout=2s",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_reports_that_it_is_storing_is_waited_for() {
    let (lab, _etcd, server, mut note) = sealed_source().await;
    let begun = Instant::now();
    let (ran, ()) = tokio::join!(lab.copy("a", "b", &IMPATIENT), async {
        // The heartbeat of a source whose delta takes long.
        while begun.elapsed() < STORES_FOR {
            tokio::time::sleep(Duration::from_secs(1)).await;
            note.beat += 1;
            note.write(&lab.store("a")).await.unwrap();
        }
        server.snapshot("/snapshot/delta").await;
    });
    assert_eq!(ran.json["complete"], true, "{}\n{}", ran.json, ran.errors);
    assert_eq!(ran.json["sealedRevision"], note.revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_died_while_it_was_storing_is_not_waited_for_without_end() {
    let (lab, _etcd, _server, note) = sealed_source().await;
    let begun = Instant::now();
    let ran = lab.copy("a", "b", &IMPATIENT).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(
        (
            &ran.json["complete"],
            &ran.json["waitTimedOut"],
            &ran.json["sealedRevision"]
        ),
        (&json!(false), &json!(true), &json!(note.revision)),
        "{}",
        ran.errors
    );
}
