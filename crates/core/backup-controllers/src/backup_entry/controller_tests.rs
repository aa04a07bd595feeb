//! The start of the controller, with simulated API servers.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::convert::Infallible;

use api::gardencore::BackupEntrySpec;
use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use runtime::{
    client::{Garden, Permit, Seed},
    controller::Events,
    process::metrics::Metrics,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;

const NAME: &str = "shoot--dev--web--uid";

#[allow(clippy::unnecessary_wraps)] // the answer of a service
fn answer(status: StatusCode, body: &Value) -> Result<Response<Body>, Infallible> {
    let mut answer = Response::new(Body::from(body.to_string().into_bytes()));
    *answer.status_mut() = status;
    Ok(answer)
}

/// A list with a single object. `next`: the token of the next page.
fn page(object: &Value, next: &str) -> Result<Response<Body>, Infallible> {
    let metadata = json!({"resourceVersion": "7", "continue": next});
    let list = json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": [object]});
    answer(StatusCode::OK, &list)
}

/// A garden with an entry that seed `b` has taken over. `reads` counts the reads of the entry, which the
/// controller begins with.
fn garden(reads: watch::Sender<usize>) -> Client {
    let spec = BackupEntrySpec {
        bucket_name: "bucket".into(),
        seed_name: Some("b".into()),
        shoot_ref: None,
    };
    let mut entry = BackupEntry::new(NAME, spec);
    entry.metadata.namespace = Some("garden-dev".into());
    entry.metadata.finalizers = Some(vec![GARDENER.into()]);
    let entry = serde_json::to_value(entry).unwrap();
    let service = service_fn(move |request: Request<Body>| {
        let (entry, reads) = (entry.clone(), reads.clone());
        async move {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
            if is_watch {
                std::future::pending::<()>().await;
            }
            if !request.uri().path().ends_with(NAME) {
                return page(&entry, "");
            }
            reads.send_modify(|reads| *reads += 1);
            let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "reason": "NotFound", "message": "gone", "code": 404});
            answer(StatusCode::NOT_FOUND, &gone)
        }
    });
    Client::new(service, "default")
}

/// A seed that still has the entry. The second page arrives after the controller has finished the work of the
/// first page: the clock of the test is paused, and moves when no task can do anything else.
fn seed() -> Client {
    let service = service_fn(|request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default();
        if query.contains("watch=true") {
            std::future::pending::<()>().await;
        }
        if query.contains("continue=") {
            sleep(Duration::from_secs(1)).await;
            return page(&json!({"metadata": {"name": "second"}}), "");
        }
        page(&json!({"metadata": {"name": NAME}}), "next")
    });
    Client::new(service, "default")
}

/// Otherwise the seed would keep the BackupEntry and the credentials of the bucket.
#[tokio::test(start_paused = true)]
async fn an_entry_that_was_taken_over_is_checked_after_a_list_of_two_pages() {
    let (sender, mut reads) = watch::channel(0);
    let (garden, permit) = (garden(sender), Permit::sole("a test"));
    let settings = runner::Settings {
        concurrency: 1,
        shutdown: CancellationToken::new(),
        permit: permit.clone(),
        metrics: Metrics::default(),
        events: Events::new(garden.clone(), "test"),
    };
    let context = Context {
        garden: Garden::new(garden, &permit),
        seed: Seed::new(seed(), &permit),
        seed_name: "a".into(),
        deletion_grace: Duration::ZERO,
        runner: settings,
    };
    let checked = async {
        tokio::select! {
            () = run(Arc::new(context)) => {}
            checked = reads.wait_for(|reads| *reads > 0) => drop(checked.unwrap()),
        }
    };
    timeout(Duration::from_secs(600), checked).await.unwrap();
    assert_eq!(*reads.borrow(), 1);
}
