//! A fake etcd-backup-restore for each shoot of a seed, as seen by the gardenlet, where no pod runs. After
//! the final snapshot of an epoch, the process has finished, takes no further snapshot, and reports the end
//! until the process is reopened. With owner checks, the process takes the final snapshot unasked, after the
//! report of phase `Sealing` and the removal of the owner record (R17-50). Requests for the final snapshot
//! are then refused. From then on the process stays sealed, until the etcd starts in a new epoch.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::constants::OWNERSHIP_EPOCH;
use api::druid::Etcd;
use api::extensions::DNSRecord;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::{Value, json};

/// The fake processes of a seed.
#[derive(Clone, Default)]
pub struct Sidecars {
    finished: Epochs,
    /// Epochs with a report of phase `Sealing`: before that report, a missing record is no loss.
    sealing: Epochs,
}

type Epochs = Arc<Mutex<BTreeSet<(String, i64)>>>;

fn lock(epochs: &Epochs) -> MutexGuard<'_, BTreeSet<(String, i64)>> {
    epochs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sidecars {
    /// Whether the process of this namespace has finished in this epoch.
    pub fn has_finished(&self, namespace: &str, epoch: i64) -> bool {
        self.finished().contains(&(namespace.to_owned(), epoch))
    }

    /// The HTTP endpoints of the processes.
    pub fn router(&self, seed: Client) -> Router {
        Router::new()
            .route("/backup/{namespace}/snapshot/full", get(usual).post(last))
            .route("/backup/{namespace}/snapshot/latest", get(latest))
            .route("/backup/{namespace}/ownership", get(ownership))
            .route("/backup/{namespace}/ownership/sealing", post(sealing))
            .route("/backup/{namespace}/healthz", get(health))
            .route("/backup/{namespace}/snapshot/delta", get(usual))
            .route("/backup/{namespace}/snapshot/resume", post(resume))
            .with_state(Served {
                sidecars: self.clone(),
                seed,
            })
    }

    fn finished(&self) -> MutexGuard<'_, BTreeSet<(String, i64)>> {
        lock(&self.finished)
    }
}

#[derive(Clone)]
struct Served {
    sidecars: Sidecars,
    seed: Client,
}

/// An answering process: the namespace and the start epoch of the etcd.
type One = (String, i64);

impl Served {
    async fn find_process(&self, namespace: String) -> Result<One, Response> {
        let etcds: Api<Etcd> = Api::namespaced(self.seed.clone(), &namespace);
        match etcds.get_opt("etcd-main").await {
            Ok(Some(etcd)) if etcd.spec.replicas == 0 => {
                Err((StatusCode::SERVICE_UNAVAILABLE, "etcd is stopped").into_response())
            }
            Ok(Some(etcd)) => Ok((namespace, epoch_of(&etcd))),
            Ok(None) => Err((StatusCode::SERVICE_UNAVAILABLE, "there is no etcd").into_response()),
            Err(error) => Err((StatusCode::BAD_GATEWAY, error.to_string()).into_response()),
        }
    }
}

impl Served {
    /// Whether the process checks the owner, and the shoot has no owner any more.
    async fn is_lost(&self, namespace: &str) -> Result<Option<bool>, Response> {
        let failed = |error: kube::Error| (StatusCode::BAD_GATEWAY, error.to_string()).into_response();
        let etcds: Api<Etcd> = Api::namespaced(self.seed.clone(), namespace);
        let etcd = etcds.get_opt("etcd-main").await.map_err(failed)?;
        let Some(etcd) = etcd.filter(|etcd| etcd.spec.backup.owner_check.is_some()) else {
            return Ok(None);
        };
        if !lock(&self.sidecars.sealing).contains(&(namespace.to_owned(), epoch_of(&etcd))) {
            return Ok(Some(false));
        }
        let records: Api<DNSRecord> = Api::namespaced(self.seed.clone(), namespace);
        let records = records.list(&ListParams::default()).await.map_err(failed)?;
        let is_there = records.iter().any(|record| record.name_any().ends_with("-owner"));
        Ok(Some(!is_there))
    }

    /// The final snapshot is refused while kube-apiserver exists, because later writes of kube-apiserver
    /// would be lost (I2).
    async fn finish(&self, one: One) -> Response {
        let api: Api<Deployment> = Api::namespaced(self.seed.clone(), &one.0);
        match api.get_opt("kube-apiserver").await {
            Ok(None) => {
                let answer = proven(one.1);
                self.sidecars.finished().insert(one);
                Json(answer).into_response()
            }
            Ok(Some(_)) => (StatusCode::CONFLICT, "I2: kube-apiserver is still there").into_response(),
            Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        }
    }
}

/// The epoch of an Etcd.
pub fn epoch_of(etcd: &Etcd) -> i64 {
    let said = etcd.annotations().get(OWNERSHIP_EPOCH);
    said.and_then(|epoch| epoch.parse().ok()).unwrap_or(1)
}

fn refused() -> Response {
    let why = json!({"code": "finished", "error": "the final snapshot was taken"});
    (StatusCode::CONFLICT, Json(why)).into_response()
}

/// The last revision of each etcd.
pub const LAST_REVISION: i64 = 9;

fn proven(epoch: i64) -> Value {
    json!({"isFinal": true, "verified": true, "lastRevision": LAST_REVISION, "etcdRevision": LAST_REVISION, "epoch": epoch,
        "snapName": "Full-00000000-00000009-1.gz.final", "sha256": "0".repeat(64)})
}

async fn usual(State(served): State<Served>, Path(namespace): Path<String>) -> Response {
    match served.find_process(namespace).await {
        Ok(one) if served.sidecars.finished().contains(&one) => refused(),
        Ok(_) => Json(json!({"kind": "Incr", "startRevision": 1, "lastRevision": 9})).into_response(),
        Err(response) => response,
    }
}

/// With owner checks, a request for the final snapshot is refused: the process takes the snapshot unasked.
async fn last(State(served): State<Served>, Path(namespace): Path<String>) -> Response {
    let one = match served.find_process(namespace).await {
        Ok(one) => one,
        Err(response) => return response,
    };
    if served.sidecars.finished().contains(&one) {
        return refused();
    }
    match served.is_lost(&one.0).await {
        Ok(None) => served.finish(one).await,
        Ok(Some(_)) => (
            StatusCode::CONFLICT,
            "R17-50: it is taken when the owner record has gone",
        )
            .into_response(),
        Err(response) => response,
    }
}

async fn latest(State(served): State<Served>, Path(namespace): Path<String>) -> Response {
    let one = match served.find_process(namespace).await {
        Ok(one) => one,
        Err(response) => return response,
    };
    if !served.sidecars.finished().contains(&one) {
        match served.is_lost(&one.0).await {
            Ok(Some(true)) => {
                let taken = served.finish(one.clone()).await;
                if !taken.status().is_success() {
                    return taken;
                }
            }
            Ok(_) => return Json(json!({"fullSnapshot": null, "finished": false})).into_response(),
            Err(response) => return response,
        }
    }
    Json(json!({"fullSnapshot": proven(one.1), "finished": true})).into_response()
}

async fn ownership(State(served): State<Served>, Path(namespace): Path<String>) -> Response {
    match served.is_lost(&namespace).await {
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Ok(Some(true)) => Json(json!({"state": "Sealed", "why": "the owner record is gone"})).into_response(),
        Ok(Some(false)) => {
            Json(json!({"state": "Serving", "why": "the seed owns the shoot"})).into_response()
        }
        Err(response) => response,
    }
}

async fn sealing(
    State(served): State<Served>,
    Path(namespace): Path<String>,
    Json(report): Json<Value>,
) -> Response {
    match served.find_process(namespace).await {
        Ok(one) if report["epoch"] == one.1 => {
            lock(&served.sidecars.sealing).insert(one);
            Json(json!({"epoch": report["epoch"], "phase": "Sealing"})).into_response()
        }
        Ok(_) => (
            StatusCode::CONFLICT,
            Json(json!({"code": "other-epoch", "error": "another epoch"})),
        )
            .into_response(),
        Err(response) => response,
    }
}

async fn health() -> Response {
    Json(json!({"health": true, "error": null})).into_response()
}

async fn resume(State(served): State<Served>, Path(namespace): Path<String>) -> Response {
    match served.find_process(namespace).await {
        Ok(one) => Json(json!({"resumed": served.sidecars.finished().remove(&one)})).into_response(),
        Err(response) => response,
    }
}
