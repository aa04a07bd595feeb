//! The answers that pods of a control plane would give, where no pod runs.
//!
//! - etcd-backup-restore: see [`crate::sidecar`].
//! - kube-apiserver: requests are passed on to one real API server that all shoots of the test share.

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::json;
use testkit::{Fate, PlayedKubelet};
use tokio::task::JoinSet;

use crate::sidecar::{LAST_REVISION, Sidecars};

/// A copy of backups reports a complete copy if the copy knows the end of the source (`--required-revision`),
/// else the present backups.
pub fn fate(pod: &Pod) -> Fate {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut args = containers.flat_map(|container| container.args.iter().flatten());
    match PlayedKubelet::usual(pod) {
        Fate::Succeeds => {
            let complete = args.any(|arg| arg.starts_with("--required-revision="));
            let report =
                json!({"finalSnapshot": complete, "lastRevision": LAST_REVISION, "complete": complete});
            Fate::Reports(report.to_string())
        }
        usual => usual,
    }
}

/// Serves on loopback until `tasks` is dropped. Returns the base address.
pub async fn serve(
    tasks: &mut JoinSet<()>,
    seed: Client,
    sidecars: &Sidecars,
    shoot_api: Client,
) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/api/{namespace}/{*path}", any(pass_on))
        .with_state(shoot_api)
        .merge(sidecars.router(seed));
    tasks.spawn(async move {
        let _ = axum::serve(listener, router).await;
    });
    Ok(base)
}

async fn pass_on(
    State(shoot_api): State<Client>,
    Path((_, path)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let query = parts
        .uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let Ok(uri) = format!("/{path}{query}").parse() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    parts.uri = uri;
    parts.headers.remove("host");
    let Ok(body) = axum::body::to_bytes(body, 1 << 22).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let request = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    match shoot_api.send(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
