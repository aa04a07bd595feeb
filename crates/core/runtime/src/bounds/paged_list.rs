//! Reads objects of a cluster whose users can create any number of objects of any size. A process that serves
//! many such clusters must need the same memory for each cluster. So an answer has a limit in bytes
//! ([`Connection::to_users_cluster`](crate::client::Connection::to_users_cluster)), and only the relevant
//! fields of each object are decoded. The types of Kubernetes do not bound the memory. An empty schema within
//! a CustomResourceDefinition takes two bytes in an answer and a kilobyte in memory.

use std::ops::ControlFlow;

use kube::{
    Api, Resource,
    api::ListParams,
    core::{ListMeta, Request},
};
use serde::{Deserialize, de::DeserializeOwned};

/// Bytes of an answer. An API server takes 3 MiB for an object at most.
pub(crate) const ANSWER: usize = 4 << 20;
/// Objects in an answer. If the objects are too large, the page has fewer objects.
const PAGE: u32 = 50;

/// One page of the list.
#[derive(Deserialize)]
struct Page<S> {
    metadata: ListMeta,
    items: Option<Vec<S>>,
}

/// Passes each object selected by `params` to `see`; [`ControlFlow::Break`] ends the survey. The survey has
/// no timeout: callers must set a timeout.
///
/// `S`: the decoded fields of an object, with a bound for each list ([`Few`](crate::bounds::Few)) that users
/// can fill. Use the Kubernetes type only for objects that the project itself creates.
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
        // Decoded here and not by the client, because the client logs an answer that cannot be decoded.
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
