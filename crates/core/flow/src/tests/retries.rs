//! Number and duration of the attempts of a failing task.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

use super::{graph, seconds};
use crate::{Cause, Graph, Retry, Task};

/// A task that fails `failures` times, each time with the number of the attempt.
fn flaky(calls: &Arc<AtomicU32>, failures: u32) -> Task<'static, String> {
    let calls = calls.clone();
    Task::new("flaky", move || {
        let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if call <= failures {
                Err(format!("attempt {call}"))
            } else {
                Ok(())
            }
        }
    })
}

async fn run(g: Graph<'static, String>) -> (u64, Option<crate::TaskFailure<String>>) {
    let started = Instant::now();
    let result = g.compile().run(|_| ()).await;
    (
        started.elapsed().as_secs(),
        result.err().map(|mut error| error.failures.remove(0)),
    )
}

/// An error with a cause that only the alternate form prints.
struct Silence;

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no answer")?;
        if f.alternate() {
            f.write_str(": connection refused")?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_alternate_form_of_a_failed_flow_has_the_causes() {
    let mut g = Graph::new("test flow");
    g.add(Task::new("broken", || async { Err(Silence) }));
    let hanging = Task::new("hanging", || async { Err(Silence) });
    g.add(hanging.retry(Retry::until_timeout(seconds(5), seconds(8))));
    let Err(error) = g.compile().run(|_| ()).await else {
        panic!("both tasks fail");
    };
    let plain = "flow \"test flow\": task \"broken\" failed: no answer; task \"hanging\" failed: not done after 8s and 2 \
                 attempts, the last error was: no answer";
    assert_eq!(error.to_string(), plain);
    let with_causes = plain.replace("no answer", "no answer: connection refused");
    assert_eq!(format!("{error:#}"), with_causes);
}

#[tokio::test(start_paused = true)]
async fn without_a_retry_a_task_is_tried_once() {
    let calls = Arc::default();
    let mut g = graph();
    g.add(flaky(&calls, 1));
    let (_, failure) = run(g).await;
    assert_eq!(failure.unwrap().cause, Cause::Error("attempt 1".into()));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_tried_until_it_succeeds() {
    let calls = Arc::default();
    let mut g = graph();
    g.add(flaky(&calls, 3).retry(Retry::until_timeout(seconds(5), seconds(30))));
    let (elapsed, failure) = run(g).await;
    assert!(failure.is_none());
    assert_eq!((elapsed, calls.load(Ordering::SeqCst)), (15, 4));
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_kept_when_time_is_over() {
    let calls = Arc::default();
    let mut g = graph().retry(Retry::until_timeout(seconds(5), seconds(12)));
    g.add(flaky(&calls, 99));
    let (elapsed, failure) = run(g).await;
    let failure = failure.unwrap();
    assert_eq!(elapsed, 12);
    assert_eq!(failure.attempts, 3);
    assert_eq!(
        failure.cause,
        Cause::TimedOut {
            after: seconds(12),
            last: Some("attempt 3".into())
        }
    );
    assert_eq!(failure.error().unwrap(), "attempt 3");
    assert_eq!(
        failure.to_string(),
        "task \"flaky\" failed: not done after 12s and 3 attempts, the last error was: attempt 3"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tasks_own_retry_goes_before_the_graphs() {
    let calls = Arc::default();
    let mut g = graph().retry(Retry::until_timeout(seconds(5), seconds(10)));
    g.add(flaky(&calls, 99).retry(Retry::until_timeout(seconds(1), seconds(3))));
    assert_eq!(run(g).await.0, 3);
}

#[tokio::test(start_paused = true)]
async fn the_pause_grows_with_backoff() {
    let calls = Arc::default();
    let mut g = graph();
    g.add(flaky(&calls, 4).retry(Retry::until_timeout(seconds(1), seconds(60)).backoff(seconds(3))));
    assert_eq!(run(g).await.0, 1 + 2 + 3 + 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_worth_it_ends_the_task_at_once() {
    let calls = Arc::default();
    let mut g = graph()
        .retry(Retry::until_timeout(seconds(5), seconds(60)))
        .retry_only_if(|error: &String| error != "attempt 2");
    g.add(flaky(&calls, 99));
    let (elapsed, failure) = run(g).await;
    let failure = failure.unwrap();
    assert_eq!((elapsed, failure.attempts), (5, 2));
    assert_eq!(failure.cause, Cause::Error("attempt 2".into()));
}

#[tokio::test(start_paused = true)]
async fn a_limit_cuts_off_an_attempt_that_hangs() {
    let mut g = graph();
    g.add(Task::new("hangs", std::future::pending::<Result<(), String>>).timeout(seconds(7)));
    let (elapsed, failure) = run(g).await;
    let failure = failure.unwrap();
    assert_eq!(elapsed, 7);
    assert_eq!(
        failure.cause,
        Cause::TimedOut {
            after: seconds(7),
            last: None
        }
    );
    assert_eq!(failure.to_string(), "task \"hangs\" failed: not done after 7s");
    assert!(failure.error().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_shorter_limit_counts() {
    let calls = Arc::default();
    let mut g = graph();
    g.add(
        flaky(&calls, 99)
            .retry(Retry::until_timeout(seconds(1), seconds(30)))
            .timeout(seconds(4)),
    );
    assert_eq!(run(g).await.0, 4);
}

/// A step that fails in a loop appears in the log of a process at the default level.
#[tokio::test(start_paused = true)]
async fn a_retry_is_logged_at_info_from_the_third_on() {
    let mut g = graph();
    g.add(flaky(&Arc::default(), 4).retry(Retry::until_timeout(seconds(1), seconds(30))));
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_writer(log.clone());
    // With a single subscriber, `tracing` judges a log line by the subscriber of the first thread at that
    // line. A parallel test has no subscriber. With two subscribers, `tracing` asks both.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let guard = tracing::subscriber::set_default(subscriber.finish());
    tracing::callsite::rebuild_interest_cache();
    let (_, failure) = run(g).await;
    drop(guard);
    assert!(failure.is_none());
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let retries: Vec<_> = log
        .lines()
        .filter(|line| line.contains("is tried again"))
        .collect();
    assert_eq!(retries.len(), 2, "{log}");
    for (line, attempt) in retries.iter().zip(["attempt 3", "attempt 4"]) {
        assert!(
            line.contains(attempt) && line.contains("task=\"flaky\""),
            "{line}"
        );
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
