//! The data directory that a restore has replaced: the last resort until etcd serves from what was restored.

use super::data_dir;
use crate::etcd::EtcdConfig;
use std::path::Path;
use std::time::Duration;

/// How often etcd is asked. It costs one read; what is waited for may take as long as etcd takes to start.
const ASK: Duration = Duration::from_secs(2);

/// Removes it once etcd answers a read, which it does after its quorum agreed on everything in its log.
pub async fn remove_replaced(data_dir: &Path, etcd: &EtcdConfig) {
    let replaced = data_dir::replaced(data_dir);
    let mut asks = tokio::time::interval(ASK);
    while replaced.exists() {
        asks.tick().await;
        let served = match etcd.connect().await {
            Ok(client) => client.revision().await,
            Err(e) => Err(e),
        };
        match served {
            Err(error) => tracing::debug!(%error, "etcd does not serve yet"),
            Ok(revision) => match data_dir::remove(&replaced) {
                Ok(()) => tracing::info!(
                    revision,
                    "etcd serves; the data that a restore replaced are removed"
                ),
                Err(error) => {
                    tracing::warn!(%error, "the data that a restore replaced cannot be removed yet");
                }
            },
        }
    }
}
