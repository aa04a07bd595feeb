//! Ledgers of the account: a ledger is a single object that all clusters write with the resourceVersion that
//! was read. So a writer that lost a conflict begins again and sees the entry of the first writer.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::api::Patch;
use runtime::Result;
use serde_json::json;

use crate::cloud::{self, Cloud};

/// The ledger of this name, created if missing. `of`: the content of the ledger, for people.
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

/// Writes or removes an entry if the ledger is unchanged since the read. Returns whether the write happened.
/// `failed`: the message for any further refusal.
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
