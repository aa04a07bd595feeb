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
use runtime::{
    Error, ErrorMessage, Result,
    client::{Cluster as _, Shoot},
};
use tokio::time::Instant;

/// The shortest and the longest limit of an answer. The limit is the time between two checks, unless a busy
/// server needs more time.
const ANSWER_TIMEOUT_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// The longest time of a write to the shoot's API. Without a bound a silent API holds up the Machine, and the
/// status of the Machine does not name the silent API.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time of a list of a drain. Longer than a busy server takes for all pods of a Node. An API that
/// falls silent during a drain otherwise holds up the Machine for as long as the connection lasts.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Bounds a write to the shoot's API.
pub async fn bounded_write<T>(write: impl Future<Output = Result<T>>) -> Result<T> {
    bounded("a write", WRITE_TIMEOUT, write).await
}

/// Bounds a list of the shoot's API.
pub async fn bounded_list<T>(list: impl Future<Output = Result<T>>) -> Result<T> {
    bounded("a list", LIST_TIMEOUT, list).await
}

async fn bounded<T>(request: &str, limit: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(limit, call).await;
    answer.unwrap_or_else(|_| {
        Err(Error::transient(format!(
            "the shoot's API does not answer {request} within {limit:?}"
        )))
    })
}

/// The reachability of the shoot's API.
pub struct Reach {
    nodes: Api<Node>,
    check_interval: Duration,
    answer_timeout: Duration,
    outcomes: Mutex<Outcomes>,
}

/// The last outcomes. At most one of the spans is set.
#[derive(Clone, Copy, Default)]
struct Outcomes {
    answers: Option<Span>,
    silence: Option<Span>,
}

/// A time with the same outcome of every check.
#[derive(Clone, Copy)]
struct Span {
    since: Instant,
    last: Instant,
}

impl Span {
    /// The span up to `now`. After a gap longer than `longest_gap` a new span begins, because the outcome in
    /// the gap is unknown.
    fn extended(span: Option<Self>, now: Instant, longest_gap: Duration) -> Self {
        let known = span.filter(|span| now - span.last <= longest_gap);
        Self {
            since: known.map_or(now, |span| span.since),
            last: now,
        }
    }
}

impl Reach {
    /// The API is checked at most once in `check_interval`, for all callers together.
    pub fn new(shoot: &Shoot, check_interval: Duration) -> Self {
        Self {
            nodes: shoot.cluster_wide(),
            check_interval,
            answer_timeout: check_interval.clamp(ANSWER_TIMEOUT_RANGE.0, ANSWER_TIMEOUT_RANGE.1),
            outcomes: Mutex::default(),
        }
    }

    /// Checks that the API answers, and returns the time for which the API has answered without a break.
    ///
    /// # Errors
    /// The API does not answer, or refuses the read.
    pub async fn check_reachable(&self) -> Result<Duration> {
        let now = Instant::now();
        let answers = self.lock().answers;
        if let Some(span) = answers
            && now - span.last < self.check_interval
        {
            return Ok(now - span.since);
        }
        let one_node = ListParams::default().limit(1);
        match tokio::time::timeout(self.answer_timeout, self.nodes.list_metadata(&one_node)).await {
            Ok(Ok(_)) => Ok(self.record_answer()),
            Ok(Err(error)) => Err(self.record_error(error)),
            Err(_) => Err(self.record_silence(format!("no answer within {:?}", self.answer_timeout))),
        }
    }

    /// Reads a Node live instead of from the cache.
    ///
    /// # Errors
    /// As [`Self::check_reachable`].
    pub async fn read_node(&self, name: &str) -> Result<Option<Node>> {
        match tokio::time::timeout(self.answer_timeout, self.nodes.get_opt(name)).await {
            Ok(Ok(node)) => {
                self.record_answer();
                Ok(node)
            }
            Ok(Err(error)) => Err(self.record_error(error)),
            Err(_) => Err(self.record_silence(format!("no answer within {:?}", self.answer_timeout))),
        }
    }

    /// The time for which each check has had no answer; zero after an answer. The time counts from the first
    /// check of this process.
    pub fn unreachable_for(&self) -> Duration {
        let silence = self.lock().silence;
        silence.map_or(Duration::ZERO, |silence| silence.last - silence.since)
    }

    fn record_answer(&self) -> Duration {
        let (now, mut outcomes) = (Instant::now(), self.lock());
        let answers = Span::extended(outcomes.answers, now, self.longest_gap());
        *outcomes = Outcomes {
            answers: Some(answers),
            silence: None,
        };
        now - answers.since
    }

    /// A refusal (4xx) is the answer of an API that works, and ends a silence: instances must not end without
    /// a drain because of a short throttling. In an isolated zone the end of the zone's budget bounds a
    /// refusal. An API that cannot serve (5xx) counts as silent.
    fn record_error(&self, error: kube::Error) -> Error {
        if !is_refusal(&error) {
            return self.record_silence(ErrorMessage::from_source(error));
        }
        *self.lock() = Outcomes::default();
        Error::not_ready(
            self.check_interval,
            "the shoot's API refuses a read of Nodes, so that no machine is judged or drained",
        )
        .caused_by(error)
    }

    fn record_silence(&self, why: impl Into<ErrorMessage>) -> Error {
        let (now, mut outcomes) = (Instant::now(), self.lock());
        *outcomes = Outcomes {
            answers: None,
            silence: Some(Span::extended(outcomes.silence, now, self.longest_gap())),
        };
        Error::not_ready(self.check_interval, why)
            .context("the shoot's API does not answer, so that no machine is judged or drained")
    }

    fn longest_gap(&self) -> Duration {
        3 * (self.check_interval + self.answer_timeout)
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
    use runtime::client::Permit;
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
        drop(reach.record_silence("no answer"));
        assert!(reach.check_reachable().await.is_err());
        assert_eq!(reach.lock().silence.is_some(), is_silent);
        assert!(reach.read_node("n").await.is_err());
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
