//! The final snapshot: the gardenlet requests the snapshot from etcd-backup-restore, or waits for the
//! snapshot that etcd-backup-restore takes after the end of the ownership. The next seed starts from this
//! snapshot (I2).

use std::time::Duration;

use api::{constants::DRUID_MIGRATING, gardencore::shoot::SealedEpoch, meta::ErrorCode};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::{BoxFuture, FutureExt};
use http::{Method, Request, StatusCode, header::CONTENT_TYPE};
use kube::{Client, Config, client::Body, config::AuthInfo};
use runtime::{Cluster, Connection, Error, Result, error::Explain};
use serde_json::{Value, json};

use crate::{
    Facts, Stay, configuration_problem,
    copied::acknowledged_end,
    etcd::MAIN,
    etcd_owner::{self, FinalSnapshot},
    secrets::{config::ETCD_CLIENT, issue::Data},
};

/// Longest quoted part of an answer, in characters.
const QUOTED: usize = 300;
/// Interval between two polls for the final snapshot, because etcd-backup-restore sends no notification. Much
/// shorter than the time of a snapshot.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time that the first report of phase `Sealing` may delay a move.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);
/// Longest time of polling in one attempt of the step. Much shorter than the timeout of the step, so that the
/// error at the end states the reason.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);

/// The shoot's backups, by requests to etcd-backup-restore.
#[derive(Debug)]
pub struct Backups;

impl Backups {
    /// "Checking that backups can be taken": runs before the first change of a move, while the API still
    /// serves. A move without a place for the final snapshot would end with a stopped shoot that cannot
    /// continue.
    pub async fn check(f: &Facts) -> Result<()> {
        check_backup_entry(f).await?;
        let client = client(f).await?;
        let (status, stored) = ask_for_effect(f, &client, "/snapshot/delta").await?;
        if !status.is_success() {
            return Err(error_of("a snapshot", status, &stored));
        }
        // etcd had no changes, so no delta snapshot was stored and storage is not proved.
        if stored.is_null() {
            let (status, full) = ask_for_effect(f, &client, "/snapshot/full").await?;
            if !status.is_success() {
                return Err(error_of("a snapshot", status, &full));
            }
        }
        Ok(())
    }

    /// "Creating ETCD Snapshot before etcd sleeps": the bucket is the only copy of the data while the shoot
    /// sleeps. The caller must make sure that etcd has no writers any more.
    pub async fn take_snapshot_before_sleep(stay: &Stay) -> Result<()> {
        let client = client(stay).await?;
        let (status, full) = ask_for_effect(stay, &client, "/snapshot/full").await?;
        if status.is_success() {
            return Ok(());
        }
        Err(error_of("a snapshot", status, &full))
    }

    /// "Creating ETCD Snapshot": a full snapshot that is marked as the last snapshot of the epoch. The caller
    /// must make sure that etcd has no writers any more. Where the owner is checked, the owner record must be
    /// gone, too: the step then waits for the snapshot instead of a request (R17-50). The snapshot counts
    /// only after etcd-backup-restore has proved that the bucket holds etcd's last revision in the present
    /// epoch (I2). The hand-over records this proof.
    pub async fn take_final_snapshot(f: &Facts) -> Result<()> {
        check_backup_entry(f).await?;
        f.mark_etcd(DRUID_MIGRATING, Some("true")).await?;
        let found = f.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let client = client(f).await?;
        match etcd_owner::final_snapshot(found.as_ref(), f.seed_object.spec.checks_owners()) {
            FinalSnapshot::OnRequest => {}
            FinalSnapshot::OnSeal => {
                let awaited = await_final_snapshot(&client, f.epoch(), Ended::BySealing);
                f.proven_end.keep(awaited.await?);
                return Ok(());
            }
            other => return Err(etcd_owner::cannot_be_taken(other)),
        }
        // An etcd-backup-restore that still checks the owner takes no final snapshot while clients may write.
        report_sealing(&client, f.epoch()).await?;
        f.proven_end
            .keep(ask_for_final_snapshot(&client, f.epoch()).await?);
        Ok(())
    }

    /// Reports to etcd-backup-restore that phase `Sealing` was recorded, before the owner record is deleted.
    /// The wait for the final snapshot repeats the report. This early report saves a check in between, so a
    /// failure is only logged.
    pub(crate) async fn announce_sealing(f: &Facts) {
        let reported = async { report_sealing(&client(f).await?, f.epoch()).await };
        match tokio::time::timeout(ANNOUNCED_WITHIN, reported).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "phase Sealing is reported later"),
            Err(_) => tracing::debug!("phase Sealing is reported later: no answer of etcd-backup-restore"),
        }
    }

    /// "Waiting until the last changes are saved": runs on a seed that lost the shoot in this epoch. The new
    /// owner continues without these changes (R17-46). Returns the last revision that was acknowledged to a
    /// client, or `None` when no etcd with backups runs here any more.
    ///
    /// The caller must make sure that etcd has no writers any more.
    ///
    /// # Errors
    /// The final snapshot does not exist yet, or etcd-backup-restore reports no end of the epoch; the error
    /// states the reason. The snapshot may be stored at any time.
    pub async fn save_what_is_left(stay: &Stay, epoch: i64) -> Result<Option<i64>> {
        let found = stay.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let Some(etcd) = found.filter(|etcd| etcd.spec.backup.store.is_some()) else {
            return Ok(None);
        };
        // `true` even for a seed without owner checks: the new owner is known here.
        match etcd_owner::final_snapshot(Some(&etcd), true) {
            FinalSnapshot::OnSeal => {
                let client = client(stay).await?;
                let end = await_final_snapshot(&client, epoch, Ended::ByTakeover).await?;
                let (status, latest) = ask(&client, Method::GET, "/snapshot/latest").await?;
                read_acknowledged_end(end.revision, status, &latest).map(Some)
            }
            FinalSnapshot::OnRequest => ask_for_final_snapshot(&client(stay).await?, epoch)
                .await
                .map(|end| Some(end.revision)),
            FinalSnapshot::EtcdStopped | FinalSnapshot::EtcdMissing => Ok(None),
        }
    }

    /// "Resuming backups": backups continue after a cancelled move. No effect where backups already run.
    pub async fn resume(stay: &Stay) -> Result<()> {
        let client = client(stay).await?;
        let (status, answer) = ask(&client, Method::POST, "/snapshot/resume").await?;
        if !status.is_success() {
            return Err(error_of("a snapshot", status, &answer));
        }
        stay.mark_etcd(DRUID_MIGRATING, None).await
    }
}

/// Fails when the BackupEntry is missing or reports an error. A missing BackupEntry stops a move, because the
/// BackupEntry names the place of the data.
async fn check_backup_entry(f: &Facts) -> Result<()> {
    let name = f.backup_entry_name();
    let Some(entry) = f.core_backup_entry().await? else {
        return Err(configuration_problem(format!(
            "the shoot has no BackupEntry {name}, and could not be restored elsewhere: set spec.seedName back, let the \
             shoot be reconciled, and begin the move again"
        )));
    };
    let status = entry.status.unwrap_or_default();
    if let Some(error) = status.last_error {
        return Err(Error::config(
            error
                .codes
                .first()
                .copied()
                .unwrap_or(ErrorCode::ErrRetryableInfraDependencies),
            format!("BackupEntry {name} reports an error: {}", error.description),
        ));
    }
    Ok(())
}

/// The last revision that was acknowledged to a client. An answer with an error states no revision, and would
/// count every change after the seal as lost.
fn read_acknowledged_end(end: i64, status: StatusCode, latest: &Value) -> Result<i64> {
    if !status.is_success() {
        return Err(error_of("the final snapshot", status, latest));
    }
    Ok(acknowledged_end(end, latest))
}

/// The event that ends the epoch of the final snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// This seed has recorded phase `Sealing`, and deletes the owner record.
    BySealing,
    /// A different seed has begun a later epoch.
    ByTakeover,
}

/// Reports phase `Sealing` to etcd-backup-restore. From then on, a deleted owner record ends the epoch there.
/// An etcd-backup-restore that answers 404 checks no owner, or is older than this report and needs no report.
async fn report_sealing(client: &Client, epoch: i64) -> Result<()> {
    let body = json!({ "epoch": epoch }).to_string().into_bytes();
    let (status, answer) = ask_with(client, Method::POST, "/ownership/sealing", body).await?;
    if status.is_success() || status == StatusCode::NOT_FOUND {
        return Ok(());
    }
    let said = answer["error"].as_str().unwrap_or("no reason is reported");
    Err(Error::transient(format!(
        "could not report to etcd-backup-restore that the seed ends ownership epoch {epoch} ({status}): {said}"
    )))
}

/// Requests the final snapshot, or reads the final snapshot that exists. Returns the end of the epoch.
async fn ask_for_final_snapshot(client: &Client, epoch: i64) -> Result<SealedEpoch> {
    let (status, answer) = ask(client, Method::POST, "/snapshot/full?final=true").await?;
    if status.is_success() {
        return check_final(&answer, epoch);
    }
    if answer["code"] == "finished" {
        let (status, latest) = ask(client, Method::GET, "/snapshot/latest").await?;
        if status.is_success() {
            return check_final(&latest["fullSnapshot"], epoch);
        }
        return Err(error_of("the final snapshot", status, &latest));
    }
    Err(error_of("the final snapshot", status, &answer))
}

/// Waits for the final snapshot that etcd-backup-restore takes when the shoot has no owner any more (R17-51),
/// or a different owner. Returns the end of the epoch.
async fn await_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    let mut last = Error::transient("etcd-backup-restore was not asked for the final snapshot yet");
    let looks = async {
        loop {
            match look_for_final_snapshot(client, epoch, ended).await {
                Ok(end) => return end,
                Err(why) => last = why,
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(POLL_TIMEOUT, looks).await.map_err(|_| last)
}

/// Reads the final snapshot. The error states why the snapshot is missing or not proved (R17-52).
async fn look_for_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    // The report comes first, and in each attempt: etcd-backup-restore forgets the report on a restart.
    if ended == Ended::BySealing {
        report_sealing(client, epoch).await?;
    }
    let (status, latest) = ask(client, Method::GET, "/snapshot/latest").await?;
    if !status.is_success() {
        return Err(error_of("the final snapshot", status, &latest));
    }
    if latest["finished"] == true {
        return check_final(&latest["fullSnapshot"], epoch);
    }
    let (_, ownership) = ask(client, Method::GET, "/ownership").await?;
    let (_, health) = ask(client, Method::GET, "/healthz").await?;
    Err(not_finished(&ownership, &health))
}

/// The reason why there is no final snapshot yet, from the `/ownership` and `/healthz` reports of
/// etcd-backup-restore.
fn not_finished(ownership: &Value, health: &Value) -> Error {
    let why = ownership["why"].as_str().unwrap_or("no reason is reported");
    let message = match ownership["state"].as_str() {
        Some("Sealed") => match health["error"].as_str() {
            Some(error) => format!("the final snapshot is not taken: {error}"),
            None => "the final snapshot is not taken yet".to_owned(),
        },
        Some("Serving") => {
            format!(
                "etcd-backup-restore has not noticed yet that the owner record is gone ({why}): no final snapshot yet"
            )
        }
        Some(state) => format!(
            "etcd-backup-restore is {state} ({why}): it takes the final snapshot when it can see that the owner record is gone"
        ),
        None => "etcd-backup-restore does not say who owns the shoot: is its pod older than the owner check?"
            .to_owned(),
    };
    let error = health["error"]
        .as_str()
        .filter(|_| ownership["state"] == "Sealed");
    match error.and_then(|error| error.split(':').next()) {
        Some("StoreCredentials") => Error::config(ErrorCode::ErrInfraUnauthenticated, message),
        Some("StoreUnavailable") => Error::config(ErrorCode::ErrRetryableInfraDependencies, message),
        _ => Error::Transient(message),
    }
}

/// The request is a GET with an effect, so the permit counts the request: the end of the permit waits for the
/// answer.
fn ask_for_effect(
    stay: &Stay,
    client: &Client,
    path: &'static str,
) -> BoxFuture<'static, Result<(StatusCode, Value)>> {
    let (permit, client) = (stay.seed.permit().clone(), client.clone());
    // Boxed, because otherwise the compiler cannot prove that the future is `Send`.
    let asking = async move { ask(&client, Method::GET, path).await }.boxed();
    async move { permit.effect(asking).await? }.boxed()
}

/// A client that trusts the etcd CA and presents the client certificate.
async fn client(stay: &Stay) -> Result<Client> {
    let secret = stay.secret_data(ETCD_CLIENT).await?;
    let url = stay.settings.etcd_backup_url.build(&stay.namespace);
    let mut config = client_config(&url, &secret)?;
    config.read_timeout = Some(stay.settings.timeouts.snapshot);
    let connection =
        Connection::new(config).context("could not prepare the connection to etcd-backup-restore")?;
    Ok(connection.client(stay.seed.permit()))
}

/// A client for a server whose certificate is from the CA of this Secret.
pub(crate) fn client_config(url: &str, secret: &Data) -> Result<Config> {
    let address = url
        .parse()
        .map_err(|e| Error::bug(format!("{url} is no URL: {e}")))?;
    let mut config = Config::new(address);
    let part = |key: &str| secret.get(key).map(Vec::as_slice).unwrap_or_default();
    let roots = pem::parse_many(part("ca.crt")).map_err(|e| Error::bug(format!("ca.crt is no PEM: {e}")))?;
    config.root_cert = Some(roots.into_iter().map(pem::Pem::into_contents).collect());
    config.auth_info = AuthInfo {
        client_certificate_data: Some(STANDARD.encode(part("tls.crt"))),
        client_key_data: Some(STANDARD.encode(part("tls.key")).into()),
        ..AuthInfo::default()
    };
    Ok(config)
}

async fn ask(client: &Client, method: Method, path: &str) -> Result<(StatusCode, Value)> {
    ask_with(client, method, path, Vec::new()).await
}

/// Like [`ask`], with a JSON body unless `body` is empty.
async fn ask_with(client: &Client, method: Method, path: &str, body: Vec<u8>) -> Result<(StatusCode, Value)> {
    let mut request = Request::builder().method(method).uri(path);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request
        .body(Body::from(body))
        .map_err(|e| Error::bug(e.to_string()))?;
    let response = client
        .send(request)
        .await
        .context("etcd-backup-restore does not answer")?;
    let status = response.status();
    let body = response
        .into_body()
        .collect_bytes()
        .await
        .context("etcd-backup-restore broke off its answer")?;
    let value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).chars().take(QUOTED).collect()));
    Ok((status, value))
}

/// Checks that the snapshot is the final snapshot of this epoch, was read back from the bucket, and holds
/// all acknowledged writes: up to etcd's last revision, or up to the revision at which the epoch was sealed.
/// After the seal leases expire in etcd, and no client reads such a revision.
fn check_final(snapshot: &Value, epoch: i64) -> Result<SealedEpoch> {
    let refused = |why: String| {
        Err(Error::transient(format!(
            "etcd-backup-restore took a snapshot that does not count as the final one: {why}"
        )))
    };
    if snapshot["isFinal"] != true {
        return refused("the snapshot is not marked as final".into());
    }
    if snapshot["verified"] != true {
        return refused("the snapshot was not read back from the bucket".into());
    }
    let number = |key: &str| snapshot[key].as_i64();
    let (stored, last, sealed) = (
        number("lastRevision"),
        number("etcdRevision"),
        number("sealedRevision"),
    );
    let holds_sealed = sealed.is_some() && last >= stored && stored >= sealed;
    let Some(revision) = stored.filter(|_| stored == last || holds_sealed) else {
        return refused(format!(
            "the snapshot ends with revision {}, and etcd with {}",
            snapshot["lastRevision"], snapshot["etcdRevision"]
        ));
    };
    let of = snapshot["epoch"].as_i64().unwrap_or(1);
    if of != epoch {
        return refused(format!(
            "the snapshot is of epoch {of}, and the shoot is in epoch {epoch}"
        ));
    }
    let part = |key: &str| snapshot[key].as_str().filter(|part| !part.is_empty());
    let (Some(name), Some(sha256)) = (part("snapName"), part("sha256")) else {
        return refused("the name and the sha256 of the snapshot are not reported".into());
    };
    Ok(SealedEpoch {
        epoch,
        revision,
        snapshot: name.to_owned(),
        sha256: sha256.to_owned(),
    })
}

/// The error that etcd-backup-restore reports, with the error code that names the party that has to act.
fn error_of(what: &str, status: StatusCode, answer: &Value) -> Error {
    let said = answer["error"]
        .as_str()
        .or(answer.as_str())
        .unwrap_or("no reason is reported");
    let message = format!("{what} was not taken ({status}): {said}");
    let code = match answer["code"].as_str() {
        Some("credentials") => ErrorCode::ErrInfraUnauthenticated,
        Some("configuration") => ErrorCode::ErrConfigurationProblem,
        Some("store" | "data-directory") => ErrorCode::ErrRetryableInfraDependencies,
        Some("snapshot-corrupt" | "snapshot-missing") => ErrorCode::ErrRetryableConfigurationProblem,
        _ => return Error::Transient(message),
    };
    Error::config(code, message)
}

#[cfg(test)]
#[path = "backups_tests.rs"]
mod tests;
