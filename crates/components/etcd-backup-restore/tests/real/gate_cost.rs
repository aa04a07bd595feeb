//! What a request costs at the gate that forwards HTTP/2, beside the gate that forwards bytes.
//! `hack/bench.sh gate` prints the figures.

use crate::http2_gate::SecureEtcd;
use crate::lab::{Lab, op_put, set_tls_provider};
use etcd_backup_restore::etcd::Etcd;
use etcd_backup_restore::owner::Gate;
use permit::Permit;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Watches are compared in blocks: an event would otherwise reach both watches at once.
const BLOCK: usize = 50;
const KEYS: i64 = 500;

/// A gate with threads of its own, as in its process.
struct MeasuredGate {
    name: &'static str,
    address: SocketAddr,
    _running: JoinSet<()>,
    _runtime: Runtime,
}

impl MeasuredGate {
    fn start(name: &'static str, gate: Gate) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(name)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(gate.bind()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut running = JoinSet::new();
        let forwarding = async move { gate.forward(listener, &Permit::sole("a measurement")).await };
        running.spawn_on(forwarding, runtime.handle());
        Self {
            name,
            address,
            _running: running,
            _runtime: runtime,
        }
    }

    /// Time on a processor of the gate's threads.
    fn processor_time(&self) -> Duration {
        let mut total = 0;
        for thread in fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap().path();
            if fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == self.name) {
                let times = fs::read_to_string(thread.join("schedstat")).unwrap();
                total += times.split_whitespace().next().unwrap().parse::<u64>().unwrap();
            }
        }
        Duration::from_nanos(total)
    }
}

/// The durations of a kind of request at both gates, in pairs.
struct Comparison {
    request: &'static str,
    pairs: Vec<[Duration; 2]>,
    processor: [Duration; 2],
}

fn median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort();
    values[values.len() / 2]
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap()
}

impl Comparison {
    fn more(&self) -> i128 {
        median(
            self.pairs
                .iter()
                .map(|[bytes, http2]| nanos(*http2) - nanos(*bytes)),
        )
    }

    #[allow(clippy::cast_precision_loss)]
    fn print(&self) {
        let milliseconds = |nanos: i128| nanos as f64 / 1e6;
        let of = |gate: usize| milliseconds(nanos(median(self.pairs.iter().map(|pair| pair[gate]))));
        let processor = self
            .processor
            .map(|time| milliseconds(nanos(time)) / self.pairs.len() as f64);
        println!(
            "bench: | {} | {} | {:.3} ms | {:.3} ms | {:+.3} ms | {:.3} ms | {:.3} ms |",
            self.request,
            self.pairs.len(),
            of(0),
            of(1),
            milliseconds(self.more()),
            processor[0],
            processor[1]
        );
    }
}

/// Measures a request at both gates in turn; the first gate of a pair alternates.
async fn compare(
    request: &'static str,
    count: usize,
    gates: [&MeasuredGate; 2],
    measure: impl AsyncFn(usize) -> Duration,
) -> Comparison {
    for number in 0..count / 10 {
        measure(number % 2).await;
    }
    let before = gates.map(MeasuredGate::processor_time);
    let mut pairs = Vec::new();
    for number in 0..count {
        let first = number % 2;
        let mut pair = [Duration::ZERO; 2];
        for gate in [first, 1 - first] {
            pair[gate] = measure(gate).await;
        }
        pairs.push(pair);
    }
    let after = gates.map(MeasuredGate::processor_time);
    Comparison {
        request,
        pairs,
        processor: [0, 1].map(|gate| after[gate].saturating_sub(before[gate])),
    }
}

/// From the begin of a write past the gates to the event at the watch.
async fn compare_watches(
    count: usize,
    gates: [&MeasuredGate; 2],
    clients: &[Etcd; 2],
    direct: &Etcd,
) -> Comparison {
    let mut durations = [Vec::new(), Vec::new()];
    let mut processor = [Duration::ZERO; 2];
    for block in 0..2 * count.div_ceil(BLOCK) {
        // Old, new, new, old.
        let gate = [0, 1, 1, 0][block % 4];
        let revision = direct.revision().await.unwrap();
        let mut watch = clients[gate].watch(revision + 1).await.unwrap();
        // The answer to the creation of the watch.
        watch.next().await.unwrap();
        let before = gates[gate].processor_time();
        for _ in 0..BLOCK {
            let begun = Instant::now();
            direct.txn(vec![op_put("/watched", "x", 0)]).await.unwrap();
            while watch.next().await.unwrap().events.is_empty() {}
            durations[gate].push(begun.elapsed());
        }
        processor[gate] += gates[gate].processor_time().saturating_sub(before);
    }
    let [bytes, http2] = durations;
    let pairs = bytes.into_iter().zip(http2).map(|(bytes, http2)| [bytes, http2]);
    Comparison {
        request: "watch event",
        pairs: pairs.collect(),
        processor,
    }
}

/// `REPOT_GATE_REQUESTS` sets the number of requests, `REPOT_GATE_MOST_MICROSECONDS` the time that the gate
/// for HTTP/2 may add to the median. An unoptimised build has no bound.
#[test]
#[ignore = "a measurement, for a machine on which nothing else runs"]
fn what_a_request_costs_at_each_gate() {
    set_tls_provider();
    let count = testkit::size("REPOT_GATE_REQUESTS", 2000).unwrap();
    let lab = Lab::new();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let secure = runtime.block_on(SecureEtcd::start(&lab));
    let gates = [("gate-tcp", false), ("gate-http2", true)]
        .map(|(name, is_http2)| MeasuredGate::start(name, secure.gate(is_http2)));
    let gates = [&gates[0], &gates[1]];
    let comparisons = runtime.block_on(async {
        let direct = &secure.etcd.client;
        let connect = async |gate: &MeasuredGate| secure.client_of(gate.address).connect().await.unwrap();
        let clients = [connect(gates[0]).await, connect(gates[1]).await];
        for number in 0..KEYS {
            let value = crate::lab::noise(1, 1000);
            direct
                .txn(vec![op_put(&format!("/range/{number:03}"), value, 0)])
                .await
                .unwrap();
        }
        let put = compare("put", count, gates, async |gate| {
            let begun = Instant::now();
            let change = vec![op_put("/put", vec![7; 1000], 0)];
            clients[gate].txn(change).await.unwrap();
            begun.elapsed()
        });
        let range = async |gate: usize| {
            let begun = Instant::now();
            let (found, _) = clients[gate].page(b"/range/", KEYS).await.unwrap();
            assert_eq!(found.len(), 500);
            begun.elapsed()
        };
        let put = put.await;
        let range = compare("range of 500 keys of 1 KB", count, gates, range).await;
        [put, range, compare_watches(count, gates, &clients, direct).await]
    });
    for comparison in &comparisons {
        comparison.print();
    }
    let most = testkit::size("REPOT_GATE_MOST_MICROSECONDS", 1_000_000).unwrap();
    let most = nanos(Duration::from_micros(most.try_into().unwrap()));
    for comparison in comparisons {
        let more = comparison.more();
        assert!(more <= most, "{}: {more} ns more", comparison.request);
    }
}
