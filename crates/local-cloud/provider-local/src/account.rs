//! The account in the cloud, by the credentials of an object.

use std::sync::Arc;

use api::extensions::ExtensionObject;
use cloud_local::{Cloud, Wrap};
use extension::Context;
use runtime::Result;

use crate::MANAGER;

/// Opens the account. Requests to the account are fenced by the permit to act on the object.
pub async fn open<K: ExtensionObject>(context: &Context<K>) -> Result<Cloud> {
    let credentials = context.credentials().await?;
    let permit = context.permit().clone();
    let fenced: Wrap = Arc::new(move |cloud| cloud.client(&permit));
    Cloud::open(&credentials, MANAGER, &fenced).await
}
