//! The health that etcd itself reports at its probe port: whether alarm NOSPACE is raised.
//!
//! The probes do not show the alarm: an etcd that refuses writes answers reads, and stays ready. The process
//! beside etcd reports the alarm too, but an etcd without backups has no such process.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, client::Body};
use runtime::client::{Cluster, Seed};
use serde::Deserialize;

use crate::{
    containers::statuses,
    names::{ETCD_CONTAINER, PROBE_PORT},
};

/// Longer than an answer from memory takes through a busy API server, shorter than the status of an Etcd may
/// wait for the answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The answer of `/health`. The status code is 503 while an alarm is raised.
#[derive(Debug, Default, Deserialize)]
struct Health {
    #[serde(default)]
    reason: String,
}

/// Whether a member that serves refuses writes. No answer counts as no alarm: readiness reports an etcd that
/// does not serve.
pub async fn refuses_writes(seed: &Seed, members: &[Pod]) -> bool {
    let Some(pod) = members.iter().find(|pod| serves(pod)) else {
        return false;
    };
    let asked = tokio::time::timeout(ANSWER_WITHIN, health(seed, pod)).await;
    asked.ok().flatten().is_some_and(|health| health.has_no_space())
}

async fn health(seed: &Seed, pod: &Pod) -> Option<Health> {
    let (namespace, name) = (pod.namespace()?, pod.name_any());
    let path = format!("/api/v1/namespaces/{namespace}/pods/http:{name}:{PROBE_PORT}/proxy/health");
    let request = http::Request::get(path).body(Body::empty()).ok()?;
    let answer = seed.client().send(request).await;
    let answer = answer.inspect_err(|error| tracing::debug!(%error, pod = name, "etcd did not answer"));
    let body = answer.ok()?.into_body().collect_bytes().await.ok()?;
    serde_json::from_slice(&body).ok()
}

impl Health {
    fn has_no_space(&self) -> bool {
        self.reason.contains("ALARM NOSPACE")
    }
}

fn serves(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && statuses(pod).any(|status| status.name == ETCD_CONTAINER && status.ready)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The answers of etcd 3.6.8, and of an API server that does not reach the pod.
    #[test]
    fn the_alarm_is_read_from_the_reason() {
        for (answer, expected) in [
            (r#"{"health":"false","reason":"ALARM NOSPACE"}"#, true),
            (r#"{"health":"true","reason":""}"#, false),
            (r#"{"health":"false","reason":"ALARM CORRUPT"}"#, false),
            (r#"{"health":"false","reason":"RAFT NO LEADER"}"#, false),
            (r#"{"kind":"Status","reason":"ServiceUnavailable"}"#, false),
            (r#"{"health":"true"}"#, false),
        ] {
            let health: Health = serde_json::from_str(answer).unwrap();
            assert_eq!(health.has_no_space(), expected, "{answer}");
        }
    }
}
