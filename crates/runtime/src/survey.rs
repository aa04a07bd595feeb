//! Looks at objects of a cluster whose users make as many of them, and as large ones, as its API server takes. A process that looks after
//! many such clusters must not need more memory for one of them than for any other: an answer has a bound in bytes
//! ([`Connection::to_users_cluster`](crate::Connection::to_users_cluster)), and of each object only what counts is kept.

use std::{fmt::Debug, ops::ControlFlow};

use kube::{Api, api::ListParams};
use serde::de::DeserializeOwned;

/// Bytes of an answer. An API server takes 3 MiB for an object at most.
pub(crate) const ANSWER: usize = 4 << 20;
/// Objects in one answer. Where they are too large for that, fewer are asked for.
const PAGES: [u32; 3] = [50, 10, 1];

/// Shows each object that `params` means to `see`, which ends the survey by [`ControlFlow::Break`]. Pages of objects that are larger
/// than an answer may be are asked for again, with fewer of them. It has no bound in time: give it one.
///
/// # Errors
/// As [`Api::list`].
pub async fn survey<K: Clone + Debug + DeserializeOwned>(
    api: &Api<K>,
    params: &ListParams,
    mut see: impl FnMut(K) -> ControlFlow<()>,
) -> kube::Result<()> {
    let mut sizes = PAGES.into_iter();
    let mut size = sizes.next().unwrap_or(1);
    let mut params = params.clone();
    loop {
        let page = match api.list(&params.clone().limit(size)).await {
            Ok(page) => page,
            // What the server says of it is an answer.
            Err(error @ kube::Error::Api(_)) => return Err(error),
            Err(error) => {
                size = sizes.next().ok_or(error)?;
                continue;
            }
        };
        for object in page.items {
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
