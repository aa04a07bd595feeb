//! The HTTP interface of `server`.
//!
//! `GET /healthz`, `/snapshot/latest`, `/metrics`; `POST` or `GET` `/snapshot/full[?final=true]` and
//! `/snapshot/delta`; `POST /snapshot/resume`; `GET /readyz` and, with the owner check, `GET /ownership` and
//! `POST /ownership/sealing` and `PUT /gate/prepared-clients`. The crate `sidecar-protocol` has the types of
//! the answers. `/healthz`, `/snapshot/latest` and `/metrics` answer from memory at any time. `/healthz`
//! reports on this process only: a bucket that refuses requests must not take etcd out of service.

use crate::clock;
use crate::error::{Class, Error, Result};
use crate::owner::{CurrentSnapshotter, OwnershipStatus, PreparedClients};
use crate::snapshot_name::Snapshot;
use crate::snapshotter::{Handle, Proof};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{
    Json, Router,
    http::{StatusCode, header},
    routing::{get, post, put},
};
use axum_server::tls_rustls::RustlsConfig;
use ownership::SidecarState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidecar_protocol::{
    ErrorAnswer, FullSnapshot, LatestSnapshots, PREPARED_CLIENTS_PATH, PreparedClientList,
    PreparedClientsAnswer, Readiness, ReportedSpace, ResumeAnswer, SealingAnswer, SealingReport,
    SidecarHealth, SnapshotProof,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// How often the certificate's file is checked. Far shorter than the time between renewal and expiry.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(30);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        (
            status_of(self.class),
            Json(ErrorAnswer {
                code: Some(self.class),
                error: Some(self.to_string()),
            }),
        )
            .into_response()
    }
}

/// Status of the HTTP answer. 502 means "the store, not us", 503 "ask again".
fn status_of(class: Class) -> StatusCode {
    match class {
        Class::Credentials | Class::Store => StatusCode::BAD_GATEWAY,
        Class::Etcd | Class::Compacted | Class::Interrupted | Class::NotPermitted | Class::Stopping => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Class::Finished | Class::Overtaken => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// An answer of type `T`. The fields are sorted, so that the bytes do not depend on the order in a type.
fn answer<T: Serialize>(content: &T) -> Json<Value> {
    Json(json!(content))
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
    pub snapshotter: CurrentSnapshotter,
    /// The ownership state; `None` without the owner check.
    pub owner: Option<Arc<OwnershipStatus>>,
    /// The certificates of preparations at the gate; `None` without the owner check.
    pub prepared: Option<Arc<PreparedClients>>,
}

impl Behind {
    /// Handle of the running snapshotter.
    fn handle(&self) -> Handle {
        self.snapshotter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The running snapshotter, or `NotPermitted` while this seed does not own the shoot.
    fn permitted_snapshotter(&self) -> Result<Handle> {
        match &self.owner {
            Some(status) if status.state() != SidecarState::Sealed => status.ready().map_err(|why| {
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
        .route(PREPARED_CLIENTS_PATH, put(prepared_clients))
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
    match behind.owner.as_ref().map_or(Ok(()), |status| status.ready()) {
        Ok(()) => answer(&Readiness {
            ready: true,
            why: None,
        })
        .into_response(),
        Err(why) => {
            let answer = answer(&Readiness {
                ready: false,
                why: Some(why),
            });
            (StatusCode::SERVICE_UNAVAILABLE, answer).into_response()
        }
    }
}

/// Serves processes that use this process as their second witness.
async fn ownership(State(behind): State<Behind>) -> Response {
    match &behind.owner {
        Some(status) => answer(&status.ownership()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The gardenlet has recorded phase `Sealing`. A report of a different epoch is a conflict with the epoch of
/// this process.
async fn sealing(State(behind): State<Behind>, Json(report): Json<SealingReport>) -> Response {
    let Some(status) = &behind.owner else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match status.record_sealing(report.epoch) {
        Ok(()) => answer(&SealingAnswer {
            epoch: report.epoch,
            phase: "Sealing".to_owned(),
        })
        .into_response(),
        Err(refused) => conflict(refused),
    }
}

fn conflict(refused: Error) -> Response {
    let mut response = refused.into_response();
    *response.status_mut() = StatusCode::CONFLICT;
    response
}

/// The gardenlet of the source lists the certificates of preparations that the gate admits. A list of a
/// different epoch is a conflict with the epoch of this process.
async fn prepared_clients(State(behind): State<Behind>, Json(list): Json<PreparedClientList>) -> Response {
    let Some(clients) = &behind.prepared else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let epoch = behind.handle().epoch;
    let replaced = if list.epoch == epoch {
        clients.replace(&list, clock::now())
    } else {
        let what = format!(
            "certificates of a preparation in ownership epoch {} are listed, and this process runs in epoch {epoch}: wait until \
             etcd-druid has started it in the epoch of the Etcd",
            list.epoch
        );
        Err(Error::new(Class::OtherEpoch, what))
    };
    match replaced {
        Ok(admitted) => answer(&PreparedClientsAnswer {
            epoch,
            admitted: u64::try_from(admitted).unwrap_or(u64::MAX),
        })
        .into_response(),
        Err(refused) => conflict(refused),
    }
}

async fn healthz(State(behind): State<Behind>) -> Response {
    let handle = behind.handle();
    let (phase, error) = handle.state.health();
    let relief = handle.state.relief();
    let space = handle.state.space().map(|space| ReportedSpace {
        database_bytes: space.used,
        in_use_bytes: space.in_use,
        quota_bytes: space.quota,
        no_space: space.alarm,
        relief,
    });
    answer(&SidecarHealth {
        health: true,
        phase,
        error,
        finished: handle.state.is_finished(),
        space,
    })
    .into_response()
}

async fn full(State(behind): State<Behind>, Query(full): Query<Full>) -> Result<Response> {
    let handle = behind.permitted_snapshotter()?;
    if !full.r#final {
        let snapshot = handle.full().await?;
        return Ok(Json(snapshot.view(&handle.prefix)).into_response());
    }
    if let Some(status) = &behind.owner
        && status.state() == SidecarState::Serving
        && !status.is_sealing(handle.epoch)
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
    Ok(answer(&full_snapshot(&snapshot, &handle, Some(&proof))).into_response())
}

async fn delta(State(behind): State<Behind>) -> Result<Response> {
    let handle = behind.permitted_snapshotter()?;
    let snapshot = handle.delta().await?;
    Ok(Json(snapshot.map(|s| s.view(&handle.prefix))).into_response())
}

async fn resume(State(behind): State<Behind>) -> Result<Response> {
    let handle = behind.permitted_snapshotter()?;
    let resumed = handle.resume().await?;
    let resumed = ResumeAnswer {
        resumed,
        finished: false,
    };
    Ok(answer(&resumed).into_response())
}

async fn latest(State(behind): State<Behind>) -> Response {
    let handle = behind.handle();
    // The gardenlet that moves the shoot polls this route until the final snapshot exists (R17-52).
    if let Some(status) = behind.owner.as_ref().filter(|_| !handle.state.is_finished()) {
        status.request_check();
    }
    let (latest, proof) = (handle.state.latest(), handle.state.proof());
    let full = latest.full.as_ref();
    answer(&LatestSnapshots {
        full_snapshot: full.map(|full| full_snapshot(full, &handle, proof.as_ref())),
        delta_snapshots: latest.deltas.iter().map(|d| d.view(&handle.prefix)).collect(),
        finished: handle.state.is_finished(),
        epoch: Some(handle.epoch),
        sealed_revision: handle.state.sealed_revision(),
    })
    .into_response()
}

/// A full snapshot with its proof, where the proof is of this snapshot.
fn full_snapshot(snapshot: &Snapshot, handle: &Handle, proof: Option<&Proof>) -> FullSnapshot {
    let proof = proof.filter(|proof| proof.snapshot == snapshot.to_string());
    FullSnapshot {
        snapshot: snapshot.view(&handle.prefix),
        verified: proof.is_some(),
        proof: proof.map(|proof| SnapshotProof {
            etcd_revision: proof.etcd_revision,
            epoch: Some(proof.epoch),
            sha256: Some(proof.sha256.clone()),
            // Later revisions come from expired leases, so that the snapshot need not hold these revisions.
            sealed_revision: handle.state.sealed_revision().filter(|_| proof.sealed),
        }),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use sidecar_protocol::EtcdGateState;

    #[test]
    fn refused_credentials_are_an_error_of_the_store() {
        assert_eq!(status_of(Class::Credentials), StatusCode::BAD_GATEWAY);
    }

    /// The words of the protocol are the words of the ownership crate.
    #[test]
    fn each_state_of_the_sidecar_has_a_word_in_the_protocol() {
        for state in SidecarState::ALL {
            let reported = EtcdGateState::from(state.as_str());
            assert!(!matches!(reported, EtcdGateState::Other(_)), "{reported}");
        }
    }
}
