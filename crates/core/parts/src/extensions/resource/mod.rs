//! An extension object of a shoot, of any kind: deploys, restores, migrates, deletes and awaits the object
//! (RX-10..13).
//!
//! The annotation `gardener.cloud/operation` requests an operation from the provider, and
//! `gardener.cloud/timestamp` states the time of the request; the provider answers in the status. On a
//! destination seed, the object first appears with `wait-for-state`, which every provider ignores. Then the
//! gardenlet writes the state into the status, and requests the restore. So a provider never acts without the
//! state. The object states the ownership epoch of the write: providers do not act on leftovers of an earlier
//! epoch.

mod kind;
mod state;
mod status;

use std::{collections::BTreeMap, fmt::Debug, marker::PhantomData};

use api::constants::{self, operation};
use futures::future::try_join_all;
use kube::{Api, Resource, ResourceExt, api::ListParams};
use runtime::{
    Result,
    client::{Cluster, apply, wait},
    clock,
    error::Explain,
};

pub use self::kind::ShootExtension;
pub(crate) use self::status::{ObjectState, ObjectWait, look_deleting, look_migrated, of_any, operation_of};
use crate::{FIELD_MANAGER, Facts, Operation, Residency, Wait};

/// An extension object of a shoot.
pub struct ExtensionResource<'a, K> {
    residency: &'a Residency,
    name: String,
    wait: Wait,
    kind: PhantomData<fn() -> K>,
}

impl<'a, K: ShootExtension> ExtensionResource<'a, K> {
    /// The object of this name.
    pub(crate) fn new(residency: &'a Residency, name: impl Into<String>, wait: Wait) -> Self {
        Self {
            residency,
            name: name.into(),
            wait,
            kind: PhantomData,
        }
    }

    /// The selected objects of this kind in the shoot's namespace, independent of the creator.
    pub(crate) async fn meant(
        residency: &'a Residency,
        wait: Wait,
        is_meant: impl Fn(&K) -> bool,
    ) -> Result<Vec<Self>> {
        let api: Api<K> = residency.seed.namespaced(&residency.namespace);
        let found = api.list(&ListParams::default()).await;
        let found = found.context(format_args!("could not list objects of kind {}", kind::<K>()))?;
        let meant = found.iter().filter(|object| is_meant(object));
        Ok(meant
            .map(|object| Self::new(residency, object.name_any(), wait))
            .collect())
    }

    /// Deletes all these objects.
    pub(crate) async fn delete_all(all: &[Self]) -> Result<()> {
        for object in all {
            object.delete().await?;
        }
        Ok(())
    }

    /// Waits until all these objects are gone.
    pub(crate) async fn all_deleted(all: &[Self]) -> Result<()> {
        try_join_all(all.iter().map(Self::wait_until_deleted))
            .await
            .map(drop)
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the object, if the object exists.
    pub async fn get(&self) -> Result<Option<K>> {
        self.api().get_opt(&self.name).await.context(format_args!(
            "could not read {} {}",
            kind::<K>(),
            self.name
        ))
    }

    /// Writes the object and requests a reconciliation from the provider, or a restore on a destination seed.
    pub(crate) async fn deploy(&self, f: &Facts, object: K) -> Result<()> {
        if f.operation != Operation::Restore {
            return self.write(f, object, operation::RECONCILE).await.map(|_| ());
        }
        let written = self.write(f, object.clone(), operation::WAIT_FOR_STATE).await?;
        state::put_in(f, &self.api(), &written).await?;
        self.write(f, object, operation::RESTORE).await.map(|_| ())
    }

    /// Writes or removes an annotation on an existing object, without a request to the provider.
    pub(crate) async fn annotate(&self, key: &str, value: Option<&str>) -> Result<()> {
        match self.get().await? {
            Some(object) if object.annotations().get(key).map(String::as_str) != value => FIELD_MANAGER
                .annotate(&self.api(), &self.name, key, value)
                .await
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Changes the spec of an existing object, and requests a reconciliation from the provider.
    pub(crate) async fn change(&self, f: &Facts, spec: &serde_json::Value) -> Result<()> {
        let mut annotations = annotations(operation::RECONCILE);
        annotations.insert(constants::WRITTEN_IN_EPOCH.to_owned(), f.epoch().to_string());
        if let Some(deadline) = f.close_deadline.annotation() {
            annotations.insert(constants::ISOLATED_ZONE_CLOSE_DEADLINE.to_owned(), deadline);
        }
        let body = serde_json::json!({"metadata": {"annotations": annotations}, "spec": spec});
        FIELD_MANAGER
            .merge(&self.api(), &self.name, &body)
            .await
            .map(|_| ())
    }

    /// Waits until the provider has completed the last requested operation.
    pub async fn wait_until_ready(&self) -> Result<()> {
        self.wait(|seen: Option<&K>| seen.map_or(ObjectState::Missing, status::ready))
            .await
            .map(|_| ())
    }

    /// Requests that the provider releases the object without any external change. No effect for a missing
    /// object.
    pub async fn migrate(&self) -> Result<()> {
        let Some(object) = self.get().await? else {
            return Ok(());
        };
        if status::is_migrated(&object) || object.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        let body = serde_json::json!({"metadata": {"annotations": annotations(operation::MIGRATE)}});
        FIELD_MANAGER
            .merge(&self.api(), &self.name, &body)
            .await
            .map(|_| ())
    }

    /// Waits until the provider has released the object.
    pub async fn wait_until_migrated(&self) -> Result<()> {
        self.wait(|seen: Option<&K>| seen.map_or(ObjectState::Done, status::migrated))
            .await
            .map(|_| ())
    }

    /// Deletes the object. The provider then deletes the external resources, unless the object was migrated
    /// before.
    pub async fn delete(&self) -> Result<()> {
        let Some(object) = self.get().await? else {
            return Ok(());
        };
        if object
            .annotations()
            .get(constants::CONFIRMATION_DELETION)
            .is_none_or(|value| value != "true")
        {
            FIELD_MANAGER
                .annotate(
                    &self.api(),
                    &self.name,
                    constants::CONFIRMATION_DELETION,
                    Some("true"),
                )
                .await?;
        }
        apply::delete(&self.api(), &self.name).await
    }

    /// Waits until the object is gone.
    pub async fn wait_until_deleted(&self) -> Result<()> {
        self.wait(|seen: Option<&K>| seen.map_or(ObjectState::Done, status::deleting))
            .await
            .map(|_| ())
    }

    async fn write(&self, f: &Facts, mut object: K, operation: &str) -> Result<K> {
        let meta = object.meta_mut();
        meta.name = Some(self.name.clone());
        meta.namespace = Some(self.residency.namespace.clone());
        let annotations = meta.annotations.get_or_insert_default();
        annotations.extend(self::annotations(operation));
        annotations.insert(constants::WRITTEN_IN_EPOCH.to_owned(), f.epoch().to_string());
        FIELD_MANAGER.apply(&self.api(), &object).await
    }

    /// Waits by watching. An error of the provider ends the wait at once if a user has to act. Otherwise an
    /// error ends the wait after the provider's time for retries.
    async fn wait(&self, look: impl Fn(Option<&K>) -> ObjectState + Send + Sync) -> Result<Option<K>> {
        let mut object_wait = ObjectWait::new(format!("{} {}", kind::<K>(), self.name));
        let first = wait::until(&self.api(), &self.name, self.wait.severe, |object| {
            object_wait.evaluate(look(object))
        })
        .await;
        if first.is_ok() || object_wait.failed() {
            return object_wait.outcome(first);
        }
        let rest = self.wait.timeout.saturating_sub(self.wait.severe);
        object_wait.be_severe();
        let second = wait::until(&self.api(), &self.name, rest, |object| {
            object_wait.evaluate(look(object))
        })
        .await;
        object_wait.outcome(second)
    }

    fn api(&self) -> Api<K> {
        self.residency.seed.namespaced(&self.residency.namespace)
    }
}

impl<K: ShootExtension> Debug for ExtensionResource<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", kind::<K>(), self.residency.namespace, self.name)
    }
}

/// The annotations that request an operation from a provider, and the time of the request.
pub(crate) fn annotations(operation: &str) -> BTreeMap<String, String> {
    [
        (constants::OPERATION, operation.to_owned()),
        (constants::TIMESTAMP, clock::now_rfc3339_nano()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn kind<K: Resource<DynamicType = ()>>() -> std::borrow::Cow<'static, str> {
    K::kind(&())
}
