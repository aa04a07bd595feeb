//! The final snapshot, asked of etcd-backup-restore, or awaited where that takes it by itself: what the next seed starts from
//! (I2).

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

/// Longest part of an answer that is quoted.
const QUOTED: usize = 300;
/// Pause between two looks whether the final snapshot is there: nothing tells of it. Much shorter than one takes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// For so long the first report of phase `Sealing` may hold up a move.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);
/// For so long one attempt of the step looks. Much shorter than the step's patience, so that what it says in the end says why.
const LOOK_FOR: Duration = Duration::from_secs(60);

/// The shoot's backups, by the process that takes them.
#[derive(Debug)]
pub struct Backups;

impl Backups {
    /// "Checking that backups can be taken": before anything of a move changes something, while the API still serves. A move
    /// that could not store its final snapshot would end with a shoot that is stopped and cannot go on.
    pub async fn check(f: &Facts) -> Result<()> {
        check_backup_entry(f).await?;
        let client = client(f).await?;
        let (status, stored) = ask_for_effect(f, &client, "/snapshot/delta").await?;
        if !status.is_success() {
            return Err(error_of("a snapshot", status, &stored));
        }
        // Nothing had changed: nothing was stored, and nothing is proved.
        if stored.is_null() {
            let (status, full) = ask_for_effect(f, &client, "/snapshot/full").await?;
            if !status.is_success() {
                return Err(error_of("a snapshot", status, &full));
            }
        }
        Ok(())
    }

    /// "Creating ETCD Snapshot before etcd sleeps": what lies in the bucket is all there is, for as long as the shoot sleeps. Must be
    /// called when nothing can write to etcd any more.
    pub async fn complete(stay: &Stay) -> Result<()> {
        let client = client(stay).await?;
        let (status, full) = ask_for_effect(stay, &client, "/snapshot/full").await?;
        if status.is_success() {
            return Ok(());
        }
        Err(error_of("a snapshot", status, &full))
    }

    /// "Creating ETCD Snapshot": a full snapshot that is marked as the last one. Must be called when nothing can write to
    /// etcd any more. Where the owner is checked, the owner record must be gone, too: the snapshot is awaited then, not asked
    /// for (R17-50). It counts only when etcd-backup-restore has proved that what lies in the bucket is etcd's last revision,
    /// of the present epoch (I2). The hand-over records what was proved.
    pub async fn take_final_snapshot(f: &Facts) -> Result<()> {
        check_backup_entry(f).await?;
        f.mark_etcd(DRUID_MIGRATING, Some("true")).await?;
        let found = f.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let client = client(f).await?;
        match etcd_owner::final_snapshot(found.as_ref(), f.seed_object.spec.checks_owners()) {
            FinalSnapshot::AskedFor => {}
            FinalSnapshot::TakenByItself => {
                let awaited = await_final_snapshot(&client, f.epoch(), Ended::BySealing);
                f.proven_end.keep(awaited.await?);
                return Ok(());
            }
            other => return Err(etcd_owner::cannot_be_taken(other)),
        }
        // A process that still checks the owner takes no final snapshot while clients may write.
        report_sealing(&client, f.epoch()).await?;
        f.proven_end
            .keep(ask_for_final_snapshot(&client, f.epoch()).await?);
        Ok(())
    }

    /// Reports to etcd-backup-restore that phase `Sealing` was recorded, before the owner record goes. The
    /// wait for the final snapshot repeats the report; this one saves a check that comes in between. So what
    /// stands in its way is not told.
    pub(crate) async fn announce_sealing(f: &Facts) {
        let reported = async { report_sealing(&client(f).await?, f.epoch()).await };
        match tokio::time::timeout(ANNOUNCED_WITHIN, reported).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "phase Sealing is reported later"),
            Err(_) => tracing::debug!("phase Sealing is reported later: no answer of etcd-backup-restore"),
        }
    }

    /// "Waiting until the last changes are saved": on a seed that lost the shoot in this epoch to another one that goes on without
    /// them (R17-46). Gives the last revision of which a client was told; nothing where no etcd with backups runs here any more.
    ///
    /// Must be called when nothing can write to etcd any more.
    ///
    /// # Errors
    /// There is no final snapshot yet, with the reason. It may come at any time.
    pub async fn save_what_is_left(stay: &Stay, epoch: i64) -> Result<Option<i64>> {
        let found = stay.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let Some(etcd) = found.filter(|etcd| etcd.spec.backup.store.is_some()) else {
            return Ok(None);
        };
        // Whether the seed keeps records is no matter: whose the shoot is now is known.
        match etcd_owner::final_snapshot(Some(&etcd), true) {
            FinalSnapshot::TakenByItself => {
                let client = client(stay).await?;
                let end = await_final_snapshot(&client, epoch, Ended::ByTakeover).await?;
                let (_, latest) = ask(&client, Method::GET, "/snapshot/latest").await?;
                Ok(Some(acknowledged_end(end.revision, &latest)))
            }
            FinalSnapshot::AskedFor => ask_for_final_snapshot(&client(stay).await?, epoch)
                .await
                .map(|end| Some(end.revision)),
            FinalSnapshot::NotTaken | FinalSnapshot::Unknown => Ok(None),
        }
    }

    /// "Resuming backups": a shoot whose move was called off is backed up again. Changes nothing where backups go on.
    pub async fn resume(stay: &Stay) -> Result<()> {
        let client = client(stay).await?;
        let (status, answer) = ask(&client, Method::POST, "/snapshot/resume").await?;
        if !status.is_success() {
            return Err(error_of("a snapshot", status, &answer));
        }
        stay.mark_etcd(DRUID_MIGRATING, None).await
    }
}

/// The shoot's backups are well as far as its BackupEntry tells. One that has vanished stops a move: nothing would say
/// where the data are.
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
            format!("BackupEntry {name} is in trouble: {}", error.description),
        ));
    }
    Ok(())
}

/// What ends the epoch in which the final snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// This seed has recorded phase `Sealing`, and deletes the owner record.
    BySealing,
    /// Another seed has begun a later epoch.
    ByTakeover,
}

/// Reports phase `Sealing` to etcd-backup-restore, where a deleted owner record ends the epoch from then on.
/// A process that answers 404 checks no owner, or is older than this report and needs none.
async fn report_sealing(client: &Client, epoch: i64) -> Result<()> {
    let body = json!({ "epoch": epoch }).to_string().into_bytes();
    let (status, answer) = ask_with(client, Method::POST, "/ownership/sealing", body).await?;
    if status.is_success() || status == StatusCode::NOT_FOUND {
        return Ok(());
    }
    let said = answer["error"].as_str().unwrap_or("it says no more");
    Err(Error::transient(format!(
        "etcd-backup-restore was not told that the seed ends ownership epoch {epoch} ({status}): {said}"
    )))
}

/// Has it taken, or finds the one that was. Gives the end of the epoch.
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

/// Waits for the final snapshot that etcd-backup-restore takes by itself, as the shoot has no owner any more (R17-51), or another
/// one. Gives the end of the epoch.
async fn await_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    let mut last = Error::transient("etcd-backup-restore was not asked for the final snapshot yet");
    let looks = async {
        loop {
            match look_for_final_snapshot(client, epoch, ended).await {
                Ok(end) => return end,
                Err(why) => last = why,
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(LOOK_FOR, looks).await.map_err(|_| last)
}

/// Whether it is there and proved (R17-52); else why not.
async fn look_for_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    // First, and each time: the process beside etcd forgets the report when it is started again.
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

/// Why there is no final snapshot yet, by what etcd-backup-restore says of the owner and of itself.
fn not_finished(ownership: &Value, health: &Value) -> Error {
    let why = ownership["why"].as_str().unwrap_or("it says no more");
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

/// It reads by its method, and has an effect: whoever gives its right back waits for the answer.
fn ask_for_effect(
    stay: &Stay,
    client: &Client,
    path: &'static str,
) -> BoxFuture<'static, Result<(StatusCode, Value)>> {
    let (permit, client) = (stay.seed.permit().clone(), client.clone());
    // Boxed, or the compiler cannot see that it may be sent to another thread.
    let asking = async move { ask(&client, Method::GET, path).await }.boxed();
    async move { permit.effect(asking).await? }.boxed()
}

/// A client that trusts etcd's authority and shows the client certificate.
async fn client(stay: &Stay) -> Result<Client> {
    let secret = stay.secret_data(ETCD_CLIENT).await?;
    let url = stay.settings.etcd_backup_url.of(&stay.namespace);
    let mut config = client_config(&url, &secret)?;
    config.read_timeout = Some(stay.settings.timeouts.snapshot);
    let connection =
        Connection::new(config).context("could not prepare the connection to etcd-backup-restore")?;
    Ok(connection.client(stay.seed.permit()))
}

/// A client for a server with a certificate of the same authority as the Secret's own.
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

/// The same with a JSON body, unless that is empty.
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

/// Whether it is the final snapshot of this epoch, was read back from the bucket, and holds etcd's last
/// revision.
fn check_final(snapshot: &Value, epoch: i64) -> Result<SealedEpoch> {
    let refused = |why: String| {
        Err(Error::transient(format!(
            "etcd-backup-restore took a snapshot that does not count as the final one: {why}"
        )))
    };
    if snapshot["isFinal"] != true {
        return refused("it is not marked so".into());
    }
    if snapshot["verified"] != true {
        return refused("it was not read back from the bucket".into());
    }
    let (stored, last) = (
        snapshot["lastRevision"].as_i64(),
        snapshot["etcdRevision"].as_i64(),
    );
    let Some(revision) = stored.filter(|_| stored == last) else {
        return refused(format!(
            "it ends with revision {}, and etcd with {}",
            snapshot["lastRevision"], snapshot["etcdRevision"]
        ));
    };
    let of = snapshot["epoch"].as_i64().unwrap_or(1);
    if of != epoch {
        return refused(format!("it is of epoch {of}, and the shoot is in epoch {epoch}"));
    }
    let part = |key: &str| snapshot[key].as_str().filter(|part| !part.is_empty());
    let (Some(name), Some(sha256)) = (part("snapName"), part("sha256")) else {
        return refused("its name and its sha256 are not reported".into());
    };
    Ok(SealedEpoch {
        epoch,
        revision,
        snapshot: name.to_owned(),
        sha256: sha256.to_owned(),
    })
}

/// What etcd-backup-restore says, with the code that says who has to act.
fn error_of(what: &str, status: StatusCode, answer: &Value) -> Error {
    let said = answer["error"]
        .as_str()
        .or(answer.as_str())
        .unwrap_or("it says no more");
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
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_says_who_has_to_act() {
        let refused =
            json!({"code": "credentials", "error": "StoreCredentials: put working ones into the Secret"});
        let error = error_of("the final snapshot", StatusCode::BAD_GATEWAY, &refused);
        assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
        assert!(error.to_string().contains("put working ones"));
        assert!(
            error_of(
                "the final snapshot",
                StatusCode::SERVICE_UNAVAILABLE,
                &json!({"code": "etcd"})
            )
            .is_retryable()
        );
        assert!(
            error_of(
                "the final snapshot",
                StatusCode::BAD_GATEWAY,
                &json!("a proxy's page")
            )
            .is_retryable()
        );
    }

    /// R17-51: what stands in the way is said, with the code of who has to act.
    #[test]
    fn a_final_snapshot_that_does_not_come_says_why() {
        let of = |state: Option<&str>, error: Option<&str>| {
            not_finished(
                &json!({"state": state, "why": "no server answers"}),
                &json!({"error": error}),
            )
        };
        for (state, error, code, said) in [
            (Some("Serving"), None, None, "has not noticed yet"),
            (Some("Suspended"), None, None, "is Suspended (no server answers)"),
            (
                Some("Waiting"),
                Some("StoreCredentials: no"),
                None,
                "is Waiting (no server answers)",
            ),
            (Some("Sealed"), None, None, "not taken yet"),
            (
                Some("Sealed"),
                Some("EtcdUnavailable: no"),
                None,
                "not taken: EtcdUnavailable",
            ),
            (
                Some("Sealed"),
                Some("StoreCredentials: put working ones into the Secret"),
                Some(ErrorCode::ErrInfraUnauthenticated),
                "put working ones",
            ),
            (
                Some("Sealed"),
                Some("StoreUnavailable: no answer"),
                Some(ErrorCode::ErrRetryableInfraDependencies),
                "no answer",
            ),
            (None, None, None, "does not say who owns"),
        ] {
            let told = of(state, error);
            assert!(told.to_string().contains(said), "{state:?} {told}");
            assert_eq!(told.codes().first().copied(), code, "{state:?} {error:?}");
        }
    }

    /// I2: no volume goes before it is proved that the bucket holds etcd's last revision.
    #[test]
    fn only_a_proven_snapshot_of_this_epoch_counts() {
        let proven = json!({"isFinal": true, "verified": true, "lastRevision": 7, "etcdRevision": 7, "epoch": 2, "snapName": "Full.final",
            "sha256": "aa"});
        let end = SealedEpoch {
            epoch: 2,
            revision: 7,
            snapshot: "Full.final".into(),
            sha256: "aa".into(),
        };
        assert_eq!(check_final(&proven, 2).ok(), Some(end));
        for (key, value) in [
            ("isFinal", json!(false)),
            ("verified", json!(false)),
            ("verified", Value::Null),
            ("lastRevision", json!(6)),
            ("etcdRevision", Value::Null),
            ("epoch", json!(1)),
            ("epoch", Value::Null),
            ("snapName", Value::Null),
            ("sha256", json!("")),
        ] {
            let mut other = proven.clone();
            other[key] = value;
            assert!(check_final(&other, 2).is_err(), "{other}");
        }
        assert!(check_final(&Value::Null, 1).is_err());
    }
}
