//! Leftovers of an earlier residency of the shoot are never chosen, neither on a volume nor in a bucket. No
//! revision that an earlier owner gave after its last snapshot is given a second time.

use crate::lab::{EtcdServer, Key, Lab, Server, after_loss};
use serde_json::json;

/// Revisions that a restore skips if the end of an epoch is unknown.
const LEFT_OUT: i64 = 1_000_000_000;

/// The content and revision of an etcd that begins with the last snapshot of an earlier etcd.
fn gone_on((keys, revision): &(Vec<Key>, i64)) -> (Vec<Key>, i64) {
    (keys.clone(), revision + LEFT_OUT)
}

/// A shoot that moved from A to B while A was cut off and continued to serve; its state at B.
struct CutOff {
    lab: Lab,
    at_b: (Vec<Key>, i64),
}

impl CutOff {
    /// A's bucket is below `a`, its volume `volume-a`; B's below `b`.
    async fn begin() -> Self {
        let lab = Lab::new();
        let volume_a = lab.path("volume-a/new.etcd");
        let etcd_a = EtcdServer::start(&volume_a).await;
        let server_a = Server::start(&lab, "a", &etcd_a.endpoint, &[]).await;
        etcd_a.put_key("/registry/shared", "before").await;
        server_a.snapshot("/snapshot/delta").await;

        let copied = lab.copy("a", "b", &["--ownership-epoch=2"]).await;
        assert!(copied.success, "{}", copied.errors);
        let volume_b = lab.path("volume-b/new.etcd");
        let ran = lab.initialize("b", &volume_b, &["--ownership-epoch=2"]).await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        let etcd_b = EtcdServer::start(&volume_b).await;
        let server_b = Server::start(&lab, "b", &etcd_b.endpoint, &["--ownership-epoch=2"]).await;
        etcd_b.put_key("/registry/shared", "by b").await;
        server_b.snapshot("/snapshot/delta").await;

        // A's history goes beyond B's, in its bucket, on its volume, and with a final snapshot.
        for n in 0..50 {
            etcd_a
                .put_key("/registry/shared", format!("by a, cut off: {n}"))
                .await;
        }
        server_a.snapshot("/snapshot/delta").await;
        server_a.snapshot("/snapshot/full?final=true").await;
        let at_b = etcd_b.dump().await;
        Self { lab, at_b }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn back_at_its_first_seed_a_shoot_finds_what_it_left_at_the_second_and_not_what_it_left_there() {
    let CutOff { lab, at_b } = CutOff::begin().await;
    let copied = lab.copy("b", "a", &["--ownership-epoch=3"]).await;
    assert!(copied.success, "{}", copied.errors);
    // First the old volume, with a higher revision than B ever had; then an empty volume, after the loss of
    // the first.
    for (losses, volume) in (0..).zip(["volume-a/new.etcd", "volume-new/new.etcd"]) {
        let volume = lab.path(volume);
        let ran = lab.initialize("a", &volume, &["--ownership-epoch=3"]).await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        let begun = after_loss(&gone_on(&at_b), losses);
        assert_eq!(ran.json["revision"], begun.1);
        assert!(EtcdServer::start(&volume).await.dump().await == begun);
        // A restart keeps the data, although the bucket holds higher revisions.
        let again = lab.initialize("a", &volume, &["--ownership-epoch=3"]).await;
        assert_eq!(again.json["result"], "Kept", "{}", again.errors);
        // An etcd of the first epoch is refused these data.
        let old = lab.initialize("a", &volume, &[]).await;
        assert!(
            !old.success && old.errors.contains("OtherEpoch"),
            "{}",
            old.errors
        );
    }

    // Backups continue at A, beside the leftovers.
    let etcd = EtcdServer::start(&lab.path("volume-new/new.etcd")).await;
    let server = Server::start(&lab, "a", &etcd.endpoint, &["--ownership-epoch=3"]).await;
    etcd.put_key("/registry/shared", "back at a").await;
    server.snapshot("/snapshot/delta").await;
    let now = etcd.dump().await;
    let lost = lab.path("volume-lost/new.etcd");
    let ran = lab.initialize("a", &lost, &["--ownership-epoch=3"]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(EtcdServer::start(&lost).await.dump().await == after_loss(&now, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_final_snapshot_of_an_older_epoch_is_ignored() {
    let CutOff { lab, at_b } = CutOff::begin().await;
    // An interrupted flow repeats the copy: the recorded chain stays.
    let before = lab.objects("b");
    let again = lab.copy("a", "b", &["--ownership-epoch=2"]).await;
    assert!(again.success, "{}", again.errors);
    assert_eq!(again.json["copied"], json!([]));
    assert_eq!(lab.objects("b"), before);
    // The same holds if a user puts the final snapshot into the new bucket by hand.
    for name in lab.objects("a").iter().filter(|name| name.contains(".final")) {
        std::fs::copy(lab.object("a", name), lab.object("b", name)).unwrap();
    }
    let volume = lab.path("volume-new/new.etcd");
    let ran = lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(EtcdServer::start(&volume).await.dump().await == after_loss(&at_b, 1));
    // A third seed begins with the data of B, not with A's last writes.
    let third = lab.copy("b", "c", &["--ownership-epoch=3"]).await;
    assert!(third.success, "{}", third.errors);
    assert_eq!(third.json["lastRevision"], at_b.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_without_a_recorded_chain_does_not_start_on_another_one() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&volume).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put_key("/a", "b").await;
    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    for data in [&volume, &lab.path("empty/new.etcd")] {
        let ran = lab.initialize("p", data, &["--ownership-epoch=2"]).await;
        assert!(
            !ran.success && ran.errors.contains("OtherEpoch: no chain is recorded"),
            "{}",
            ran.errors
        );
    }
    // The directory is unchanged: the epoch of the data still starts.
    assert!(lab.initialize("p", &volume, &[]).await.success);
    assert!(EtcdServer::start(&volume).await.dump().await == before);
}

/// A move was cancelled after its source had sealed its epoch, or a shoot came back before a second seed had
/// opened its data. etcd's last acknowledged writes are in no snapshot, and are kept.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_goes_on_in_its_own_place_keeps_what_was_written_last() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&volume).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put_key("/a", "in a snapshot").await;
    server.snapshot("/snapshot/delta").await;
    let stored = etcd.dump().await;
    etcd.put_key("/a", "in none").await;
    let before = etcd.dump().await;
    drop(server);
    etcd.stop();
    let goes_on = |epoch: i64, origin: i64| {
        lab.hold(
            "p",
            json!({"epoch": epoch, "seed": "a", "state": "Owned", "origin": origin}),
        );
    };
    goes_on(2, 1);
    for _ in 0..2 {
        let ran = lab.initialize("p", &volume, &["--ownership-epoch=2"]).await;
        assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
    }
    assert!(EtcdServer::start(&volume).await.dump().await == before);
    let old = lab.initialize("p", &volume, &[]).await;
    assert!(
        !old.success && old.errors.contains("OtherEpoch"),
        "{}",
        old.errors
    );

    // With a new volume the epoch begins with the snapshots in the store.
    let lost = lab.path("lost/new.etcd");
    let ran = lab.initialize("p", &lost, &["--ownership-epoch=2"]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(EtcdServer::start(&lost).await.dump().await == after_loss(&gone_on(&stored), 1));

    // Data of an epoch that this epoch does not continue are replaced. The owner of that epoch may have
    // skipped revisions, too.
    goes_on(3, 1);
    let ran = lab.initialize("p", &volume, &["--ownership-epoch=3"]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    let skipped = gone_on(&gone_on(&stored));
    assert!(EtcdServer::start(&volume).await.dump().await == skipped);
}

/// Clients of A remember revisions that B never saw. B's revisions must not look older to these clients, and
/// must not collide with A's revisions.
#[tokio::test(flavor = "multi_thread")]
async fn no_revision_is_given_twice_and_who_watches_from_a_lost_one_is_told_to_list_anew() {
    let lab = Lab::new();
    let etcd_a = EtcdServer::start(&lab.path("volume-a/new.etcd")).await;
    let server_a = Server::start(&lab, "a", &etcd_a.endpoint, &[]).await;
    etcd_a.put_key("/kept", "in a snapshot").await;
    server_a.snapshot("/snapshot/delta").await;
    let saved = etcd_a.dump().await;
    let lost = etcd_a.put_key("/lost", "in none").await;
    assert!(lab.copy("a", "b", &["--ownership-epoch=2"]).await.success);

    let volume = lab.path("volume-b/new.etcd");
    let ran = lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(ran.json["revision"], saved.1 + LEFT_OUT, "{}", ran.errors);
    let etcd_b = EtcdServer::start(&volume).await;
    assert!(etcd_b.dump().await == gone_on(&saved));
    assert!(etcd_b.put_key("/kept", "at b").await > lost);
    for remembered in [saved.1, lost, lost + 1] {
        assert!(etcd_b.has_compacted(remembered).await, "from {remembered}");
    }

    // B's backups begin with a new full snapshot: no delta continues across the skipped revisions.
    let server_b = Server::start(&lab, "b", &etcd_b.endpoint, &["--ownership-epoch=2"]).await;
    etcd_b.put_key("/kept", "at b, later").await;
    server_b.snapshot("/snapshot/delta").await;
    let now = etcd_b.dump().await;
    let other = lab.path("volume-other/new.etcd");
    let ran = lab.initialize("b", &other, &["--ownership-epoch=2"]).await;
    assert_eq!(ran.json["snapshots"].as_array().unwrap().len(), 2, "{}", ran.json);
    assert!(EtcdServer::start(&other).await.dump().await == after_loss(&now, 1));
    // A planned move, with the end of the epoch, skips no revisions.
    server_b.snapshot("/snapshot/full?final=true").await;
    let end = format!("--required-revision={}", now.1);
    assert!(lab.copy("b", "c", &["--ownership-epoch=3", &end]).await.success);
    let third = lab.path("volume-c/new.etcd");
    lab.initialize("c", &third, &["--ownership-epoch=3"]).await;
    assert!(EtcdServer::start(&third).await.dump().await == now);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_a_later_epoch_owns_lets_no_etcd_of_an_earlier_one_start() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    EtcdServer::start(&volume).await.stop();
    let owned = |epoch: i64| lab.hold("p", json!({"epoch": epoch, "seed": "b", "state": "Owned"}));
    owned(1);
    assert!(lab.initialize("p", &volume, &[]).await.success);
    owned(2);
    let ran = lab.initialize("p", &volume, &[]).await;
    assert!(
        !ran.success && ran.errors.contains("OtherEpoch"),
        "{}",
        ran.errors
    );
}

/// A state that no writer produces is not a sign that the store is free. An etcd that has all its data needs
/// no store to start.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_says_something_unknown_lets_no_etcd_begin() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    for state in ["sealed", "Lost", ""] {
        lab.hold("p", json!({"epoch": 1, "seed": "b", "state": state}));
        let ran = lab.initialize("p", &volume, &[]).await;
        assert!(
            !ran.success && ran.errors.contains("cannot be understood"),
            "{state:?}: {}",
            ran.errors
        );
    }
    lab.hold("p", json!({"epoch": 1, "seed": "b", "state": "Owned"}));
    assert!(lab.initialize("p", &volume, &[]).await.success);
}

/// A seed that takes over a shoot claims the store from which that seed copies. A claimant of an earlier
/// epoch cannot copy any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_source_still_holds_what_its_claimant_begins_with() {
    let CutOff { lab, at_b } = CutOff::begin().await;
    let claimed = |epoch: i64| {
        lab.hold(
            "b",
            json!({"epoch": epoch, "seed": "a", "state": "Claimed", "origin": 2}),
        );
    };
    claimed(3);
    let copied = lab.copy("b", "a", &["--ownership-epoch=3"]).await;
    assert!(copied.success, "{}", copied.errors);
    let volume = lab.path("volume-new/new.etcd");
    let ran = lab.initialize("a", &volume, &["--ownership-epoch=3"]).await;
    assert_eq!(ran.json["revision"], at_b.1 + LEFT_OUT, "{}", ran.errors);
    claimed(4);
    let late = lab.copy("b", "c", &["--ownership-epoch=3"]).await;
    assert!(
        !late.success && late.errors.contains("OtherEpoch"),
        "{}",
        late.errors
    );
}

/// B has begun with the end of A's epoch, serves, and cannot write to its bucket. C must find that B's end is
/// missing; otherwise a takeover would report no loss.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_epoch_before_is_not_that_of_the_one_that_began_with_it() {
    let lab = Lab::new();
    let etcd_a = EtcdServer::start(&lab.path("volume-a/new.etcd")).await;
    let server_a = Server::start(&lab, "a", &etcd_a.endpoint, &[]).await;
    etcd_a.put_key("/kept", "at a").await;
    server_a.snapshot("/snapshot/full?final=true").await;
    let at_a = etcd_a.dump().await;
    let end = format!("--required-revision={}", at_a.1);
    let planned = lab.copy("a", "b", &["--ownership-epoch=2", &end]).await;
    assert_eq!(planned.json["finalSnapshot"], true, "{}", planned.errors);
    let again = lab.copy("a", "b", &["--ownership-epoch=2", &end]).await;
    assert_eq!(again.json["finalSnapshot"], true, "{}", again.errors);
    let volume = lab.path("volume-b/new.etcd");
    let ran = lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(
        ran.json["revision"], at_a.1,
        "nothing is left out: {}",
        ran.errors
    );
    let etcd_b = EtcdServer::start(&volume).await;
    let lost = etcd_b.put_key("/kept", "at b, in no snapshot").await;
    lab.hold(
        "b",
        json!({"epoch": 3, "seed": "c", "state": "Claimed", "origin": 2}),
    );

    let flags = [
        "--ownership-epoch=3",
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=3s",
    ];
    for _ in 0..2 {
        let taken = lab.copy("b", "c", &flags).await;
        assert_eq!(taken.json["finalSnapshot"], false, "{}", taken.errors);
    }
    let volume = lab.path("volume-c/new.etcd");
    let ran = lab.initialize("c", &volume, &["--ownership-epoch=3"]).await;
    // For the owners of two epochs.
    assert_eq!(ran.json["revision"], at_a.1 + 2 * LEFT_OUT, "{}", ran.errors);
    let etcd_c = EtcdServer::start(&volume).await;
    assert!(etcd_c.put_key("/kept", "at c").await > lost);
    let server_c = Server::start(&lab, "c", &etcd_c.endpoint, &["--ownership-epoch=3"]).await;
    etcd_c.put_key("/kept", "at c, later").await;
    server_c.snapshot("/snapshot/delta").await;
    let now = etcd_c.dump().await;
    let other = lab.path("volume-other/new.etcd");
    lab.initialize("c", &other, &["--ownership-epoch=3"]).await;
    assert!(EtcdServer::start(&other).await.dump().await == after_loss(&now, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_etcd_of_a_later_epoch_is_not_taken_for_one_of_the_first() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    for _ in 0..2 {
        // At the second run the directory holds only the mark.
        let ran = lab.initialize("p", &volume, &["--ownership-epoch=4"]).await;
        assert_eq!(ran.json["result"], "Fresh", "{}", ran.errors);
    }
    let etcd = EtcdServer::start(&volume).await;
    etcd.put_key("/a", "b").await;
    etcd.stop();
    let ran = lab.initialize("p", &volume, &["--ownership-epoch=4"]).await;
    assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
    assert!(
        !lab.initialize("p", &volume, &["--ownership-epoch=3"])
            .await
            .success
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_data_directory_is_kept_until_etcd_serves() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put_key("/a", "b").await;
    server.snapshot("/snapshot/full").await;
    drop(server);
    etcd.stop();
    let old = EtcdServer::start(&volume).await;
    old.stop();
    let replaced = lab.path("volume/new.etcd.replaced");
    assert_eq!(lab.initialize("p", &volume, &[]).await.json["result"], "Restored");
    assert!(replaced.join("member/wal").exists());
    // Restarts before etcd serves, and a second restore, keep the replaced directory.
    assert_eq!(lab.initialize("p", &volume, &[]).await.json["result"], "Kept");
    std::fs::remove_dir_all(volume.join("member/wal")).unwrap();
    let first = std::fs::read_dir(replaced.join("member/wal")).unwrap().count();
    assert_eq!(lab.initialize("p", &volume, &[]).await.json["result"], "Restored");
    assert_eq!(
        std::fs::read_dir(replaced.join("member/wal")).unwrap().count(),
        first
    );

    let flag = format!("--data-dir={}", volume.display());
    let etcd = EtcdServer::start(&volume).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[&flag]).await;
    crate::lab::eventually("the replaced directory is removed", async || {
        (!replaced.exists()).then_some(())
    })
    .await;
    drop(server);
}
