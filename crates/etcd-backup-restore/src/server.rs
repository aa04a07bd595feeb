//! The HTTP interface of `server`.
//!
//! `GET /healthz`, `/snapshot/latest`, `/metrics`; `POST` or `GET` `/snapshot/full[?final=true]` and
//! `/snapshot/delta`; `POST /snapshot/resume`; `GET /readyz` and, with the owner check, `GET /ownership` and
//! `POST /ownership/sealing`. Errors are JSON: `{"code": "<class>", "error": "<sentence>"}`. `/healthz`,
//! `/snapshot/latest` and `/metrics` answer from memory at any time. `/healthz` reports on this process only:
//! a bucket that refuses requests must not take etcd out of service.

use crate::error::{Class, Error, Result};
use crate::owner::{Desk, OwnershipStatus};
use crate::snapshot_name::Snapshot;
use crate::snapshotter::{Handle, Proof};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{
    Json, Router,
    http::{StatusCode, header},
    routing::{get, post},
};
use axum_server::tls_rustls::RustlsConfig;
use ownership::Guard as Ownership;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// How often the certificate's file is checked. Far shorter than the time between renewal and expiry.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(30);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        (
            self.class.status(),
            Json(json!({ "code": self.class.word(), "error": self.to_string() })),
        )
            .into_response()
    }
}

#[derive(Deserialize)]
struct Full {
    #[serde(default)]
    r#final: bool,
}

/// The state behind the routes.
#[derive(Clone)]
pub struct Behind {
    /// Handle of the running snapshotter.
    pub desk: Desk,
    /// The ownership state; `None` without the owner check.
    pub owner: Option<Arc<OwnershipStatus>>,
}

impl Behind {
    /// Handle of the running snapshotter.
    fn handle(&self) -> Handle {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The running snapshotter, or `NotPermitted` while this seed does not own the shoot.
    fn taker(&self) -> Result<Handle> {
        match &self.owner {
            Some(told) if told.state() != Ownership::Sealed => told.ready().map_err(|why| {
                let what = format!("this seed is not confirmed as the owner of the shoot ({why})");
                Error::new(Class::NotPermitted, what)
            })?,
            _ => {}
        }
        Ok(self.handle())
    }
}

/// The routes.
pub fn routes(behind: Behind) -> Router {
    Router::new()
        .route("/readyz", get(readyz))
        .route("/ownership", get(ownership))
        .route("/ownership/sealing", post(sealing))
        .route("/healthz", get(healthz))
        .route("/snapshot/full", get(full).post(full))
        .route("/snapshot/delta", get(delta).post(delta))
        .route("/snapshot/resume", post(resume))
        .route("/snapshot/latest", get(latest))
        .route("/metrics", get(metrics))
        .with_state(behind)
}

/// Whether clients may be sent to this etcd (R17-40): always, without the owner check.
async fn readyz(State(behind): State<Behind>) -> Response {
    match behind.owner.as_ref().map_or(Ok(()), |told| told.ready()) {
        Ok(()) => Json(json!({ "ready": true })).into_response(),
        Err(why) => {
            let answer = Json(json!({ "ready": false, "why": why }));
            (StatusCode::SERVICE_UNAVAILABLE, answer).into_response()
        }
    }
}

/// Serves processes that use this process as their second witness.
async fn ownership(State(behind): State<Behind>) -> Response {
    match &behind.owner {
        Some(told) => Json(told.ownership()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The body of `POST /ownership/sealing`.
#[derive(Deserialize)]
struct Sealing {
    epoch: i64,
}

/// The gardenlet has recorded phase `Sealing`. A report of a different epoch is a conflict with the epoch of
/// this process.
async fn sealing(State(behind): State<Behind>, Json(sealing): Json<Sealing>) -> Response {
    let Some(told) = &behind.owner else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match told.record_sealing(sealing.epoch) {
        Ok(()) => Json(json!({ "epoch": sealing.epoch, "phase": "Sealing" })).into_response(),
        Err(refused) => {
            let answer = json!({ "code": refused.class.word(), "error": refused.to_string() });
            (StatusCode::CONFLICT, Json(answer)).into_response()
        }
    }
}

async fn healthz(State(behind): State<Behind>) -> Response {
    let handle = behind.handle();
    let (phase, error) = handle.state.health();
    let finished = handle.state.is_finished();
    let relief = handle.state.relief();
    let space = handle.state.space().map(|space| {
        json!({
            "databaseBytes": space.used, "inUseBytes": space.in_use, "quotaBytes": space.quota,
            "noSpace": space.alarm, "relief": relief,
        })
    });
    let health = json!({
        "health": true, "snapshotter": phase, "finished": finished, "error": error, "space": space,
    });
    Json(health).into_response()
}

async fn full(State(behind): State<Behind>, Query(full): Query<Full>) -> Result<Response> {
    let handle = behind.taker()?;
    if !full.r#final {
        let snapshot = handle.full().await?;
        return Ok(Json(snapshot.view(&handle.prefix)).into_response());
    }
    if let Some(told) = &behind.owner
        && told.state() == Ownership::Serving
        && !told.is_sealing(handle.epoch)
    {
        // Clients continue to write, and their changes would be missing in a snapshot that is marked as
        // final.
        let what = "no final snapshot is taken while this etcd serves clients and phase Sealing is not recorded: move the \
             shoot, which takes the final snapshot, or ask for /snapshot/full without final=true";
        return Err(Error::new(Class::NotPermitted, what));
    }
    let proof = handle.finish().await?;
    let Some(snapshot) = Snapshot::parse(&proof.snapshot) else {
        let what = format!("{} is no name of a snapshot", proof.snapshot);
        return Err(Error::new(Class::SnapshotUnparsable, what));
    };
    Ok(Json(view(&snapshot, &handle, Some(&proof))).into_response())
}

async fn delta(State(behind): State<Behind>) -> Result<Response> {
    let handle = behind.taker()?;
    let snapshot = handle.delta().await?;
    Ok(Json(snapshot.map(|s| s.view(&handle.prefix))).into_response())
}

async fn resume(State(behind): State<Behind>) -> Result<Response> {
    let handle = behind.taker()?;
    let resumed = handle.resume().await?;
    Ok(Json(json!({ "resumed": resumed, "finished": false })).into_response())
}

async fn latest(State(behind): State<Behind>) -> Response {
    let handle = behind.handle();
    // The gardenlet that moves the shoot polls this route until the final snapshot exists (R17-52).
    if let Some(told) = behind.owner.as_ref().filter(|_| !handle.state.is_finished()) {
        told.request_check();
    }
    let (latest, proof) = (handle.state.latest(), handle.state.proof());
    let deltas: Vec<_> = latest.deltas.iter().map(|d| d.view(&handle.prefix)).collect();
    let full = latest.full.map(|full| view(&full, &handle, proof.as_ref()));
    Json(json!({
        "fullSnapshot": full,
        "deltaSnapshots": deltas,
        "finished": handle.state.is_finished(),
        "epoch": handle.epoch,
        "sealedRevision": handle.state.sealed_revision(),
    }))
    .into_response()
}

/// A full snapshot with the fields of its proof.
fn view(snapshot: &Snapshot, handle: &Handle, proof: Option<&Proof>) -> Value {
    let proof = proof.filter(|proof| proof.snapshot == snapshot.to_string());
    let mut view = json!(snapshot.view(&handle.prefix));
    view["verified"] = json!(proof.is_some());
    if let Some(proof) = proof {
        view["etcdRevision"] = json!(proof.etcd_revision);
        view["epoch"] = json!(proof.epoch);
        view["sha256"] = json!(proof.sha256);
        // Later revisions come from expired leases, so that the snapshot need not hold these revisions.
        let sealed = handle.state.sealed_revision().filter(|_| proof.sealed);
        view["sealedRevision"] = json!(sealed);
    }
    view
}

async fn metrics(State(behind): State<Behind>) -> Response {
    let handle = behind.handle();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], handle.metrics.text()).into_response()
}

/// Certificate and key of the interface.
pub struct Tls {
    /// Chain in PEM.
    pub cert: PathBuf,
    /// Key in PEM.
    pub key: PathBuf,
}

/// Serves until the handle requests a shutdown, or dropped. A renewed certificate is taken over while
/// running.
pub async fn serve(
    address: SocketAddr,
    tls: Option<Tls>,
    routes: Router,
    handle: axum_server::Handle<SocketAddr>,
) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::new(Class::Configuration, format!("cannot serve on {address}: {e}"));
    let service = routes.into_make_service();
    let Some(tls) = tls else {
        return axum_server::bind(address)
            .handle(handle)
            .serve(service)
            .await
            .map_err(failed);
    };
    let wrong = |e: std::io::Error| {
        Error::new(
            Class::Configuration,
            format!("the certificate {} cannot be used: {e}", tls.cert.display()),
        )
    };
    let config = RustlsConfig::from_pem_file(&tls.cert, &tls.key)
        .await
        .map_err(wrong)?;
    tokio::select! {
        served = axum_server::bind_rustls(address, config.clone()).handle(handle).serve(service) => served.map_err(failed),
        () = keep_current(&config, &tls) => Ok(()),
    }
}

async fn keep_current(config: &RustlsConfig, tls: &Tls) {
    let changed = || -> Option<SystemTime> { std::fs::metadata(&tls.cert).ok()?.modified().ok() };
    let mut known = changed();
    let mut ticks = tokio::time::interval(CERTIFICATE_CHECK);
    loop {
        ticks.tick().await;
        let now = changed();
        if now == known {
            continue;
        }
        match config.reload_from_pem_file(&tls.cert, &tls.key).await {
            Ok(()) => known = now,
            Err(error) => {
                tracing::warn!(%error, "the renewed certificate cannot be used yet; the old one stays");
            }
        }
    }
}
