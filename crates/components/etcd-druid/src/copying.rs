//! The progress of a copy of backups, as the copying process reports it over HTTP. No answer is no obstacle:
//! the last answer stays.

use std::time::Duration;

use api::druid::{CopyProgress, Etcd};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use runtime::client::{Cluster, Seed};

use crate::{
    containers::statuses,
    names::{BACKUP_CONTAINER, BACKUP_PORT},
};

/// Longer than an answer from memory takes through a busy API server, shorter than the pause between two
/// questions.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Asks the copying process of an Etcd for its progress. `None` where no copy runs, or the process does not
/// answer.
pub async fn ask_progress(seed: &Seed, etcd: &Etcd, copies: &[Pod]) -> Option<CopyProgress> {
    let path = progress_path(etcd, copies)?;
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    let answer = tokio::time::timeout(ANSWER_WITHIN, seed.client().request::<CopyProgress>(request)).await;
    let progress = answer
        .ok()?
        .inspect_err(|error| tracing::debug!(%error, "the copy of backups did not report its progress"));
    progress.ok().filter(is_valid)
}

/// The path of the API server's proxy to the running copy.
fn progress_path(etcd: &Etcd, copies: &[Pod]) -> Option<String> {
    etcd.spec.backup.source_store.as_ref()?;
    let pod = copies.iter().find(|pod| is_running(pod))?;
    let (namespace, name) = (pod.namespace()?, pod.name_any());
    let port = etcd.spec.backup.port.unwrap_or(BACKUP_PORT);
    Some(format!(
        "/api/v1/namespaces/{namespace}/pods/http:{name}:{port}/proxy/progress"
    ))
}

fn is_running(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && statuses(pod).any(|status| {
            let state = status.state.as_ref();
            status.name == BACKUP_CONTAINER && state.is_some_and(|state| state.running.is_some())
        })
}

/// An API server refuses a status with a negative number, and the copy would never be seen to end.
fn is_valid(progress: &CopyProgress) -> bool {
    progress.copied_bytes >= 0 && progress.total_bytes >= progress.copied_bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn copy_with(store: &Value, state: &Value) -> Option<String> {
        let etcd = json!({"metadata": {"name": "etcd-main"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {}}, "labels": {}, "etcd": {}, "backup": {"sourceStore": store}}});
        let pod = json!({"metadata": {"name": "etcd-copy-x", "namespace": "shoot--dev--web"}, "status": {"containerStatuses": [
            {"name": "backup-restore", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state}]}});
        let (etcd, pod): (Etcd, Pod) = (
            serde_json::from_value(etcd).unwrap(),
            serde_json::from_value(pod).unwrap(),
        );
        progress_path(&etcd, &[pod])
    }

    #[test]
    fn only_a_copy_that_runs_is_asked_for_its_progress() {
        let (store, running) = (json!({"prefix": "p"}), json!({"running": {}}));
        assert_eq!(
            copy_with(&store, &running).unwrap(),
            "/api/v1/namespaces/shoot--dev--web/pods/http:etcd-copy-x:8080/proxy/progress"
        );
        assert_eq!(copy_with(&store, &json!({"terminated": {"exitCode": 0}})), None);
        assert_eq!(copy_with(&Value::Null, &running), None);
    }

    #[test]
    fn a_progress_that_an_api_server_refuses_is_no_progress() {
        let progress = |copied_bytes, total_bytes| CopyProgress {
            copied_bytes,
            total_bytes,
        };
        assert!(is_valid(&progress(5, 10)));
        for (copied, total) in [(-1, 10), (11, 10), (0, -1)] {
            assert!(!is_valid(&progress(copied, total)), "{copied} {total}");
        }
    }
}
