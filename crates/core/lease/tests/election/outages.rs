//! Lost answers, and outages of the whole API server (RK-33).

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use lease::{Elector, Ended, Lock, Lost, Metrics, Timing};
use permit::Permit;
use testkit::ControlPlane;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

use crate::world::{admin, config, elector, free, lasting, renewed, spec, steady};

/// Carries every write out and loses the answer where `lose` is true for the write's number (counted from 1).
#[derive(Clone)]
struct LosesAnswers<S> {
    inner: S,
    lose: fn(u32) -> bool,
    writes: Arc<AtomicU32>,
}

struct LoseAnswers(fn(u32) -> bool);

impl<S> Layer<S> for LoseAnswers {
    type Service = LosesAnswers<S>;

    fn layer(&self, inner: S) -> LosesAnswers<S> {
        LosesAnswers {
            inner,
            lose: self.0,
            writes: Arc::default(),
        }
    }
}

impl<S> Service<Request<Body>> for LosesAnswers<S>
where
    S: Service<Request<Body>>,
    S::Error: Into<BoxError>,
    S::Response: Send,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let lost =
            request.method() != Method::GET && (self.lose)(self.writes.fetch_add(1, Ordering::SeqCst) + 1);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            if lost {
                Err("the answer was lost".into())
            } else {
                Ok(answer)
            }
        })
    }
}

async fn losing(lose: fn(u32) -> bool) -> Client {
    let builder = ClientBuilder::try_from(config("unlucky").await).unwrap();
    builder.with_layer(&LoseAnswers(lose)).build()
}

/// The write that took the lock was carried out; the candidate finds itself as holder and continues.
#[tokio::test]
async fn a_candidate_whose_take_over_was_not_answered_finds_itself_holding() {
    let client = losing(|write| write == 1).await;
    let elector = elector(&client, "unanswered-take-over", "me");
    let outcome = elector.with_lease(CancellationToken::new(), |_| async {
        spec(&client, "unanswered-take-over").await.lease_transitions
    });
    assert_eq!(outcome.await.unwrap(), Ended::Done(Some(0)));
}

#[tokio::test]
async fn a_candidate_that_stops_without_knowing_that_it_holds_gives_the_lock_back() {
    free(&admin().await, "unknowing").await;
    let client = losing(|write| write == 1).await;
    let lock = Lock::new(client.clone(), "default", "unknowing", "me");
    // The second read would reveal the hold, and comes long after the end.
    let [lease, renew, retry] = [60, 50, 20].map(Duration::from_secs);
    let timing = Timing::new(lease, renew, retry).unwrap();
    let elector = Elector::new(lock, timing, Metrics::default());
    let end = CancellationToken::new();
    let waiting = elector.with_lease(end.clone(), |_| async { panic!("the answer was lost") });
    let ending = async {
        let held = testkit::eventually("taken", Duration::from_secs(30), async || {
            match spec(&client, "unknowing").await.holder_identity.as_deref() {
                Some("me") => Ok(()),
                other => Err(format!("held by {other:?}")),
            }
        });
        held.await.unwrap();
        end.cancel();
    };
    let (outcome, ()) = futures::join!(waiting, ending);
    assert!(matches!(outcome, Ok(Ended::Shutdown)));
    assert_eq!(
        spec(&client, "unknowing").await.holder_identity.as_deref(),
        Some("")
    );
}

/// The renewal after a lost answer is refused, because the Lease has changed: by the holder's own earlier
/// write. Of four successful renewals at least one follows a lost answer.
#[tokio::test]
async fn a_holder_with_every_third_answer_lost_keeps_its_lock() {
    free(&admin().await, "partly-answered").await;
    let client = losing(|write| write % 3 == 0).await;
    let elector = steady(&client, "partly-answered", "me");
    let work = async |held: Permit| {
        for _ in 0..2 {
            renewed(&held).await;
        }
        held.is_valid()
    };
    let outcome = elector.with_lease(CancellationToken::new(), work).await.unwrap();
    assert_eq!(outcome, Ended::Done(true));
    let left = spec(&admin().await, "partly-answered").await;
    assert_eq!(
        (left.lease_transitions, left.acquire_time.is_some()),
        (Some(1), true)
    );
}

/// The holder stops at the deadline, and not earlier; a candidate continues and gets the lock afterwards.
#[tokio::test]
async fn without_the_api_server_a_holder_ends_at_its_deadline_and_a_candidate_waits() {
    let mut plane = ControlPlane::start("outage").await.unwrap();
    let client = plane.admin();
    let holder = elector(&client, "outage", "holder");
    let candidate = elector(&client, "outage", "candidate");
    free(&client, "outage").await;
    let alive = AtomicU32::new(0);
    let down = async |held: Permit| {
        plane.stop_api();
        let stopped = Instant::now();
        alive.fetch_add(1, Ordering::SeqCst);
        let _alive = Count(&alive);
        assert!(held.is_valid());
        pending::<()>().await;
        stopped
    };
    let lost = testkit::timeout(
        Duration::from_secs(60),
        holder.with_lease(CancellationToken::new(), down),
    );
    let begun = Instant::now();
    let lost = lost.await.unwrap().unwrap_err();
    let Lost::NotRenewed { lock, deadline, why } = &lost else {
        panic!("another loss: {lost}")
    };
    assert_eq!(
        (lock.as_str(), *deadline),
        ("default/outage", lasting().renew_deadline)
    );
    assert!(!why.is_empty() && why != "there was no time for it", "{lost}");
    assert_eq!(alive.load(Ordering::SeqCst), 0, "the work was not dropped");
    // Counted from the first write. Only the deadline ends the work.
    let took = begun.elapsed();
    assert!(took >= lasting().renew_deadline, "it gave up early: {took:?}");

    let waiting = candidate.with_lease(CancellationToken::new(), |_| async { "works" });
    let starting = plane.start_api();
    let (outcome, started) = futures::join!(testkit::timeout(Duration::from_secs(90), waiting), starting);
    started.unwrap();
    assert_eq!(outcome.unwrap().unwrap(), Ended::Done("works"));
}

struct Count<'a>(&'a AtomicU32);

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
