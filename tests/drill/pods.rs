//! The two answers that pods of a control plane would give, where no pod runs.
//!
//! - etcd-backup-restore: a final snapshot was taken. It is refused while kube-apiserver is there, since what it writes
//!   later would be lost (I2).
//! - kube-apiserver: requests are passed on to one real API server that all shoots of the test share.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;

#[derive(Clone)]
struct Pods {
    seed: Client,
    shoot_api: Client,
}

/// Serves on loopback until `tasks` is dropped. Returns the base address.
pub async fn serve(tasks: &mut JoinSet<()>, seed: Client, shoot_api: Client) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/backup/{namespace}/snapshot/full", get(snapshot))
        .route("/backup/{namespace}/snapshot/latest", get(snapshot))
        .route("/api/{namespace}/{*path}", any(pass_on))
        .with_state(Arc::new(Pods { seed, shoot_api }));
    tasks.spawn(async move {
        let _ = axum::serve(listener, router).await;
    });
    Ok(base)
}

async fn snapshot(State(pods): State<Arc<Pods>>, Path(namespace): Path<String>) -> Response {
    let api: Api<Deployment> = Api::namespaced(pods.seed.clone(), &namespace);
    match api.get_opt("kube-apiserver").await {
        Ok(None) => axum::Json(json!({"isFinal": true, "fullSnapshot": {"isFinal": true}})).into_response(),
        Ok(Some(_)) => (StatusCode::CONFLICT, "I2: kube-apiserver is still there").into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn pass_on(
    State(pods): State<Arc<Pods>>,
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
    match pods.shoot_api.send(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
