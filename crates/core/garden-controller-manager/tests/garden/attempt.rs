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

/// Waits until this is refused. A policy reads further objects, beside the written object, from a cache of
/// the API server, which follows their last change a moment later.
pub async fn until_refused(attempt: impl Fn() -> Attempt) {
    settled(attempt, true).await;
}

/// Like [`until_refused`], with these words: the API server sees new rights a moment later.
pub async fn until_refused_with(words: &str, attempt: impl Fn() -> Attempt) {
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
    settled(attempt, false).await;
}

/// Only waits: if the condition never holds, the real attempt that follows reports the failure, with its
/// line.
async fn settled(attempt: impl Fn() -> Attempt, refused: bool) {
    let _ = eventually("the last change is known", IN_FORCE_WITHIN, || {
        let attempt = attempt();
        async move {
            if attempt.await.is_err() == refused {
                Ok(())
            } else {
                Err("not yet")
            }
        }
    })
    .await;
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
