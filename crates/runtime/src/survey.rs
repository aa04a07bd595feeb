//! Looks at objects of a cluster whose users make as many of them, and as large ones, as its API server
//! takes. A process that looks after many such clusters must not need more memory for one of them than for
//! any other: an answer has a bound in bytes
//! ([`Connection::to_users_cluster`](crate::Connection::to_users_cluster)), and of each object only what
//! counts is read. The types of Kubernetes are no measure for that: an empty schema within a
//! CustomResourceDefinition is two bytes in an answer and a kilobyte in memory.

use std::ops::ControlFlow;

use kube::{
    Api, Resource,
    api::ListParams,
    core::{ListMeta, Request},
};
use serde::{Deserialize, de::DeserializeOwned};

/// Bytes of an answer. An API server takes 3 MiB for an object at most.
pub(crate) const ANSWER: usize = 4 << 20;
/// Objects in one answer. Where they are too large for that, it has fewer of them.
const PAGE: u32 = 50;

/// One answer.
#[derive(Deserialize)]
struct Page<S> {
    metadata: ListMeta,
    items: Option<Vec<S>>,
}

/// Shows each object that `params` means to `see`, which ends the survey by [`ControlFlow::Break`]. It has no
/// bound in time: give it one.
///
/// `S`: what is read of an object, with a bound for each of its lists ([`Few`](crate::Few)) where users fill
/// them. Its type of Kubernetes only where the suite itself makes the objects.
///
/// # Errors
/// As [`Api::list`].
pub async fn survey<K: Clone + Resource, S: DeserializeOwned>(
    api: &Api<K>,
    params: &ListParams,
    mut see: impl FnMut(S) -> ControlFlow<()>,
) -> kube::Result<()> {
    let client = api.clone().into_client();
    let mut params = params.clone().limit(PAGE);
    loop {
        let request = Request::new(api.resource_url()).list(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = client.request_text(request).await?;
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
