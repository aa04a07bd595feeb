//! The second witness: the process beside etcd, which asks by itself and says for how long what it was told
//! is still good.

use std::{path::PathBuf, time::Duration};

use futures::future::BoxFuture;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, Config, client::Body};
use ownership::{Relayed, SecondWitness, Testimony};
use permit::Permit;
use runtime::{Cluster, Connection, Seed};
use serde::Deserialize;

/// Where it answers inside the seed, by `{namespace}`. The Service leads to a pod that is not ready, too: it
/// is not while it keeps clients away.
pub const URL: &str = "https://etcd-main-peer.{namespace}.svc:8080";
/// Secret of the shoot's namespace of which such a process mounts the authority alone
/// ([`runtime::workload::Files::Authority`]).
pub const AUTHORITY: &str = "etcd-client";

/// The authority by which it is known. It is read for each question: it may have been renewed since the last
/// one.
#[derive(Clone)]
pub enum KnownBy {
    /// That of Secret `etcd-client` in a shoot's namespace.
    Secret {
        /// Where the shoot is.
        seed: Box<Seed>,
        /// Its namespace.
        namespace: String,
    },
    /// A PEM file.
    File(PathBuf),
    /// It needs none: plain HTTP.
    Nobody,
}

/// That of one shoot.
pub struct Sidecar {
    /// Where it answers.
    pub url: String,
    /// Its authority.
    pub known_by: KnownBy,
    /// The right to ask.
    pub permit: Permit,
}

impl SecondWitness for Sidecar {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async {
            let said = self.asked().await;
            said.unwrap_or_else(|why| Testimony::Silent(format!("etcd-backup-restore: {why}")))
        })
    }
}

/// What it says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    epoch: i64,
    answer: String,
    #[serde(default)]
    valid_for_milliseconds: u64,
    #[serde(default)]
    why: String,
}

impl Sidecar {
    async fn asked(&self) -> Result<Testimony, String> {
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
        let said = serde_json::from_slice(&body);
        testimony(&said.map_err(|error| format!("its answer cannot be understood: {error}"))?)
    }

    /// For one question.
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
        let (text, place) = match &self.known_by {
            KnownBy::Secret { seed, namespace } => {
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
            KnownBy::File(file) => {
                let text = tokio::fs::read(file).await;
                let text = text.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
                (text, file.display().to_string())
            }
            KnownBy::Nobody => return Err("no authority is named for HTTPS".to_owned()),
        };
        let roots = pem::parse_many(&text).map_err(|_| format!("{place} is no PEM"))?;
        Ok(roots.into_iter().map(pem::Pem::into_contents).collect())
    }
}

/// What is said, as a testimony. What it does not know itself it passes on as nothing.
fn testimony(said: &Said) -> Result<Testimony, String> {
    let left = Duration::from_millis(said.valid_for_milliseconds);
    let testimony = Relayed::read(&said.answer, left).testimony(said.epoch);
    testimony.ok_or_else(|| format!("{}: {}", said.answer, said.why))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn heard(text: &str) -> Result<Testimony, String> {
        testimony(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_it_says_is_never_more_than_it_has_itself() {
        let owned = heard(
            r#"{"epoch": 3, "answer": "Owned", "validForMilliseconds": 7000, "state": "Serving", "why": "", "etcd": null}"#,
        );
        let left = Some(Duration::from_secs(7));
        assert_eq!(owned.unwrap(), Testimony::Owned { epoch: 3, left });
        // One that does not say for how long says it for no time at all.
        let left = Some(Duration::ZERO);
        let short = heard(r#"{"epoch": 3, "answer": "Owned"}"#);
        assert_eq!(short.unwrap(), Testimony::Owned { epoch: 3, left });
        let sealed = heard(r#"{"epoch": 3, "answer": "Sealed", "validForMilliseconds": 0}"#);
        assert_eq!(sealed.unwrap(), Testimony::Sealed { epoch: 3 });
        for nothing in [
            r#"{"epoch": 3, "answer": "Unknown", "validForMilliseconds": 7000, "why": "nobody said so"}"#,
            r#"{"epoch": 3, "answer": "owned", "validForMilliseconds": 7000}"#,
        ] {
            assert!(heard(nothing).is_err(), "{nothing}");
        }
    }
}
