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

/// How long a list of a drain may take. Longer than a busy server takes for all pods of a Node. An API that
/// falls silent during a drain otherwise holds up the Machine for as long as the connection lasts.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// Bounds a write to the shoot's API.
pub async fn bounded_write<T>(write: impl Future<Output = Result<T>>) -> Result<T> {
    bounded("a write", WRITTEN_WITHIN, write).await
}

/// Bounds a list of the shoot's API.
pub async fn bounded_list<T>(list: impl Future<Output = Result<T>>) -> Result<T> {
    bounded("a list", LISTED_WITHIN, list).await
}

async fn bounded<T>(request: &str, limit: Duration, asking: impl Future<Output = Result<T>>) -> Result<T> {
    let answered = tokio::time::timeout(limit, asking).await;
    answered.unwrap_or_else(|_| {
        Err(Error::transient(format!(
            "the shoot's API does not answer {request} within {limit:?}"
        )))
    })
}

/// The reachability of the shoot's API.
pub struct Reach {
    nodes: Api<Node>,
    ask_every: Duration,
    answers_within: Duration,
    outcomes: Mutex<Outcomes>,
}

/// The last outcomes. At most a single span is there.
#[derive(Clone, Copy, Default)]
struct Outcomes {
    answers: Option<Span>,
    silence: Option<Span>,
}

/// A time with the same outcome of every question.
#[derive(Clone, Copy)]
struct Span {
    since: Instant,
    last: Instant,
}

impl Span {
    /// The span up to `now`. After a gap longer than `most` a new span begins: the outcome in the gap is
    /// unknown.
    fn extended(span: Option<Self>, now: Instant, most: Duration) -> Self {
        let known = span.filter(|span| now - span.last <= most);
        Self {
            since: known.map_or(now, |span| span.since),
            last: now,
        }
    }
}

impl Reach {
    /// The API is asked at most so often, however many want to know.
    pub fn new(shoot: &Shoot, ask_every: Duration) -> Self {
        Self {
            nodes: shoot.cluster_wide(),
            ask_every,
            answers_within: ask_every.clamp(ANSWERS_WITHIN.0, ANSWERS_WITHIN.1),
            outcomes: Mutex::default(),
        }
    }

    /// The time for which the API has answered without a break. Refused while the API does not answer.
    pub async fn answers_for(&self) -> Result<Duration> {
        let now = Instant::now();
        let answers = self.lock().answers;
        if let Some(known) = answers
            && now - known.last < self.ask_every
        {
            return Ok(now - known.since);
        }
        let one = ListParams::default().limit(1);
        match tokio::time::timeout(self.answers_within, self.nodes.list_metadata(&one)).await {
            Ok(Ok(_)) => Ok(self.answered()),
            Ok(Err(error)) => Err(self.failed(&error)),
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
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(self.silent(&format!("no answer within {:?}", self.answers_within))),
        }
    }

    /// For how long each question is known to have had no answer; zero after an answer. The duration counts
    /// from the first question of this process.
    pub fn silent_for(&self) -> Duration {
        let silence = self.lock().silence;
        silence.map_or(Duration::ZERO, |silence| silence.last - silence.since)
    }

    fn answered(&self) -> Duration {
        let (now, mut outcomes) = (Instant::now(), self.lock());
        let answers = Span::extended(outcomes.answers, now, self.longest_gap());
        *outcomes = Outcomes {
            answers: Some(answers),
            silence: None,
        };
        now - answers.since
    }

    /// A refusal (4xx) is the answer of an API that works, and ends a silence: instances must not end without
    /// a drain because of missing rights or of throttling. An API that cannot serve (5xx) counts as silent,
    /// so that the API does not hold an isolated zone for ever.
    fn failed(&self, error: &kube::Error) -> Error {
        if !is_refusal(error) {
            return self.silent(&error.to_string());
        }
        *self.lock() = Outcomes::default();
        Error::not_ready(
            self.ask_every,
            format!(
                "the shoot's API refuses a read of Nodes, so that no machine is judged or drained: {error}"
            ),
        )
    }

    fn silent(&self, why: &str) -> Error {
        let (now, mut outcomes) = (Instant::now(), self.lock());
        *outcomes = Outcomes {
            answers: None,
            silence: Some(Span::extended(outcomes.silence, now, self.longest_gap())),
        };
        Error::not_ready(
            self.ask_every,
            format!("the shoot's API does not answer, so that no machine is judged or drained: {why}"),
        )
    }

    fn longest_gap(&self) -> Duration {
        3 * (self.ask_every + self.answers_within)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outcomes> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use http::{Request, Response};
    use kube::client::Body;
    use rstest::rstest;
    use runtime::Permit;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// The reach of a shoot whose API answers each request with this failure.
    fn reach(code: u16) -> Reach {
        let service = service_fn(move |_: Request<Body>| {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": "R", "message": "no",
            });
            let body = Body::from(status.to_string().into_bytes());
            let answer = Response::builder().status(code).body(body);
            async move { answer }
        });
        let client = kube::Client::new(service, "default");
        let shoot = Shoot::new(client, &Permit::sole("a test"));
        Reach::new(&shoot, Duration::from_secs(1))
    }

    #[rstest]
    #[case::unauthenticated(401, false)]
    #[case::forbidden(403, false)]
    #[case::throttled(429, false)]
    #[case::broken(500, true)]
    #[case::unavailable(503, true)]
    #[tokio::test]
    async fn a_refusal_is_no_silence(#[case] code: u16, #[case] is_silent: bool) {
        let reach = reach(code);
        drop(reach.silent("no answer"));
        assert!(reach.answers_for().await.is_err());
        assert_eq!(reach.lock().silence.is_some(), is_silent);
        assert!(reach.node("n").await.is_err());
        assert_eq!(reach.lock().silence.is_some(), is_silent);
    }

    #[test]
    fn a_silence_lasts_from_the_first_to_the_last_question_without_an_answer() {
        let (most, begin) = (Duration::from_secs(45), Instant::now());
        let first = Span::extended(None, begin, most);
        assert_eq!(first.last - first.since, Duration::ZERO);
        let longer = Span::extended(Some(first), begin + most, most);
        assert_eq!(longer.last - longer.since, most);
        let later = begin + most * 2 + Duration::from_secs(1);
        let anew = Span::extended(Some(longer), later, most);
        assert_eq!(anew.last - anew.since, Duration::ZERO, "the gap is unknown");
    }
}
