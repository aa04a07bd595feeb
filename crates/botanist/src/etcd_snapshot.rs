//! The final snapshot, asked of etcd-backup-restore: what the next seed starts from (I2).

use api::meta::ErrorCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, StatusCode};
use kube::{Client, Config, client::Body, config::AuthInfo};
use runtime::{Error, Result, error::Context};
use serde_json::Value;

use crate::{
    Botanist,
    secrets::{config::ETCD_CLIENT, issue::Data},
};

/// Longest part of an answer that is quoted.
const QUOTED: usize = 300;

impl Botanist {
    /// "Creating ETCD Snapshot": a full snapshot that is marked as the last one. Must be called when nothing can write to
    /// etcd any more. Where it was taken already, that is fine: the mark says that nothing was written since.
    pub async fn take_final_snapshot(&self) -> Result<()> {
        let client = self.backup_client(&self.secret_data(ETCD_CLIENT).await?)?;
        let (status, answer) = get(&client, "/snapshot/full?final=true").await?;
        if status.is_success() {
            return check_final(&answer);
        }
        if answer["code"] == "finished" {
            let (status, latest) = get(&client, "/snapshot/latest").await?;
            if status.is_success() {
                return check_final(&latest["fullSnapshot"]);
            }
            return Err(error_of(status, &latest));
        }
        Err(error_of(status, &answer))
    }

    /// A client that trusts etcd's authority and shows the client certificate.
    fn backup_client(&self, secret: &Data) -> Result<Client> {
        let url = self.settings.etcd_backup_url.of(&self.namespace);
        let mut config = client_config(&url, secret)?;
        config.read_timeout = Some(self.settings.timeouts.snapshot);
        Client::try_from(config).context("could not prepare the connection to etcd-backup-restore")
    }
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

async fn get(client: &Client, path: &str) -> Result<(StatusCode, Value)> {
    let request = Request::get(path)
        .body(Body::empty())
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

fn check_final(snapshot: &Value) -> Result<()> {
    if snapshot["isFinal"] == true {
        return Ok(());
    }
    Err(Error::transient(
        "etcd-backup-restore took a snapshot and does not say that it is the final one",
    ))
}

/// What etcd-backup-restore says, with the code that says who has to act.
fn error_of(status: StatusCode, answer: &Value) -> Error {
    let said = answer["error"]
        .as_str()
        .or(answer.as_str())
        .unwrap_or("it says no more");
    let message = format!("the final snapshot was not taken ({status}): {said}");
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
        let error = error_of(StatusCode::BAD_GATEWAY, &refused);
        assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
        assert!(error.to_string().contains("put working ones"));
        assert!(error_of(StatusCode::SERVICE_UNAVAILABLE, &json!({"code": "etcd"})).is_retryable());
        assert!(error_of(StatusCode::BAD_GATEWAY, &json!("a proxy's page")).is_retryable());
    }

    #[test]
    fn only_a_marked_snapshot_counts() {
        assert!(check_final(&json!({"isFinal": true})).is_ok());
        assert!(check_final(&json!({"isFinal": false})).is_err());
        assert!(check_final(&Value::Null).is_err());
    }
}
