//! Ledgers of the account: each one object that all clusters write with the version that they have read, so
//! that of two writers one begins again and sees what the other took.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::api::Patch;
use runtime::Result;
use serde_json::json;

use crate::cloud::{self, Cloud};

/// The ledger of this name, begun if there is none. `of`: what is in it, for people.
pub(crate) async fn open(cloud: &Cloud, name: &str, of: &str) -> Result<ConfigMap> {
    let objects = cloud.objects();
    let unread = |error| cloud::error(format_args!("could not read the ledger of {of}"), error);
    if let Some(ledger) = objects.get_opt(name).await.map_err(unread)? {
        return Ok(ledger);
    }
    let empty = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    match objects.create(&cloud.creating(), &empty).await {
        Ok(ledger) => Ok(ledger),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            objects.get(name).await.map_err(unread)
        }
        Err(error) => Err(cloud::error(
            format_args!("could not begin the ledger of {of}"),
            error,
        )),
    }
}

/// Writes or removes one entry if the ledger is still the one that was read. Says whether it was. `failed`:
/// the words for any other refusal.
pub(crate) async fn write(
    cloud: &Cloud,
    read: &ConfigMap,
    (key, entry): (&str, Option<String>),
    failed: &str,
) -> Result<bool> {
    let meta = &read.metadata;
    let body = json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "data": {key: entry},
    });
    let name = meta.name.as_deref().unwrap_or_default();
    match cloud
        .objects()
        .patch(name, &cloud.changing(), &Patch::Merge(body))
        .await
    {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        Err(error) => Err(cloud::error(failed, error)),
    }
}
