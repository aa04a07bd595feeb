//! An etcd without backups begins above all revisions of its former data: a client that watches Events across
//! a move lists again.

use crate::lab::{EtcdServer, Lab, PATIENCE, Ran};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::path::Path;
use testkit::ControlPlane;

/// Runs `prepare` in an epoch; returns the revision with which the following etcd starts.
async fn begins(lab: &Lab, volume: &Path, epoch: i64) -> (Ran, i64) {
    let prepared = lab.prepare(volume, epoch, &[]).await;
    assert!(prepared.success, "{}", prepared.errors);
    let etcd = EtcdServer::start(volume).await;
    let revision = etcd.client.revision().await.unwrap();
    (prepared, revision)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_without_backups_begins_above_all_former_revisions() {
    let lab = Lab::new();
    let [first, second] = ["first/new.etcd", "second/new.etcd"].map(|name| lab.path(name));
    let (fresh, begun) = begins(&lab, &first, 1).await;
    assert_eq!(fresh.json, json!({"result": "Fresh", "revision": begun}));

    // A restart of the same epoch, for example a wake-up from hibernation, changes no data.
    let etcd = EtcdServer::start(&first).await;
    let written = etcd.put_key("/registry/events/default/a", "1").await;
    assert_eq!(written, begun + 1);
    etcd.stop();
    let (kept, now) = begins(&lab, &first, 1).await;
    assert_eq!((kept.json, now), (json!({"result": "Kept"}), written));

    // Another seed, in the next epoch.
    let (fresh, moved) = begins(&lab, &second, 2).await;
    assert_eq!(fresh.json["result"], "Fresh");
    assert!(moved > written, "{moved} {written}");

    // Back on a volume that was never removed: the data stay, and the revisions continue above those of the
    // other seed.
    let (advanced, returned) = begins(&lab, &first, 3).await;
    assert_eq!(advanced.json, json!({"result": "Advanced", "revision": returned}));
    assert!(returned > moved, "{returned} {moved}");
    let etcd = EtcdServer::start(&first).await;
    let key = etcd.client.page(b"", 2).await.unwrap().0.pop().unwrap();
    assert_eq!((key.mod_revision, &key.value[..]), (written, &b"1"[..]));
    assert_eq!(
        etcd.put_key("/registry/events/default/b", "2").await,
        returned + 1
    );
    etcd.stop();
    let (kept, _) = begins(&lab, &first, 3).await;
    assert_eq!(kept.json, json!({"result": "Kept"}));

    // The volume is lost within the epoch.
    std::fs::remove_dir_all(&second).unwrap();
    let (_, again) = begins(&lab, &second, 2).await;
    assert!(again >= moved && again < returned, "{moved} {again} {returned}");

    // A seed that the shoot has left does not start on later data.
    let refused = lab.prepare(&first, 2, &[]).await;
    assert!(
        !refused.success && refused.errors.contains("OtherEpoch: "),
        "{}",
        refused.errors
    );
}

/// An etcd that ran without `prepare`, of an earlier release.
#[tokio::test(flavor = "multi_thread")]
async fn data_of_an_earlier_release_stay_and_the_next_epoch_begins_above_their_revisions() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&volume).await;
    let written = etcd.put_key("/registry/events/default/a", "1").await;
    etcd.stop();
    let (kept, now) = begins(&lab, &volume, 1).await;
    assert_eq!((kept.json, now), (json!({"result": "Kept"}), written));
    let (advanced, now) = begins(&lab, &volume, 2).await;
    assert_eq!(advanced.json["result"], "Advanced");
    assert!(now > 1 << 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preparation_that_is_killed_leaves_nothing_that_the_next_one_minds() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    std::fs::create_dir_all(lab.path("volume/new.etcd.restoring/result/member/wal")).unwrap();
    std::fs::create_dir_all(&volume).unwrap();
    let (fresh, _) = begins(&lab, &volume, 2).await;
    assert_eq!(fresh.json["result"], "Fresh");
    assert_eq!(std::fs::read_dir(lab.path("volume")).unwrap().count(), 1);
}

async fn create(client: &Client, name: &str) -> kube::Result<Event> {
    let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "reason": "Test", "type": "Normal"});
    let api: Api<Event> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &serde_json::from_value(event).unwrap())
        .await
}

/// A kube-apiserver with an etcd for Events that begins in an epoch.
struct SeedWithEvents {
    client: Client,
    _etcd: EtcdServer,
    _plane: ControlPlane,
}

async fn seed(lab: &Lab, name: &str, epoch: i64) -> SeedWithEvents {
    let volume = lab.path(name).join("new.etcd");
    let prepared = lab.prepare(&volume, epoch, &[]).await;
    assert!(prepared.success, "{}", prepared.errors);
    let etcd = EtcdServer::start(&volume).await;
    let overrides = format!("--etcd-servers-overrides=/events#{}", etcd.endpoint);
    let plane = ControlPlane::start_with(name, vec![overrides]).await.unwrap();
    SeedWithEvents {
        client: plane.admin(),
        _etcd: etcd,
        _plane: plane,
    }
}

/// Case 7, with kube-apiserver, which queries etcd for each watch of Events: there is no cache in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_watches_events_across_a_move_is_told_to_list_again() {
    let lab = Lab::new();
    let (source, destination) = tokio::join!(seed(&lab, "source", 1), seed(&lab, "destination", 2));
    create(&source.client, "before").await.unwrap();
    let events: Api<Event> = Api::all(source.client.clone());
    let listed = events.list(&ListParams::default().limit(1)).await.unwrap();
    let known = listed.metadata.resource_version.unwrap();

    let created = create(&destination.client, "after").await.unwrap();
    let events: Api<Event> = Api::all(destination.client.clone());
    let answer = testkit::timeout(PATIENCE, async {
        let mut watch = Box::pin(events.watch(&WatchParams::default(), &known).await?);
        watch.next().await.transpose()
    });
    // Without an answer within the time the client would wait for ever, and miss the Event.
    let answer = answer.await.expect("the watch is silent");
    let code = match answer {
        Ok(Some(WatchEvent::Error(refused))) | Err(kube::Error::Api(refused)) => refused.code,
        other => panic!("the watch goes on: {other:?}"),
    };
    assert_eq!(code, 410);

    // The client lists again, and watches from there.
    let listed = events.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = listed
        .items
        .iter()
        .filter_map(|e| e.metadata.name.as_deref())
        .collect();
    assert!(
        names.contains(&"after") && !names.contains(&"before"),
        "{names:?}"
    );
    let known = listed.metadata.resource_version.unwrap();
    let mut watch = Box::pin(events.watch(&WatchParams::default(), &known).await.unwrap());
    create(&destination.client, "later").await.unwrap();
    let next = testkit::timeout(PATIENCE, watch.next()).await.unwrap();
    let Some(Ok(WatchEvent::Added(event))) = next else {
        panic!("{next:?}");
    };
    assert_eq!(event.metadata.name.as_deref(), Some("later"));
    let number = |version: Option<String>| version.unwrap().parse::<u64>().unwrap();
    assert!(number(event.metadata.resource_version) > number(created.metadata.resource_version));
}
