//! A kube-apiserver that asks clients to open a new connection now and then: `--goaway-chance`, which the
//! suite gives to each kube-apiserver of a shoot. The process is a client of many such servers.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt, future::try_join_all, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    config::KubeConfigOptions,
};
use runtime::client::{Connection, Permit};
use serde_json::json;
use testkit::ControlPlane;

/// At most 100 requests share a connection of an API server.
const WRITERS: usize = 16;
const WATCHERS: usize = 10;
/// The largest chance that a kube-apiserver takes is 2 %, so some forty connections end.
const CHANCE: &str = "--goaway-chance=0.02";
const WRITES: usize = 2000;
/// The object of the last write.
const LAST: &str = "last";
/// The ConfigMap with the certificate authority of the cluster.
const PUBLISHED_BY_KUBERNETES: &str = "kube-root-ca.crt";
/// Ten times the time on two cores, 5 s.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// "No request fails when a kube-apiserver sends clients to a new connection"
/// (docs/understand/prevented.md).
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_its_clients_away_fails_no_request() -> Result<()> {
    let plane = ControlPlane::start_with("sends-away", vec![CHANCE.to_owned()]).await?;
    let kubeconfig = plane.kubeconfig("many", &["system:masters"])?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Connection::multiplexed_to_users_cluster(config)?.client(&Permit::sole("a test"));
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let since = maps.list(&ListParams::default()).await?.metadata.resource_version;

    let watches = try_join_all((0..WATCHERS).map(|_| watch_to_the_end(&maps, since.as_deref())));
    let writes = async {
        let writes =
            stream::iter(0..WRITES).map(|number| write(&maps, format!("map-{}", number % WRITERS), number));
        let failed: Vec<kube::Error> = writes
            .buffer_unordered(WRITERS)
            .filter_map(async |written| written.err())
            .collect()
            .await;
        ensure!(
            failed.is_empty(),
            "{} of {WRITES} failed: {failed:#?}",
            failed.len()
        );
        Ok(write(&maps, LAST.to_owned(), WRITES).await?)
    };
    let both = testkit::timeout(SEEN_WITHIN, async { tokio::try_join!(watches, writes) });
    let (seen, ()) = both.await??;
    ensure!(seen.iter().all(|seen| *seen == WRITES + 1), "{seen:?}");
    Ok(())
}

/// Applies a ConfigMap with a value that only this write has.
async fn write(maps: &Api<ConfigMap>, name: String, number: usize) -> kube::Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"number": number.to_string()}});
    let params = PatchParams::apply("test").force();
    maps.patch(&name, &params, &Patch::Apply(map)).await.map(drop)
}

/// Counts the events of a single watch up to the last object.
async fn watch_to_the_end(maps: &Api<ConfigMap>, since: Option<&str>) -> Result<usize> {
    let params = WatchParams::default().timeout(290);
    let mut events = Box::pin(maps.watch(&params, since.unwrap_or("0")).await?);
    let mut seen = 0;
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(map) | WatchEvent::Modified(map)) = event? else {
            continue;
        };
        let name = map.metadata.name.unwrap_or_default();
        // The controllers of the cluster write this ConfigMap at any time after the start.
        if name == PUBLISHED_BY_KUBERNETES {
            continue;
        }
        seen += 1;
        if name == LAST {
            break;
        }
    }
    Ok(seen)
}
