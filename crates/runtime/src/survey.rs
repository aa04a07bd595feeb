//! Looks at objects of a cluster whose users make as many of them, and as large ones, as its API server takes. A process that looks after
//! many such clusters must not need more memory for one of them than for any other: an answer has a bound in bytes
//! ([`Connection::to_users_cluster`](crate::Connection::to_users_cluster)), and of each object only what counts is read. The types of
//! Kubernetes are no measure for that: an empty schema within a CustomResourceDefinition is two bytes in an answer and a kilobyte in
//! memory.

use std::ops::ControlFlow;

use http_body_util::LengthLimitError;
use kube::{
    Api, Resource,
    api::ListParams,
    core::{ListMeta, Request},
};
use serde::{Deserialize, de::DeserializeOwned};

/// Bytes of an answer. An API server takes 3 MiB for an object at most.
pub(crate) const ANSWER: usize = 4 << 20;
/// Objects in one answer. Where they are too large for that, fewer are asked for.
const PAGES: [u32; 3] = [50, 10, 1];

/// Whether an answer was not read because it was larger than it may be.
#[must_use]
pub fn is_too_large(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// One answer.
#[derive(Deserialize)]
struct Page<S> {
    metadata: ListMeta,
    items: Option<Vec<S>>,
}

/// Shows each object that `params` means to `see`, which ends the survey by [`ControlFlow::Break`]. Pages of objects that are larger
/// than an answer may be are asked for again, with fewer of them. It has no bound in time: give it one.
///
/// `S`: what is read of an object, with a bound for each of its lists ([`Few`](crate::Few)) where users fill them. Its type of
/// Kubernetes only where the suite itself makes the objects.
///
/// # Errors
/// As [`Api::list`].
pub async fn survey<K: Clone + Resource, S: DeserializeOwned>(
    api: &Api<K>,
    params: &ListParams,
    mut see: impl FnMut(S) -> ControlFlow<()>,
) -> kube::Result<()> {
    let client = api.clone().into_client();
    let mut sizes = PAGES.into_iter();
    let mut size = sizes.next().unwrap_or(1);
    let mut params = params.clone();
    loop {
        let request = Request::new(api.resource_url()).list(&params.clone().limit(size));
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = match client.request_text(request).await {
            Ok(text) => text,
            // What the server says of it is an answer.
            Err(error @ kube::Error::Api(_)) => return Err(error),
            Err(error) => {
                size = sizes.next().ok_or(error)?;
                continue;
            }
        };
        // Not by the client, which writes an answer that it cannot read into the log.
        let page: Page<S> = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        drop(text);
        for object in page.items.into_iter().flatten() {
            if see(object).is_break() {
                return Ok(());
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}
