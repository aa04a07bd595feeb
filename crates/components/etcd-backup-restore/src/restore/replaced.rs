//! The data directory that a restore has replaced: the last resort until etcd serves from the restored data.

use super::data_dir;
use crate::etcd::EtcdConfig;
use std::path::Path;
use std::time::Duration;

/// How often etcd is polled. A poll costs a read; etcd's start may take long.
const ASK: Duration = Duration::from_secs(2);

/// Removes the replaced directory once etcd answers a linearizable read, after its quorum agreed on its whole
/// log.
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
