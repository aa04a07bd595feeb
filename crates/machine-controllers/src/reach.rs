//! Whether the shoot's API answers, and for how long. While the API does not answer, the health of machines
//! is unknown, so that no machine is judged (gardener/machine-controller-manager#718). Kubelets could not
//! report in this time either. So all bounds on unhealthiness count from the moment in which the API answered
//! again.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use runtime::{Cluster as _, Error, Result, Shoot};
use tokio::time::Instant;

/// How long an answer may take. Not longer than the time between two looks, but as long as a busy server may
/// take.
const ANSWERS_WITHIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// How long a write to the shoot's API may take. Without a bound a silent API holds up the Machine, and the
/// status of the Machine does not name the silent API.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Bounds a write to the shoot's API.
pub async fn bounded_write<T>(write: impl Future<Output = Result<T>>) -> Result<T> {
    let written = tokio::time::timeout(WRITTEN_WITHIN, write).await;
    written.unwrap_or_else(|_| {
        Err(Error::transient(format!(
            "the shoot's API does not answer a write within {WRITTEN_WITHIN:?}"
        )))
    })
}

/// The reachability of the shoot's API.
pub struct Reach {
    nodes: Api<Node>,
    ask_every: Duration,
    answers_within: Duration,
    answers: Mutex<Option<Answers>>,
}

#[derive(Clone, Copy)]
struct Answers {
    since: Instant,
    last: Instant,
}

impl Reach {
    /// The API is asked at most so often, however many want to know.
    pub fn new(shoot: &Shoot, ask_every: Duration) -> Self {
        Self {
            nodes: shoot.cluster_wide(),
            ask_every,
            answers_within: ask_every.clamp(ANSWERS_WITHIN.0, ANSWERS_WITHIN.1),
            answers: Mutex::default(),
        }
    }

    /// The time for which the API has answered without a break. Refused while the API does not answer.
    pub async fn answers_for(&self) -> Result<Duration> {
        let now = Instant::now();
        let known = *self.lock();
        if let Some(known) = known
            && now - known.last < self.ask_every
        {
            return Ok(now - known.since);
        }
        let one = ListParams::default().limit(1);
        match tokio::time::timeout(self.answers_within, self.nodes.list_metadata(&one)).await {
            Ok(Ok(_)) => Ok(self.answered()),
            Ok(Err(error)) => Err(self.silent(&error.to_string())),
            Err(_) => Err(self.silent(&format!("no answer within {:?}", self.answers_within))),
        }
    }

    /// The Node, read live instead of from the cache.
    pub async fn node(&self, name: &str) -> Result<Option<Node>> {
        match tokio::time::timeout(self.answers_within, self.nodes.get_opt(name)).await {
            Ok(Ok(node)) => {
                self.answered();
                Ok(node)
            }
            Ok(Err(error)) => Err(self.silent(&error.to_string())),
            Err(_) => Err(self.silent(&format!("no answer within {:?}", self.answers_within))),
        }
    }

    fn answered(&self) -> Duration {
        let now = Instant::now();
        let mut answers = self.lock();
        let since = match *answers {
            // After a long time without a call, the time in between is unknown.
            Some(known) if now - known.last <= 3 * (self.ask_every + self.answers_within) => known.since,
            _ => now,
        };
        *answers = Some(Answers { since, last: now });
        now - since
    }

    fn silent(&self, why: &str) -> Error {
        *self.lock() = None;
        Error::not_ready(
            self.ask_every,
            format!("the shoot's API does not answer, so that no machine is judged or deleted: {why}"),
        )
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Answers>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
