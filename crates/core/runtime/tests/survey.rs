//! Objects too large for the memory of a process, on a fake API server. The test is alone in this binary,
//! because the test measures memory of the process.
#![allow(clippy::unwrap_used)]

use std::{
    fmt::Write,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Request, Response};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::ListParams, client::Body};
use runtime::bounds::survey;
use serde::Deserialize;
use tower::service_fn;

/// Allowed peak in KiB: each answer twice, as bytes and as text, and some for the rest of the process.
const MOST_KIB: usize = 24 << 10;

#[derive(Deserialize)]
struct Seen {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The most that the process has held so far, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Empty schemas only: in the type of Kubernetes, a schema takes a hundred times the bytes of the answer.
fn page(continue_: &str, name: &str) -> String {
    let mut page = format!(
        r#"{{"metadata":{{"continue":"{continue_}"}},"items":[{{"metadata":{{"name":"{name}"}},"spec":{{"versions":[{{"#
    );
    page.push_str(r#""name":"v1","schema":{"openAPIV3Schema":{"properties":{"first":{}"#);
    for number in 0..130_000 {
        write!(page, r#","{number:06}":{{}}"#).unwrap();
    }
    page.push_str("}}}}]}}]}");
    page
}

/// "A tenant ends a seed's gardenlet by definitions that are too large to be in memory"
/// (docs/understand/prevented.md).
#[tokio::test]
async fn what_users_write_is_read_over() {
    let answers = Arc::new([page("t", "one"), page("", "two")]);
    let asked = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |request: Request<Body>| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let answer = answers[number].clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            assert!(query.contains("limit=50"), "{query}");
            assert_eq!(query.contains("continue=t"), number == 1, "{query}");
            Ok::<_, tower::BoxError>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    #[allow(clippy::disallowed_methods)] // nothing is asked of a cluster
    let api: Api<CustomResourceDefinition> = Api::all(Client::new(service, "default"));
    let (before, mut names) = (peak(), Vec::new());
    let look = survey(&api, &ListParams::default(), |seen: Seen| {
        names.push(seen.metadata.name);
        ControlFlow::Continue(())
    })
    .await;
    look.unwrap();
    assert_eq!(names, ["one", "two"]);
    let grown = peak() - before;
    assert!(grown < MOST_KIB, "{grown} KiB");
}
