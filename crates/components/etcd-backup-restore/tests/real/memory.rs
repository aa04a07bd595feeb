//! Memory does not grow with the database.

use crate::lab::{EtcdServer, Lab, Ran, Server, noise};
use std::time::Instant;

/// Bound of each process in MiB. `etcdctl snapshot save` needs 33 for the same.
const BOUND: u64 = 48;
/// How much more a database of ten times the size may need, in MiB.
const GROWTH: u64 = 12;

/// MiB, and seconds.
type Cost = (u64, f32);

/// The measured commands.
const WHAT: [&str; 3] = ["server", "copy", "initialize"];
/// How often the small database is measured again at most, each time by several runs.
const MORE: usize = 4;

/// The highest peak of several runs. If the test gets no CPU time near the end of a process, the process's
/// measured peak is too low; never too high.
async fn most(runs: u8, mut run: impl AsyncFnMut(u8) -> Ran) -> Cost {
    let mut most = (0, 0.0);
    for n in 0..runs {
        let begun = Instant::now();
        let ran = run(n).await;
        assert!(ran.success, "{}", ran.errors);
        most = (ran.peak.max(most.0), begun.elapsed().as_secs_f32());
    }
    (most.0 / 1024, most.1)
}

/// `runs`: of processes that end.
async fn costs(megabytes: u32, runs: u8) -> [Cost; 3] {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    for n in 0..megabytes {
        etcd.put_key(&format!("/value/{n}"), noise(u64::from(n) + 1, 1024 * 1024))
            .await;
    }
    let server = Server::start(&lab, "from", &etcd.endpoint, &["--compression-policy=zstd"]).await;
    for n in 0..megabytes / 10 {
        etcd.put_key(&format!("/delta/{n}"), vec![1; 1024 * 1024]).await;
    }
    server.snapshot("/snapshot/delta").await;
    // Without the first delta, which the start of the server may have taken.
    let begun = Instant::now();
    let full = server.snapshot("/snapshot/full").await;
    let full_took = begun.elapsed().as_secs_f32();
    std::fs::remove_file(lab.object("from", &full)).unwrap();
    let copy = most(runs, async |n| lab.copy("from", &format!("to-{n}"), &[]).await).await;
    etcd.stop();
    let initialize = most(runs, async |n| {
        let data = lab.path(&format!("volume-{n}/new.etcd"));
        lab.initialize("to-0", &data, &[]).await
    })
    .await;
    [(server.peak() / 1024, full_took), copy, initialize]
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_times_the_data_needs_no_more_memory() {
    let (mut small, large) = (costs(20, 3).await, costs(200, 1).await);
    // A single low measurement of the small database would make the large database seem to need much more.
    for _ in 0..MORE {
        if small
            .iter()
            .zip(&large)
            .all(|(small, large)| large.0 <= small.0 + GROWTH)
        {
            break;
        }
        for (known, new) in small.iter_mut().zip(costs(20, 3).await) {
            known.0 = known.0.max(new.0);
        }
    }
    for ((what, small), large) in WHAT.into_iter().zip(small).zip(large) {
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
