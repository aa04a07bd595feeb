//! Requests to the garden, each with a bound.

use std::time::Duration;

use api::gardencore::{Seed, Shoot};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::client::{Cluster, Garden};

use crate::failure::Failure;

/// Shoots in an answer of the garden. A Shoot may have 1.5 MB, and the bound of a request is for the whole
/// answer.
const PAGE: u32 = 10;

/// A connection to the garden, with the namespace of the caller.
#[derive(Clone, Debug)]
pub struct Session {
    garden: Garden,
    namespace: String,
    request_within: Duration,
    silence: SilenceTimes,
}

/// When the silence of a seed is reported.
#[derive(Clone, Copy, Debug)]
pub struct SilenceTimes {
    /// The time without a new state. A gardenlet reports at most every 5 s within a step, so the default is
    /// much longer.
    pub after: Duration,
    /// Pause between two checks of the silence. Shorter than `after`.
    pub poll_interval: Duration,
}

impl Default for SilenceTimes {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(60),
            poll_interval: Duration::from_secs(15),
        }
    }
}

/// A Seed, as far as the caller may read the Seed. Users of shoots often have no right to read Seeds.
#[derive(Clone, Debug)]
pub enum SeedReading {
    /// The Seed was read.
    Read(Box<Seed>),
    /// No Seed has the name.
    Missing,
    /// The Seed cannot be read, with the reason.
    Unreadable(String),
}

impl SeedReading {
    /// The Seed, if the Seed was read.
    #[must_use]
    pub fn seed(&self) -> Option<&Seed> {
        match self {
            Self::Read(seed) => Some(seed),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

impl Session {
    /// `request_within` bounds each request.
    #[must_use]
    pub fn new(garden: Garden, namespace: impl Into<String>, request_within: Duration) -> Self {
        Self {
            garden,
            namespace: namespace.into(),
            request_within,
            silence: SilenceTimes::default(),
        }
    }

    /// With different times for the report of a seed that hangs, for tests.
    #[must_use]
    pub fn with_silence_times(self, silence: SilenceTimes) -> Self {
        Self { silence, ..self }
    }

    /// When the silence of a seed is reported.
    #[must_use]
    pub fn silence_times(&self) -> SilenceTimes {
        self.silence
    }

    /// The garden.
    #[must_use]
    pub fn garden(&self) -> &Garden {
        &self.garden
    }

    /// The namespace of the caller.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Shoots of a namespace.
    #[must_use]
    pub fn shoots(&self, namespace: &str) -> Api<Shoot> {
        self.garden.namespaced(namespace)
    }

    /// Sends a request. `doing` names the failed action in an error.
    pub async fn request<T>(
        &self,
        doing: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        let answer = tokio::time::timeout(self.request_within, request).await;
        let answer = answer.map_err(|_| Failure::from_timeout(doing, self.request_within))?;
        answer.map_err(|error| Failure::from_request(doing, &error))
    }

    /// Sends a write with a precondition. `None`: a concurrent edit came first.
    pub async fn write<T>(
        &self,
        doing: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<Option<T>, Failure> {
        match tokio::time::timeout(self.request_within, request).await {
            Err(_) => Err(Failure::failed(format!(
                "{doing}: the garden does not answer within {} s, and may have accepted the request; check with `kubectl repot status`",
                self.request_within.as_secs()
            ))),
            Ok(Err(kube::Error::Api(status))) if status.is_conflict() => Ok(None),
            Ok(Err(error)) => Err(Failure::from_request(doing, &error)),
            Ok(Ok(written)) => Ok(Some(written)),
        }
    }

    /// Reads a Shoot.
    pub async fn shoot(&self, namespace: &str, name: &str) -> Result<Shoot, Failure> {
        let shoots = self.shoots(namespace);
        self.request(
            &format!("Shoot {namespace}/{name} cannot be read"),
            shoots.get(name),
        )
        .await
    }

    /// Reads a Shoot. `None` if no Shoot has the name.
    pub async fn find_shoot(&self, namespace: &str, name: &str) -> Result<Option<Shoot>, Failure> {
        let shoots = self.shoots(namespace);
        self.request(
            &format!("Shoot {namespace}/{name} cannot be read"),
            shoots.get_opt(name),
        )
        .await
    }

    /// Whether the namespace has a Shoot.
    pub async fn has_shoots(&self, namespace: &str) -> Result<bool, Failure> {
        let shoots = self.shoots(namespace);
        let first = ListParams::default().limit(1);
        let doing = format!("the Shoots of namespace {namespace} cannot be listed");
        let list = Box::pin(self.request(&doing, shoots.list(&first))).await?;
        Ok(!list.items.is_empty())
    }

    /// Whether the Shoot was deleted after the read. `false` if the garden does not answer.
    pub async fn is_deleted(&self, read: &Shoot) -> bool {
        let (namespace, name) = (read.namespace().unwrap_or_default(), read.name_any());
        let present = Box::pin(self.find_shoot(&namespace, &name)).await;
        present.is_ok_and(|present| present.is_none_or(|present| present.uid() != read.uid()))
    }

    /// Lists the Shoots of all namespaces that the seed has (`status.seedName`).
    pub async fn shoots_on(&self, seed: &str) -> Result<Vec<Shoot>, Failure> {
        let all: Api<Shoot> = self.garden.all();
        let mut page = ListParams::default()
            .fields(&format!("status.seedName={seed}"))
            .limit(PAGE);
        let mut shoots = Vec::new();
        loop {
            let doing = "the Shoots of all namespaces cannot be listed";
            let list = Box::pin(self.request(doing, all.list(&page))).await?;
            shoots.extend(list.items);
            page.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
            if page.continue_token.is_none() {
                return Ok(shoots);
            }
        }
    }

    /// Reads a Seed as far as the caller may.
    pub async fn seed(&self, name: &str) -> Result<SeedReading, Failure> {
        let seeds: Api<Seed> = self.garden.cluster_wide();
        let doing = format!("Seed {name} cannot be read");
        let request = async {
            match seeds.get(name).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
                answer => answer.map(Some),
            }
        };
        match self.request(&doing, request).await {
            Ok(Some(seed)) => Ok(SeedReading::Read(Box::new(seed))),
            Ok(None) => Ok(SeedReading::Missing),
            Err(Failure::Refused(why)) => Ok(SeedReading::Unreadable(why)),
            Err(failure) => Err(failure),
        }
    }
}
