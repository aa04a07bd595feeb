use etcd_backup_restore::etcd::EtcdConfig;
use permit::Permit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;

use super::{Stopwatch, eventually, now, op_put};

/// A write that was acknowledged.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    pub key: String,
    /// When the client sent the write.
    pub sent: SystemTime,
    /// When the last byte of the acknowledgement left the gate, by the date that the kernel gave that byte.
    /// The date is exact also where the client reads late. A late gate and a pause of the machine between the
    /// gate's check of the permit and the gate's write look the same; H of docs/understand/ownership.md
    /// bounds that pause.
    pub released: SystemTime,
}

impl Acknowledged {
    /// How long after a moment the write was sent, and acknowledged.
    pub fn since(&self, moment: SystemTime) -> [Duration; 2] {
        [self.sent, self.released].map(|date| date.duration_since(moment).unwrap_or_default())
    }
}

/// Writes keys in sequence, through a stopwatch before the gate, and records the acknowledged writes.
pub struct Writer {
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    /// Number of failed connections or writes.
    failed: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Writer {
    pub fn start(endpoint: String) -> Self {
        let acknowledged = Arc::<Mutex<Vec<_>>>::default();
        let failed = Arc::<AtomicUsize>::default();
        let (kept, failures) = (acknowledged.clone(), failed.clone());
        let stopwatch = Stopwatch::before(endpoint);
        let endpoint = stopwatch.endpoint.clone();
        let newest = stopwatch.newest();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let config = EtcdConfig::plain(endpoint, Duration::from_secs(2), Permit::sole("a test"));
            for number in 0_u64.. {
                let Ok(client) = config.connect().await else {
                    failures.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                for more in 0_u64.. {
                    let key = format!("/written/{number}/{more}");
                    let sent = now();
                    if client.txn(vec![op_put(&key, "x", 0)]).await.is_err() {
                        failures.fetch_add(1, Ordering::SeqCst);
                        break;
                    }
                    // The client has a single pending request: the newest byte is the acknowledgement's.
                    let released = *newest.lock().unwrap();
                    kept.lock().unwrap().push(Acknowledged { key, sent, released });
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
        Self {
            acknowledged,
            failed,
            _task: task,
        }
    }

    /// All writes acknowledged until now.
    pub fn acknowledged(&self) -> Vec<Acknowledged> {
        let kept = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Returns the acknowledged writes after writes have stopped: waits until an attempt that began after
    /// this call has failed.
    pub async fn settled(&self) -> Vec<Acknowledged> {
        let failed = self.failed.load(Ordering::SeqCst);
        eventually("an attempt that began now has failed", async || {
            (self.failed.load(Ordering::SeqCst) > failed + 1).then_some(())
        })
        .await;
        self.acknowledged()
    }

    /// Waits for further acknowledgements.
    pub async fn goes_on(&self) {
        let before = self.acknowledged().len();
        eventually("writes are acknowledged", async || {
            (self.acknowledged().len() > before + 10).then_some(())
        })
        .await;
    }
}
