//! Memory does not grow with the database.

use crate::lab::{EtcdServer, Lab, Server, noise};
use std::time::Instant;

/// Bound of each process in MiB. `etcdctl snapshot save` needs 33 for the same.
const BOUND: u64 = 48;
/// How much more a database of ten times the size may need, in MiB.
const GROWTH: u64 = 12;

/// MiB, and seconds.
type Cost = (u64, f32);

struct Costs {
    server: Cost,
    copy: Cost,
    initialize: Cost,
}

async fn costs(megabytes: u32) -> Costs {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    for n in 0..megabytes {
        etcd.put(&format!("/value/{n}"), noise(u64::from(n) + 1, 1024 * 1024))
            .await;
    }
    let server = Server::start(&lab, "from", &etcd.endpoint, &["--compression-policy=zstd"]).await;
    for n in 0..megabytes / 10 {
        etcd.put(&format!("/delta/{n}"), vec![1; 1024 * 1024]).await;
    }
    server.snapshot("/snapshot/delta").await;
    // Apart from the first delta, which the start of the server may have taken.
    let begun = Instant::now();
    let full = server.snapshot("/snapshot/full").await;
    let full_took = begun.elapsed().as_secs_f32();
    std::fs::remove_file(lab.object("from", &full)).unwrap();
    let begun = Instant::now();
    let copy = lab.copy("from", "to", &[]).await;
    let copy_took = begun.elapsed().as_secs_f32();
    assert!(copy.success, "{}", copy.errors);
    etcd.stop();
    let begun = Instant::now();
    let initialize = lab.initialize("to", &lab.path("volume/new.etcd"), &[]).await;
    assert!(initialize.success, "{}", initialize.errors);
    Costs {
        server: (server.peak() / 1024, full_took),
        copy: (copy.peak / 1024, copy_took),
        initialize: (initialize.peak / 1024, begun.elapsed().as_secs_f32()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_times_the_data_needs_no_more_memory() {
    let (small, large) = (costs(20).await, costs(200).await);
    for (what, small, large) in [
        ("server", small.server, large.server),
        ("copy", small.copy, large.copy),
        ("initialize", small.initialize, large.initialize),
    ] {
        println!(
            "{what}: {} MiB and {:.1} s for 20 MB, {} MiB and {:.1} s for 200 MB",
            small.0, small.1, large.0, large.1
        );
        assert!(large.0 <= BOUND, "{what} needs {} MiB", large.0);
        assert!(
            large.0 <= small.0 + GROWTH,
            "{what} needs {} MiB for 20 MB and {} MiB for 200 MB",
            small.0,
            large.0
        );
    }
}
