//! Dry-run attempts, and waits for caches of the API server.

use std::future::Future;

use anyhow::Result;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use super::{IN_FORCE_WITHIN, Object};

/// Waits until a policy refuses. A policy whose parameters are not read yet refuses every request, with a
/// different sentence.
pub(super) async fn in_force(policy: &str, attempt: impl Fn() -> Attempt) -> Result<()> {
    let phrase = format!("ValidatingAdmissionPolicy '{policy}'");
    eventually(&format!("{policy} is in force"), IN_FORCE_WITHIN, || {
        let (attempt, phrase) = (attempt(), phrase.clone());
        async move {
            match attempt.await {
                Err(error) if error.to_string().contains(&phrase) && !is_not_ready(&error) => Ok(()),
                Err(error) => Err(error.to_string()),
                Ok(()) => Err("it was allowed".to_owned()),
            }
        }
    })
    .await
}

/// Waits until this is refused with these words. The API server reads rights, and the objects beside the
/// written object, from caches, which follow their last change a moment later. Without the words, a refusal
/// for a different reason, such as a missing object, would end the wait.
pub async fn until_refused(words: &str, attempt: impl Fn() -> Attempt) {
    let _ = eventually("the last change is known", IN_FORCE_WITHIN, || {
        let attempt = attempt();
        async move {
            match attempt.await {
                Err(error) if error.to_string().contains(words) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }
    })
    .await;
}

/// Like [`until_refused`], until the attempt succeeds.
pub async fn until_allowed(attempt: impl Fn() -> Attempt) {
    let _ = eventually("the last change is known", IN_FORCE_WITHIN, attempt).await;
}

/// A dry-run attempt.
pub type Attempt = std::pin::Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

/// A dry-run merge patch.
pub fn try_patch<K: Object>(api: &Api<K>, name: &'static str, body: &Value) -> Attempt {
    let (api, body) = (api.clone(), body.clone());
    Box::pin(async move {
        api.patch(name, &PatchParams::default().dry_run(), &Patch::Merge(body))
            .await
            .map(|_| ())
    })
}

/// Tries to merge into the status.
pub fn try_patch_status<K: Object>(api: &Api<K>, name: &'static str, status: Value) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        let body = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default().dry_run(), &body)
            .await
            .map(|_| ())
    })
}

/// Tries to create.
pub fn try_create<K: Object + serde::Serialize>(api: &Api<K>, object: K) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        api.create(&params, &object).await.map(|_| ())
    })
}

/// Tries to apply.
pub fn try_apply<K: Object>(api: &Api<K>, name: &'static str, body: Value) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        api.patch(
            name,
            &PatchParams::apply("test").force().dry_run(),
            &Patch::Apply(body),
        )
        .await
        .map(|_| ())
    })
}

/// Tries to delete.
pub fn try_delete<K: Object>(api: &Api<K>, name: &'static str) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        api.delete(name, &kube::api::DeleteParams::default().dry_run())
            .await
            .map(|_| ())
    })
}

fn is_not_ready(error: &kube::Error) -> bool {
    error.to_string().contains("failed to configure")
}
