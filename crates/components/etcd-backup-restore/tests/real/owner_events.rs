//! The etcd with the Events: clients are served as long as clients of etcd-main, and a failure harms no
//! client of etcd-main.

use crate::lab::{EPOCH, EtcdServer, Stay, Writer, eventually, now, op_put};
use crate::owner::was_fenced_in_time;
use etcd_backup_restore::etcd::EtcdConfig;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{Api, Client, api::PostParams};
use permit::Permit;
use serde_json::json;
use std::io::ErrorKind;
use std::time::Duration;
use testkit::ControlPlane;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Longer than kube-apiserver took to acknowledge an Event without etcd-main (10 ms), on a machine that is
/// busy.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The etcd with the Events, by a name as in a cluster.
async fn events_etcd(folder: &std::path::Path) -> (EtcdServer, String) {
    let etcd = EtcdServer::start(folder).await;
    let target = etcd.endpoint.replace("http://127.0.0.1", "localhost");
    (etcd, target)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_shoot_acknowledges_nothing_to_clients_of_the_etcd_with_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let (events, target) = events_etcd(folder.path()).await;
    let (stay, gate) = Stay::with_events(&target).await;
    let [writer, beside] = [gate.clone(), stay.gate.clone()].map(Writer::start);
    writer.goes_on().await;
    beside.goes_on().await;
    let config = EtcdConfig::plain(gate.clone(), Duration::from_secs(30), Permit::sole("a test"));
    let kept = config.connect().await.unwrap();
    kept.txn(vec![op_put("/kept", "1", 0)]).await.unwrap();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    let changed = now();
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.settled().await;
    was_fenced_in_time(&acknowledged, changed);
    was_fenced_in_time(&beside.settled().await, changed);
    // The etcd with the Events itself is healthy.
    events.client.txn(vec![op_put("/direct", "1", 0)]).await.unwrap();
    kept.txn(vec![op_put("/kept-after", "1", 0)]).await.unwrap_err();
    let refused = TcpStream::connect(gate.trim_start_matches("http://")).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(writer.acknowledged().len(), acknowledged.len());
    let stored = EtcdServer::keys(&events.endpoint).await;
    assert!(stored.contains(&b"/kept"[..]) && !stored.contains(&b"/kept-after"[..]));
    stay.hands_over(&beside.acknowledged()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_with_events_that_cannot_be_reached_harms_no_client_of_etcd() {
    // A name that does not exist, and an address that does not answer.
    for target in ["etcd-events-client.invalid:2379", "192.0.2.1:2379"] {
        let (stay, gate) = Stay::patient_with_events(target).await;
        let writer = Writer::start(stay.gate.clone());
        writer.goes_on().await;
        let starts = stay.starts();
        // More clients than the gate for Events takes.
        let mut flood = JoinSet::new();
        for _ in 0..300 {
            let address = gate.trim_start_matches("http://").to_owned();
            flood.spawn(async move {
                let mut client = TcpStream::connect(address).await?;
                tokio::io::copy(&mut client, &mut tokio::io::sink()).await
            });
        }
        eventually("clients of the etcd with the Events are cut", async || {
            let text = stay.server().text("/metrics").await.1;
            let broken = "etcdbr_events_gate_connections_total{result=\"broken\"}";
            text.contains(broken).then_some(())
        })
        .await;
        writer.goes_on().await;
        assert!(stay.is_ready().await, "{target}: {}", stay.ownership().await);
        assert_eq!(stay.starts(), starts, "{target}: etcd was told to end");
        let refused = stay.server().text("/metrics").await.1;
        assert!(
            !refused.contains("etcdbr_gate_connections_total{result=\"refused\"}"),
            "{target}: {refused}"
        );
    }
}

async fn event(api: &Client, name: &str) -> Option<kube::Result<Event>> {
    let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "reason": "Test", "type": "Normal"});
    let event = serde_json::from_value(event).unwrap();
    let api: Api<Event> = Api::namespaced(api.clone(), "default");
    testkit::timeout(ANSWERED_WITHIN, api.create(&PostParams::default(), &event))
        .await
        .ok()
}

/// Without the gate kube-apiserver acknowledges Events for as long as the process runs (decision 36). Here
/// etcd-main is not behind the gate, so that no other part of kube-apiserver can be the reason that an Event
/// is not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_acknowledges_no_event_after_the_fence() {
    let folder = tempfile::tempdir().unwrap();
    let (events, target) = events_etcd(folder.path()).await;
    let (stay, gate) = Stay::with_events(&target).await;
    let overrides = format!("--etcd-servers-overrides=/events#{gate}");
    let plane = ControlPlane::start_with("events", vec![overrides]).await.unwrap();
    let kept = plane.admin();
    event(&kept, "before").await.unwrap().unwrap();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    let fresh = plane.client("other", &["system:masters"]).await.unwrap();
    for (client, name) in [(&kept, "kept"), (&fresh, "fresh")] {
        let answer = event(client, name).await;
        assert!(
            !matches!(answer, Some(Ok(_))),
            "{name} was acknowledged: {answer:?}"
        );
        // kube-apiserver itself is healthy.
        let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let stored = EtcdServer::keys(&events.endpoint).await;
    let has = |name: &str| stored.contains(format!("/registry/events/default/{name}").as_bytes());
    assert!(has("before") && !has("kept") && !has("fresh"));
}
