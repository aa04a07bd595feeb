use etcd_backup_restore::etcd::EtcdConfig;
use permit::Permit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use super::{eventually, put};

/// Writes one key after the other, through whatever it was given, and remembers what was acknowledged.
pub struct Writer {
    acknowledged: Arc<Mutex<Vec<(String, Instant)>>>,
    /// How often it could not connect, or write.
    failed: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Writer {
    pub fn start(endpoint: String) -> Self {
        let acknowledged = Arc::<Mutex<Vec<_>>>::default();
        let failed = Arc::<AtomicUsize>::default();
        let (kept, failures) = (acknowledged.clone(), failed.clone());
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
                    let sent = Instant::now();
                    if client.txn(vec![put(&key, "x", 0)]).await.is_err() {
                        failures.fetch_add(1, Ordering::SeqCst);
                        break;
                    }
                    kept.lock().unwrap().push((key, sent));
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

    /// What was acknowledged until now, and when it was sent: a test that stands still dates no write too late.
    pub fn acknowledged(&self) -> Vec<(String, Instant)> {
        let kept = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Waits until it has looked at all that was acknowledged when nothing is any more: an attempt that began after that has failed.
    pub async fn settled(&self) -> Vec<(String, Instant)> {
        let failed = self.failed.load(Ordering::SeqCst);
        eventually("an attempt that began now has failed", async || {
            (self.failed.load(Ordering::SeqCst) > failed + 1).then_some(())
        })
        .await;
        self.acknowledged()
    }

    /// Waits for so many more.
    pub async fn goes_on(&self) {
        let before = self.acknowledged().len();
        eventually("writes are acknowledged", async || {
            (self.acknowledged().len() > before + 10).then_some(())
        })
        .await;
    }
}
