//! The only writer of the workspace: server-side apply with the name of the crate as the field manager.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::error::{Explain, Result};

/// The bounds of a kind that [`apply`] can write.
pub trait Object:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + 'static
{
}
impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + 'static
{
}

/// A writer with the field manager of this process. Each process has exactly one field manager, the name of
/// the crate.
#[derive(Clone, Copy, Debug)]
pub struct FieldManager(pub &'static str);

impl FieldManager {
    /// Creates the object, or sets the fields in `object`. Fields that an earlier call of this field manager
    /// set, and that are missing in `object`, are removed.
    pub async fn apply<K: Object>(self, api: &Api<K>, object: &K) -> Result<K> {
        let name = object.name_any();
        api.patch(
            &name,
            &PatchParams::apply(self.0).force(),
            &Patch::Apply(with_type::<K>(object)?),
        )
        .await
        .context(format_args!("could not write {} {name}", K::kind(&())))
    }

    /// Applies a Secret with data of this field manager only: data keys of foreign writers are removed and
    /// named in the log.
    pub async fn apply_secret(self, api: &Api<Secret>, secret: &Secret) -> Result<Secret> {
        let own = secret.data.clone().unwrap_or_default();
        let is_own = |key: &str| own.contains_key(key);
        // The content of a Secret cannot change any more once this call has made the Secret immutable.
        if secret.immutable == Some(true) {
            let name = secret.name_any();
            let found = api.get_opt(&name).await;
            let found = found.context(format_args!("could not read Secret {name}"))?;
            if let Some(found) = found {
                self.remove_foreign_keys(api, &found, is_own).await?;
            }
        }
        let written = self.apply(api, secret).await?;
        self.remove_foreign_keys(api, &written, is_own).await?;
        Ok(written)
    }

    /// Removes the data keys that do not belong to the owner of the Secret. An immutable Secret stays as
    /// read: no writer can have added a key since the owner created the Secret.
    pub async fn remove_foreign_keys(
        self,
        api: &Api<Secret>,
        secret: &Secret,
        is_own: impl Fn(&str) -> bool + Send,
    ) -> Result<()> {
        let keys = secret.data.iter().flatten().map(|(key, _)| key.as_str());
        let foreign: Vec<&str> = keys.filter(|key| !is_own(key)).collect();
        if foreign.is_empty() || secret.immutable == Some(true) {
            return Ok(());
        }
        let name = secret.name_any();
        tracing::warn!(secret = name, keys = ?foreign, "removing data keys of another writer from a reserved Secret");
        let removal: BTreeMap<&str, Value> = foreign.iter().map(|key| (*key, Value::Null)).collect();
        self.merge(api, &name, &json!({"data": removal})).await.map(drop)
    }

    /// Applies part of an object's status. The field manager is separate, so that a write of spec and a write
    /// of status never remove each other's fields.
    pub async fn apply_status<K: Object>(self, api: &Api<K>, name: &str, status: &Value) -> Result<K> {
        let body = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}, "status": status,
        });
        let manager = format!("{}-status", self.0);
        api.patch_status(name, &PatchParams::apply(&manager).force(), &Patch::Apply(body))
            .await
            .context(format_args!(
                "could not write the status of {} {name}",
                K::kind(&())
            ))
    }

    /// Merges fields into an object's status; `null` removes a field. For a status that has several writers.
    pub async fn merge_status<K: Object>(self, api: &Api<K>, name: &str, status: &Value) -> Result<K> {
        api.patch_status(name, &self.merges(), &Patch::Merge(json!({"status": status})))
            .await
            .context(format_args!(
                "could not write the status of {} {name}",
                K::kind(&())
            ))
    }

    /// As [`Self::merge_status`], but only while the object is unchanged since `read`, so that the decision
    /// made on `read` still holds. `None`: a concurrent write came first.
    pub async fn try_merge_status_of<K: Object>(
        self,
        api: &Api<K>,
        read: &K,
        status: &Value,
    ) -> Result<Option<K>> {
        let body = json!({
            "metadata": {"resourceVersion": read.resource_version(), "uid": read.uid()}, "status": status,
        });
        let name = read.name_any();
        match api.patch_status(&name, &self.merges(), &Patch::Merge(body)).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(None),
            other => other.map(Some).context(format_args!(
                "could not write the status of {} {name}",
                K::kind(&())
            )),
        }
    }

    /// Merges fields into an object that must exist (annotations, a single field); `null` removes a field.
    pub async fn merge<K: Object>(self, api: &Api<K>, name: &str, body: &Value) -> Result<K> {
        api.patch(name, &self.merges(), &Patch::Merge(body))
            .await
            .context(format_args!("could not change {} {name}", K::kind(&())))
    }

    /// As [`Self::merge`], but only while the object is unchanged since `read`. `None`: a concurrent write
    /// came first.
    pub async fn try_merge_of<K: Object>(self, api: &Api<K>, read: &K, body: &Value) -> Result<Option<K>> {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = json!(read.resource_version());
        body["metadata"]["uid"] = json!(read.uid());
        let name = read.name_any();
        match api.patch(&name, &self.merges(), &Patch::Merge(body)).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(None),
            other => other
                .map(Some)
                .context(format_args!("could not change {} {name}", K::kind(&()))),
        }
    }

    fn merges(self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.0.to_owned()),
            ..PatchParams::default()
        }
    }

    /// Sets an annotation of an object that must exist; `None` removes the annotation.
    pub async fn annotate<K: Object>(
        self,
        api: &Api<K>,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<K> {
        self.merge(api, name, &json!({"metadata": {"annotations": {key: value}}}))
            .await
    }
}

/// Deletes an object; an object that is already gone is success. Dependents are collected in the background
/// afterwards.
pub async fn delete<K: Object>(api: &Api<K>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default())
        .await
        .map(drop)
        .or_else(unless_gone)
        .context(format_args!("could not delete {} {name}", K::kind(&())))
}

/// Deletes exactly this object (by UID), not a later object of the same name; dependents are deleted first
/// (foreground). Success also where the object is already gone or the name now belongs to a new object.
pub async fn delete_exactly<K: Object>(api: &Api<K>, object: &K) -> Result<()> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let name = object.name_any();
    match api.delete(&name, &params).await {
        // A conflict means a failed precondition or two writers at the same moment. Only a fresh read of the
        // object tells the two apart.
        Err(kube::Error::Api(status)) if status.is_conflict() => match api.get_opt(&name).await {
            Ok(found) if found.as_ref().is_none_or(|found| found.uid() != object.uid()) => Ok(()),
            Ok(_) => Err(kube::Error::Api(status)),
            Err(error) => Err(error),
        },
        other => other.map(drop),
    }
    .or_else(unless_gone)
    .context(format_args!("could not delete {} {name}", K::kind(&())))
}

fn unless_gone(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Ok(()),
        other => Err(other),
    }
}

/// The object as JSON with `apiVersion` and `kind`, and without the fields that only the server may set.
fn with_type<K: Object>(object: &K) -> Result<Value> {
    let mut body = serde_json::to_value(object)
        .map_err(|e| crate::Error::bug(format!("{} does not serialise", K::kind(&()))).caused_by(e))?;
    body["apiVersion"] = json!(K::api_version(&()));
    body["kind"] = json!(K::kind(&()));
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in [
            "managedFields",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "uid",
            "deletionTimestamp",
        ] {
            metadata.remove(field);
        }
    }
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    Ok(body)
}
