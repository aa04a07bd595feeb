//! A chain that cannot be trusted: a sentence, an untouched volume, and success once the cause is gone.

use crate::lab::{EtcdServer, Key, Lab, Server, after_loss, noise};
use std::fs;

struct Case {
    lab: Lab,
    before: (Vec<Key>, i64),
}

/// A store with a full snapshot and three deltas, and a volume whose data are broken.
async fn prepare() -> Case {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", noise(1, 50_000)).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    for n in 2..5 {
        etcd.put_key(&format!("/delta/{n}"), noise(n, 5000)).await;
        server.snapshot("/snapshot/delta").await;
    }
    let before = etcd.dump().await;
    fs::create_dir_all(lab.path("volume/new.etcd/member/wal")).unwrap();
    fs::write(lab.path("volume/new.etcd/member/witness"), "untouched").unwrap();
    Case { lab, before }
}

impl Case {
    async fn is_refused(&self, class: &str) {
        let data = self.lab.path("volume/new.etcd");
        let ran = self.lab.initialize("p", &data, &[]).await;
        assert!(
            !ran.success && ran.errors.contains(&format!("{class}: ")),
            "{class} expected: {}",
            ran.errors
        );
        assert_eq!(
            fs::read_to_string(data.join("member/witness")).unwrap(),
            "untouched"
        );
        assert_eq!(
            fs::read_dir(self.lab.path("volume")).unwrap().count(),
            1,
            "nothing beside it"
        );
    }

    async fn succeeds(&self) {
        let data = self.lab.path("volume/new.etcd");
        let ran = self.lab.initialize("p", &data, &[]).await;
        assert!(ran.success, "{}", ran.errors);
        assert!(EtcdServer::start(&data).await.dump().await == after_loss(&self.before, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_objects_are_found_before_anything_is_changed() {
    let case = prepare().await;
    let objects = case.lab.objects("p");
    assert_eq!(objects.len(), 4, "{objects:?}");
    for name in [&objects[0], &objects[2]] {
        let path = case.lab.object("p", name);
        let intact = fs::read(&path).unwrap();
        case.lab.garble("p", name);
        case.is_refused("SnapshotCorrupt").await;
        fs::write(&path, &intact[..intact.len() * 2 / 3]).unwrap();
        case.is_refused("SnapshotCorrupt").await;
        fs::write(&path, b"").unwrap();
        case.is_refused("SnapshotCorrupt").await;
        fs::write(&path, &intact).unwrap();
    }
    case.succeeds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_delta_is_found_and_the_restore_goes_on_when_it_is_back() {
    let case = prepare().await;
    let name = case.lab.objects("p").into_iter().nth(2).unwrap();
    let (path, aside) = (case.lab.object("p", &name), case.lab.path("aside"));
    fs::rename(&path, &aside).unwrap();
    case.is_refused("SnapshotMissing").await;
    fs::rename(&aside, &path).unwrap();
    case.succeeds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_under_a_wrong_name_is_found() {
    let case = prepare().await;
    // The last delta claims a revision that the delta does not hold.
    let name = case.lab.objects("p").pop().unwrap();
    let snapshot = etcd_backup_restore::snapshot_name::Snapshot::parse(&name).unwrap();
    let wrong = etcd_backup_restore::snapshot_name::Snapshot {
        last_revision: snapshot.last_revision + 5,
        ..snapshot
    };
    let (path, renamed) = (
        case.lab.object("p", &name),
        case.lab.object("p", &wrong.to_string()),
    );
    fs::rename(&path, &renamed).unwrap();
    case.is_refused("SnapshotCorrupt").await;
    fs::rename(&renamed, &path).unwrap();
    case.succeeds().await;
}
