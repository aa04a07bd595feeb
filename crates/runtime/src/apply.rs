//! The one writer: server-side apply with the crate's name as field manager.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::error::{Explain, Result};

/// What a kind needs so that it can be written by [`apply`].
pub trait Object:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + 'static
{
}
impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + 'static
{
}

/// A client-side writer: who writes. One a process; the name is the crate's.
#[derive(Clone, Copy, Debug)]
pub struct FieldManager(pub &'static str);

impl FieldManager {
    /// Applies an object: creates it, or makes the fields it names what it says, and takes back fields that
    /// an earlier call of the same manager named and this one does not.
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

    /// Applies a Secret whose content is this manager's alone: data keys of other writers are removed, and
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

    /// Removes the data keys of a Secret that are not its owner's. An immutable Secret is left as it is: no
    /// writer can have added a key since the owner created it.
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

    /// Applies part of an object's status, under a manager of its own so that spec and status never take each
    /// other back.
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

    /// Merges fields into an object's status; `null` removes one. For a status that has several writers.
    pub async fn merge_status<K: Object>(self, api: &Api<K>, name: &str, status: &Value) -> Result<K> {
        api.patch_status(name, &self.merges(), &Patch::Merge(json!({"status": status})))
            .await
            .context(format_args!(
                "could not write the status of {} {name}",
                K::kind(&())
            ))
    }

    /// The same, but only if nobody has changed the object since it was read: what was decided on it still
    /// holds. `None`: somebody has.
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

    /// Merges fields into an object that must exist (annotations, a single field); `null` removes one.
    pub async fn merge<K: Object>(self, api: &Api<K>, name: &str, body: &Value) -> Result<K> {
        api.patch(name, &self.merges(), &Patch::Merge(body))
            .await
            .context(format_args!("could not change {} {name}", K::kind(&())))
    }

    /// The same, but only if nobody has changed the object since it was read. `None`: somebody has.
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

    /// Sets one annotation of an object that must exist.
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

/// Deletes an object; that it is gone already is success. `Background`: dependents are collected afterwards.
pub async fn delete<K: Object>(api: &Api<K>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default())
        .await
        .map(drop)
        .or_else(unless_gone)
        .context(format_args!("could not delete {} {name}", K::kind(&())))
}

/// Deletes exactly this object, not a later one of the same name; its dependents go first. That it is gone
/// already, also where another object has taken its name since, is success.
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
        // A conflict is a precondition that does not hold, or two writers at the same moment: the object
        // itself tells.
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

/// The object as JSON with its type and without the fields that only the server may set.
fn with_type<K: Object>(object: &K) -> Result<Value> {
    let mut body = serde_json::to_value(object)
        .map_err(|e| crate::Error::bug(format!("{} does not serialise: {e}", K::kind(&()))))?;
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
