//! Writes to the shoot without pause, like a user's program, and records every acknowledged write.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use anyhow::Result;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{Api, Client, Resource, ResourceExt, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::shoot::UserShoot;

/// A write that the API acknowledged.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    /// Number of the write; the object is `written-<number>`.
    pub number: u64,
    /// The resourceVersion from the API.
    pub version: u64,
    /// When the attempt that was acknowledged was sent.
    pub sent: Instant,
    /// When the acknowledgement was read. A test that stands still reads late: only `sent` proves that a
    /// write was late.
    pub at: Instant,
}

/// The observations of a writer.
#[derive(Debug, Default)]
pub struct Book {
    /// All acknowledged writes, in order.
    pub writes: Vec<Acknowledged>,
    /// Writes that failed and were tried again.
    pub failures: u64,
}

impl Book {
    /// The longest time between two acknowledgements: the time without writes to the API.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        let gaps = self
            .writes
            .windows(2)
            .map(|pair| pair[1].at.duration_since(pair[0].at));
        gaps.max().unwrap_or_default()
    }

    /// Beginning and end of that time.
    #[must_use]
    pub fn longest_gap_between(&self) -> Option<(Instant, Instant)> {
        self.writes
            .windows(2)
            .map(|pair| (pair[0].at, pair[1].at))
            .max_by_key(|(from, to)| to.duration_since(*from))
    }

    /// resourceVersions that did not grow (I: a resourceVersion never decreases).
    #[must_use]
    pub fn versions_that_went_back(&self) -> Vec<(u64, u64)> {
        let pairs = self
            .writes
            .windows(2)
            .map(|pair| (pair[0].version, pair[1].version));
        pairs.filter(|(before, after)| after <= before).collect()
    }

    /// Acknowledged writes that the shoot does not have.
    pub async fn lost(&self, shoot: &Client) -> Result<Vec<u64>> {
        let objects = Api::<ConfigMap>::default_namespaced(shoot.clone())
            .list(&kube::api::ListParams::default())
            .await?;
        let names: std::collections::HashSet<String> = objects.iter().map(ResourceExt::name_any).collect();
        Ok(self
            .writes
            .iter()
            .map(|write| write.number)
            .filter(|n| !names.contains(&name_of(*n)))
            .collect())
    }
}

fn name_of(number: u64) -> String {
    format!("written-{number}")
}

/// A writer at work.
pub struct Writer {
    stop: CancellationToken,
    /// Whether a write was acknowledged.
    begun: watch::Receiver<bool>,
    work: JoinHandle<Book>,
}

impl Writer {
    /// Starts writing. `first` is the number of the first write.
    #[must_use]
    pub fn start(shoot: UserShoot, first: u64) -> Self {
        Self::begin(Road::ByName(Box::new(shoot)), first)
    }

    /// A writer that never queries DNS again: the writer stays with the address of the client.
    #[must_use]
    pub fn staying(client: Client, first: u64) -> Self {
        Self::begin(Road::Staying(client), first)
    }

    /// As [`Self::staying`], but writes Events: etcd-events is separate from the etcd of ConfigMaps.
    #[must_use]
    pub fn of_events(client: Client, first: u64) -> Self {
        Self::begin(Road::Events(client), first)
    }

    #[allow(clippy::disallowed_methods)] // a test program, outside of any guard
    fn begin(road: Road, first: u64) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (tell, begun) = watch::channel(false);
        Self {
            stop,
            begun,
            work: tokio::spawn(async move { write(road, first, stopped, tell).await }),
        }
    }

    /// Waits for the first acknowledgement.
    pub async fn has_begun(&mut self) -> Result<()> {
        self.begun.wait_for(|begun| *begun).await?;
        Ok(())
    }

    /// Stops after the write in flight, and gives the book.
    pub async fn stop(self) -> Result<Book> {
        self.stop.cancel();
        Ok(self.work.await?)
    }
}

/// The writer's route to the shoot's API.
enum Road {
    /// Queries DNS at the start and after each failure.
    ByName(Box<UserShoot>),
    Staying(Client),
    /// As `Staying`, and the objects are Events.
    Events(Client),
}

impl Road {
    async fn client(&self) -> Option<Client> {
        match self {
            Self::ByName(shoot) => shoot.client().await.ok(),
            Self::Staying(client) | Self::Events(client) => Some(client.clone()),
        }
    }
}

async fn write(road: Road, first: u64, stopped: CancellationToken, begun: watch::Sender<bool>) -> Book {
    let mut book = Book::default();
    let mut client = None;
    let mut number = first;
    while !stopped.is_cancelled() {
        if client.is_none() {
            client = road.client().await;
        }
        let sent = Instant::now();
        let outcome = match &client {
            Some(client) if matches!(road, Road::Events(_)) => create::<Event>(client, number).await,
            Some(client) => create::<ConfigMap>(client, number).await,
            None => None,
        };
        if let Some(version) = outcome {
            book.writes.push(Acknowledged {
                number,
                version,
                sent,
                at: Instant::now(),
            });
            number += 1;
            begun.send_replace(true);
        } else {
            book.failures += 1;
            // A new client asks DNS again.
            client = None;
        }
        // The pace of the writer: fine enough for the figure, slow enough not to be a load test.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    book
}

/// Creates an object. An existing object was written by an attempt whose answer was lost: a read counts as
/// the acknowledgement.
async fn create<K>(client: &Client, number: u64) -> Option<u64>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
{
    let api = Api::<K>::default_namespaced(client.clone());
    // A field that the kind does not have is left out.
    let object: K = serde_json::from_value(json!({
        "metadata": {"name": name_of(number)}, "data": {"number": number.to_string()},
        "involvedObject": {"namespace": client.default_namespace()}, "reason": "Written", "type": "Normal",
    }))
    .ok()?;
    let attempt = async {
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(&name_of(number)).await,
            other => other,
        }
    };
    let created = tokio::time::timeout(Duration::from_secs(2), attempt)
        .await
        .ok()?
        .ok()?;
    created.resource_version()?.parse().ok()
}
