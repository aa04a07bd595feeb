//! How many revisions a second a follower writes, beside the clients of the same etcd.
//! `hack/bench.sh follow` prints the figures.

use crate::lab::{EtcdServer, Lab, delete, noise, op_put, set_tls_provider};
use etcd_backup_restore::etcd::EtcdConfig;
use etcd_backup_restore::etcd::messages::RequestOp;
use etcd_backup_restore::follow::{Follow, FollowProgress, WindowLimits};
use futures::StreamExt;
use permit::Permit;
use std::time::{Duration, Instant};

const CLIENTS: usize = 64;

/// Mostly updates of objects, and the creation and deletion of objects, as kube-apiserver writes.
fn operations(number: usize, value: usize) -> Vec<RequestOp> {
    let content = noise(number as u64 + 1, value);
    match number % 20 {
        0 => vec![op_put(&format!("/registry/pods/new/{number}"), content, 0)],
        19 => vec![delete(&format!("/registry/pods/new/{}", number - 19))],
        _ => vec![op_put(&format!("/registry/leases/{}", number % 1000), content, 0)],
    }
}

#[allow(clippy::cast_precision_loss)]
fn rate(count: i64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// `REPOT_FOLLOW_WRITES` sets the number of writes, `REPOT_FOLLOW_LEAST_PERCENT` the least rate of the
/// follower in percent of the rate of 64 clients. An unoptimised build has no bound.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, for a machine on which nothing else runs"]
async fn how_fast_a_follower_writes() {
    set_tls_provider();
    let count = testkit::size("REPOT_FOLLOW_WRITES", 20_000).unwrap();
    let least = testkit::size("REPOT_FOLLOW_LEAST_PERCENT", 0).unwrap();
    for value in [1_000, 10_000] {
        let lab = Lab::new();
        let source = EtcdServer::start_synced(&lab.path("source")).await;
        let begun = Instant::now();
        let writes = futures::stream::iter(0..count)
            .map(async |number| source.client.txn(operations(number, value)).await.unwrap());
        writes.buffer_unordered(CLIENTS).collect::<Vec<_>>().await;
        let clients = begun.elapsed();
        let revision = source.client.revision().await.unwrap();
        let local = EtcdServer::start_synced(&lab.path("local")).await;
        let config = |etcd: &EtcdServer| {
            EtcdConfig::plain(
                etcd.endpoint.clone(),
                Duration::from_secs(60),
                Permit::sole("a measurement"),
            )
        };
        let follow = Follow {
            local: config(&local),
            source: config(&source),
            store: lab.store("p"),
            scratch_dir: lab.path("scratch"),
            limits: WindowLimits {
                transactions: 128,
                alternatives: 8,
                transaction_bytes: 32 * 1024,
                bytes: 16 << 20,
            },
            max_watched: i64::MAX,
            max_hashed: u64::MAX,
            delta_timeout: Duration::from_secs(60),
            maintenance_period: Duration::from_secs(60),
            until: Some(revision),
            progress: FollowProgress::default(),
        };
        let begun = Instant::now();
        follow.run().await.unwrap();
        let followed = begun.elapsed();
        let (clients, followed) = (rate(revision - 1, clients), rate(revision - 1, followed));
        let percent = 100.0 * followed / clients;
        println!("bench: | {value} bytes | {clients:.0} | {followed:.0} | {percent:.0} % |");
        assert_eq!(source.history(), local.history());
        #[allow(clippy::cast_precision_loss)]
        let least = least as f64;
        assert!(percent >= least, "{percent:.0} % of the rate of the clients");
    }
}
