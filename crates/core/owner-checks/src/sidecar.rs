//! The second witness: the process beside etcd. The sidecar runs a check of the shoot's owner and reports how
//! long the last answer stays valid.

use std::{path::PathBuf, time::Duration};

use futures::future::BoxFuture;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, Config, client::Body};
use ownership::{RelayedAnswer, SecondWitness, Testimony};
use permit::Permit;
use runtime::client::{Cluster, Connection, Seed};
use sidecar_protocol::SidecarOwnership;

/// Address of the sidecar inside the seed; `{namespace}` is the shoot's namespace. The Service must include
/// pods that are not ready, because the pod is not ready while the sidecar shuts out clients.
pub const URL: &str = "https://etcd-main-peer.{namespace}.svc:8080";
/// Secret of the shoot's namespace. A process mounts only the certificate authority of this Secret
/// ([`runtime::workload::Files::Authority`]).
pub const AUTHORITY: &str = "etcd-client";

/// The certificate authority that verifies the sidecar. The authority is read for each question, because a
/// renewal may have replaced the file or Secret in between.
#[derive(Clone)]
pub enum SidecarTrust {
    /// The authority in Secret `etcd-client` of a shoot's namespace.
    Secret {
        /// Seed of the shoot.
        seed: Box<Seed>,
        /// Namespace of the shoot.
        namespace: String,
    },
    /// A PEM file.
    File(PathBuf),
    /// No authority: plain HTTP.
    PlainHttp,
}

/// Client of a single shoot's sidecar.
pub struct Sidecar {
    /// Base URL of the sidecar.
    pub url: String,
    /// Certificate authority of the sidecar.
    pub trust: SidecarTrust,
    /// The right to ask.
    pub permit: Permit,
}

impl SecondWitness for Sidecar {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async {
            let testimony = self.request_testimony().await;
            testimony.unwrap_or_else(|why| Testimony::Silent(format!("etcd-backup-restore: {why}")))
        })
    }
}

impl Sidecar {
    async fn request_testimony(&self) -> Result<Testimony, String> {
        let request = Request::get("/ownership").body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let client = self.client().await?;
        let answer = client
            .send(request)
            .await
            .map_err(|error| format!("it does not answer: {error}"))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Err("it does not ask who owns the shoot".to_owned()),
            status => return Err(format!("it answers {status}")),
        }
        let body = answer.into_body().collect_bytes().await;
        let body = body.map_err(|error| format!("it broke off its answer: {error}"))?;
        let response = serde_json::from_slice(&body);
        testimony(&response.map_err(|error| format!("its answer cannot be understood: {error}"))?)
    }

    /// Builds a client for a single question.
    async fn client(&self) -> Result<Client, String> {
        let url = &self.url;
        let address: http::Uri = url.parse().map_err(|error| format!("{url} is no URL: {error}"))?;
        let mut config = Config::new(address);
        if url.starts_with("https://") {
            config.root_cert = Some(self.authority().await?);
        }
        let connection = Connection::new(config).map_err(|error| error.to_string())?;
        Ok(connection.client(&self.permit))
    }

    async fn authority(&self) -> Result<Vec<Vec<u8>>, String> {
        let (text, place) = match &self.trust {
            SidecarTrust::Secret { seed, namespace } => {
                let secrets = seed.namespaced::<Secret>(namespace);
                let found = secrets.get_opt(AUTHORITY).await;
                let found =
                    found.map_err(|error| format!("the Secret {AUTHORITY} cannot be read: {error}"))?;
                let data = found.and_then(|secret| secret.data).unwrap_or_default();
                let Some(text) = data.get("ca.crt") else {
                    return Err(format!("the Secret {AUTHORITY} has no ca.crt"));
                };
                (text.0.clone(), format!("ca.crt of the Secret {AUTHORITY}"))
            }
            SidecarTrust::File(file) => {
                let text = tokio::fs::read(file).await;
                let text = text.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
                (text, file.display().to_string())
            }
            SidecarTrust::PlainHttp => return Err("no authority is named for HTTPS".to_owned()),
        };
        let roots = pem::parse_many(&text).map_err(|_| format!("{place} is no PEM"))?;
        Ok(roots.into_iter().map(pem::Pem::into_contents).collect())
    }
}

/// Translates the response into a testimony. An answer without knowledge (Unknown) becomes an error, so that
/// the witness counts as silent.
fn testimony(response: &SidecarOwnership) -> Result<Testimony, String> {
    let (Some(epoch), Some(answer)) = (response.epoch, &response.answer) else {
        return Err("the answer of etcd-backup-restore has no epoch or no owner".to_owned());
    };
    let left = Duration::from_millis(response.valid_for_milliseconds);
    let testimony = RelayedAnswer::read(answer, left).testimony(epoch);
    testimony.ok_or_else(|| format!("{answer}: {}", response.why))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read_response(text: &str) -> Result<Testimony, String> {
        testimony(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_testimony_is_valid_no_longer_than_the_permit_of_the_sidecar() {
        let owned = read_response(
            r#"{"epoch": 3, "answer": "Owned", "validForMilliseconds": 7000, "state": "Serving", "why": "", "etcd": null}"#,
        );
        let left = Some(Duration::from_secs(7));
        assert_eq!(owned.unwrap(), Testimony::Owned { epoch: 3, left });
        // A response without `validForMilliseconds` is valid for no time.
        let left = Some(Duration::ZERO);
        let short = read_response(r#"{"epoch": 3, "answer": "Owned"}"#);
        assert_eq!(short.unwrap(), Testimony::Owned { epoch: 3, left });
        let sealed = read_response(r#"{"epoch": 3, "answer": "Sealed", "validForMilliseconds": 0}"#);
        assert_eq!(sealed.unwrap(), Testimony::Sealed { epoch: 3 });
        for nothing in [
            r#"{"epoch": 3, "answer": "Unknown", "validForMilliseconds": 7000, "why": "nobody said so"}"#,
            r#"{"epoch": 3, "answer": "owned", "validForMilliseconds": 7000}"#,
            r#"{"answer": "Owned", "validForMilliseconds": 7000}"#,
            r#"{"epoch": 3, "validForMilliseconds": 7000}"#,
        ] {
            assert!(read_response(nothing).is_err(), "{nothing}");
        }
    }
}
