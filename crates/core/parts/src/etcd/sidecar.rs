//! Requests to etcd-backup-restore, and the answers.

use api::meta::ErrorCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request, StatusCode, header::CONTENT_TYPE};
use kube::{Client, Config, client::Body, config::AuthInfo};
use runtime::{
    Error, Result,
    client::{Cluster, Connection},
    error::Explain,
};
use serde::de::DeserializeOwned;
use sidecar_protocol::{ErrorAnswer, ErrorClass};

use crate::{
    Residency,
    secrets::{config::ETCD_CLIENT, issue::Data},
};

/// A client that trusts the etcd CA and presents the client certificate.
pub(crate) async fn client(residency: &Residency) -> Result<Client> {
    let secret = residency.secret_data(ETCD_CLIENT).await?;
    let url = residency.settings.etcd_backup_url.build(&residency.namespace);
    let mut config = client_config(&url, &secret)?;
    config.read_timeout = Some(residency.settings.timeouts.snapshot);
    let connection =
        Connection::new(config).context("could not prepare the connection to etcd-backup-restore")?;
    Ok(connection.client(residency.seed.permit()))
}

/// A client for a server whose certificate is from the CA of this Secret.
pub(crate) fn client_config(url: &str, secret: &Data) -> Result<Config> {
    let address = url
        .parse()
        .map_err(|e| Error::bug(format!("{url} is no URL")).caused_by(e))?;
    let mut config = Config::new(address);
    let part = |key: &str| secret.get(key).map(Vec::as_slice).unwrap_or_default();
    let roots = pem::parse_many(part("ca.crt")).map_err(|e| Error::bug("ca.crt is no PEM").caused_by(e))?;
    config.root_cert = Some(roots.into_iter().map(pem::Pem::into_contents).collect());
    config.auth_info = AuthInfo {
        client_certificate_data: Some(STANDARD.encode(part("tls.crt"))),
        client_key_data: Some(STANDARD.encode(part("tls.key")).into()),
        ..AuthInfo::default()
    };
    Ok(config)
}

/// An answer of etcd-backup-restore, not read yet.
pub(crate) struct SidecarAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl SidecarAnswer {
    /// The content, where the request succeeded. `action`: the requested action, such as "take a snapshot".
    pub(crate) fn read<T: DeserializeOwned>(&self, action: &str) -> Result<T> {
        self.check(action)?;
        serde_json::from_slice(&self.body).map_err(|e| {
            let message =
                format!("the answer of etcd-backup-restore to the request to {action} cannot be read");
            Error::transient(message).caused_by(e)
        })
    }

    /// The error that etcd-backup-restore reports, if the request failed. `action`: see [`Self::read`].
    pub(crate) fn check(&self, action: &str) -> Result<()> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(error_of(action, self.status, &self.error()))
    }

    pub(crate) fn error(&self) -> ErrorAnswer {
        ErrorAnswer::read(&self.body)
    }
}

/// Sends a request without a body.
pub(crate) async fn ask(client: &Client, method: Method, path: &str) -> Result<SidecarAnswer> {
    ask_with(client, method, path, Vec::new()).await
}

/// Like [`ask`], with a JSON body unless `body` is empty.
pub(crate) async fn ask_with(
    client: &Client,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<SidecarAnswer> {
    let mut request = Request::builder().method(method).uri(path);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request
        .body(Body::from(body))
        .map_err(|e| Error::bug(runtime::ErrorMessage::from_source(e)))?;
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
    Ok(SidecarAnswer {
        status,
        body: body.to_vec(),
    })
}

/// The error that etcd-backup-restore reports, with the error code that names the party that has to act.
fn error_of(action: &str, status: StatusCode, error: &ErrorAnswer) -> Error {
    let message = format!(
        "etcd-backup-restore could not {action} ({status}): {}",
        error.sentence()
    );
    let code = match error.code {
        Some(ErrorClass::Credentials) => ErrorCode::ErrInfraUnauthenticated,
        Some(ErrorClass::Configuration) => ErrorCode::ErrConfigurationProblem,
        Some(ErrorClass::Store | ErrorClass::DataDirectory) => ErrorCode::ErrRetryableInfraDependencies,
        Some(ErrorClass::SnapshotCorrupt | ErrorClass::SnapshotMissing) => {
            ErrorCode::ErrRetryableConfigurationProblem
        }
        _ => return Error::transient(message),
    };
    Error::config(code, message)
}
