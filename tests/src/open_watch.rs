//! A watch that a user keeps open through the edge of a seed.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{WatchEvent, WatchParams},
};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};

/// Longer than the first events take on a busy machine.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);

/// Pause after a refused watch, before the first event.
const REOPENED_AFTER: Duration = Duration::from_millis(500);

/// An open watch, opened again for as long as that succeeds.
pub struct OpenWatch(JoinSet<Instant>);

impl OpenWatch {
    /// Opens a watch, and waits for the first event. Until then a refused watch is opened again, as the names
    /// of a new shoot may not be known yet. A client of one address does not follow DNS.
    ///
    /// # Errors
    /// No event comes.
    pub async fn begin(client: Client) -> Result<Self> {
        let (first, begun) = oneshot::channel();
        let mut watch = JoinSet::new();
        watch.spawn(until_refused(client, first));
        testkit::timeout(BEGUN_WITHIN, begun)
            .await
            .context("the watch has no event")?
            .context("the watch does not begin")?;
        Ok(Self(watch))
    }

    /// When the last watch had ended and no further watch could be opened; `None` if a watch is still open.
    #[must_use]
    pub fn ended(mut self) -> Option<Instant> {
        self.0.try_join_next()?.ok()
    }
}

async fn until_refused(client: Client, first: oneshot::Sender<()>) -> Instant {
    let maps: Api<ConfigMap> = Api::all(client);
    let mut first = Some(first);
    loop {
        match watch_once(&maps, &mut first).await {
            Ok(()) => {}
            Err(error) if first.is_some() => {
                println!("a watch could not be opened: {error:#}");
                sleep(REOPENED_AFTER).await;
            }
            Err(_) => return Instant::now(),
        }
    }
}

/// Fails where the watch cannot be opened, and ends well with an open watch.
async fn watch_once(maps: &Api<ConfigMap>, first: &mut Option<oneshot::Sender<()>>) -> Result<()> {
    let mut events = pin!(maps.watch(&WatchParams::default().timeout(290), "0").await?);
    while let Ok(Some(event)) = events.try_next().await {
        if matches!(event, WatchEvent::Error(_)) {
            break;
        }
        if let Some(first) = first.take() {
            first.send(()).ok();
        }
    }
    Ok(())
}
