//! One extension object of a shoot: deployed, restored, migrated, deleted, and awaited, whatever its kind
//! (RX-10..13).
//!
//! The provider is told what to do by the annotation `gardener.cloud/operation` and when by
//! `gardener.cloud/timestamp`; it answers in the status. On a seed that takes a shoot over, the object first
//! appears with `wait-for-state`, which every provider leaves alone; then its state is put in; then it is
//! restored. So a provider never acts without the state. The object says in which ownership epoch it was
//! written: what is left of an earlier one is not acted on.

mod kind;
mod state;
mod status;

use std::{collections::BTreeMap, fmt::Debug, marker::PhantomData};

use api::constants::{self, operation};
use futures::future::try_join_all;
use kube::{Api, Resource, ResourceExt, api::ListParams};
use runtime::{Cluster, Result, apply, clock, error::Explain, wait};

pub use self::kind::ShootExtension;
pub(crate) use self::status::{Awaited, Seen, look_deleting, look_migrated, of_any, operation_of};
use crate::{FIELD_MANAGER, Facts, Operation, Stay, Wait};

/// One extension object of a shoot.
pub struct ExtensionResource<'a, K> {
    stay: &'a Stay,
    name: String,
    wait: Wait,
    kind: PhantomData<fn() -> K>,
}

impl<'a, K: ShootExtension> ExtensionResource<'a, K> {
    /// The object of this name.
    pub(crate) fn new(stay: &'a Stay, name: impl Into<String>, wait: Wait) -> Self {
        Self {
            stay,
            name: name.into(),
            wait,
            kind: PhantomData,
        }
    }

    /// Those of this kind in the shoot's namespace that are meant, whoever made them.
    pub(crate) async fn meant(
        stay: &'a Stay,
        wait: Wait,
        is_meant: impl Fn(&K) -> bool,
    ) -> Result<Vec<Self>> {
        let api: Api<K> = stay.seed.namespaced(&stay.namespace);
        let found = api.list(&ListParams::default()).await;
        let found = found.context(format_args!("could not list objects of kind {}", kind::<K>()))?;
        let meant = found.iter().filter(|object| is_meant(object));
        Ok(meant
            .map(|object| Self::new(stay, object.name_any(), wait))
            .collect())
    }

    /// Deletes all of these.
    pub(crate) async fn delete_all(all: &[Self]) -> Result<()> {
        for object in all {
            object.delete().await?;
        }
        Ok(())
    }

    /// Waits until all of these are gone.
    pub(crate) async fn all_deleted(all: &[Self]) -> Result<()> {
        try_join_all(all.iter().map(Self::wait_until_deleted))
            .await
            .map(drop)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object as it is, if it is.
    pub async fn get(&self) -> Result<Option<K>> {
        self.api().get_opt(&self.name).await.context(format_args!(
            "could not read {} {}",
            kind::<K>(),
            self.name
        ))
    }

    /// Writes the object and tells the provider to reconcile it, or to restore it where the shoot is taken
    /// over.
    pub(crate) async fn deploy(&self, f: &Facts, object: K) -> Result<()> {
        if f.operation != Operation::Restore {
            return self.write(f, object, operation::RECONCILE).await.map(|_| ());
        }
        let written = self.write(f, object.clone(), operation::WAIT_FOR_STATE).await?;
        state::put_in(f, &self.api(), &written).await?;
        self.write(f, object, operation::RESTORE).await.map(|_| ())
    }

    /// Writes an annotation on the object that is there, or removes the annotation; asks the provider for
    /// nothing.
    pub(crate) async fn annotate(&self, key: &str, value: Option<&str>) -> Result<()> {
        match self.get().await? {
            Some(object) if object.annotations().get(key).map(String::as_str) != value => FIELD_MANAGER
                .annotate(&self.api(), &self.name, key, value)
                .await
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Changes the specification of the object that is there, and tells the provider to reconcile the object.
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

    /// Waits until the provider has done what it was told last.
    pub async fn wait_until_ready(&self) -> Result<()> {
        self.wait(|seen: Option<&K>| seen.map_or(Seen::Missing, status::ready))
            .await
            .map(|_| ())
    }

    /// Tells the provider to let go of the object without touching anything external. Nothing to do where it
    /// is not.
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

    /// Waits until the provider has let go of the object.
    pub async fn wait_until_migrated(&self) -> Result<()> {
        self.wait(|seen: Option<&K>| seen.map_or(Seen::Done, status::migrated))
            .await
            .map(|_| ())
    }

    /// Deletes the object. What is external goes with it, unless it was migrated before.
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
        self.wait(|seen: Option<&K>| seen.map_or(Seen::Done, status::deleting))
            .await
            .map(|_| ())
    }

    async fn write(&self, f: &Facts, mut object: K, operation: &str) -> Result<K> {
        let meta = object.meta_mut();
        meta.name = Some(self.name.clone());
        meta.namespace = Some(self.stay.namespace.clone());
        let annotations = meta.annotations.get_or_insert_default();
        annotations.extend(self::annotations(operation));
        annotations.insert(constants::WRITTEN_IN_EPOCH.to_owned(), f.epoch().to_string());
        FIELD_MANAGER.apply(&self.api(), &object).await
    }

    /// Waits by watch. An error that the provider reports ends the wait at once where a user has to act, else
    /// after the time that the provider has for its own retries.
    async fn wait(&self, look: impl Fn(Option<&K>) -> Seen + Send + Sync) -> Result<Option<K>> {
        let mut awaited = Awaited::new(format!("{} {}", kind::<K>(), self.name));
        let first = wait::until(&self.api(), &self.name, self.wait.severe, |object| {
            awaited.look(look(object))
        })
        .await;
        if first.is_ok() || awaited.failed() {
            return awaited.outcome(first);
        }
        let rest = self.wait.timeout.saturating_sub(self.wait.severe);
        awaited.be_severe();
        let second = wait::until(&self.api(), &self.name, rest, |object| awaited.look(look(object))).await;
        awaited.outcome(second)
    }

    fn api(&self) -> Api<K> {
        self.stay.seed.namespaced(&self.stay.namespace)
    }
}

impl<K: ShootExtension> Debug for ExtensionResource<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", kind::<K>(), self.stay.namespace, self.name)
    }
}

/// The annotations that tell a provider what to do, and since when.
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
