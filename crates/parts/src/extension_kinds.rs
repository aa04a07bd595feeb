//! All extension objects of a shoot, of kinds that may be known only at run time (R7-13).
//!
//! Which kinds there are is asked of the seed, so that a provider may bring its own.

use api::{
    constants::{self, operation},
    extensions::DefaultStatus,
};
use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::{DynamicObject, ListParams},
    core::ApiResource,
    discovery::{self, Scope},
};
use runtime::{Cluster, Error, Result, error::Explain, wait};
use serde_json::json;

use crate::{
    Stay, Wait, dynamic,
    extension_resource::{Awaited, Seen, annotations, look_deleting, look_migrated, of_any, operation_of},
    verbs::{Destroy, Migrate, Tasks},
};

/// Group of the extension kinds.
const GROUP: &str = "extensions.gardener.cloud";

/// Whichever kinds are told to let go.
const MIGRATION: Tasks = [
    "Migrating extension resources",
    "Waiting until extension resources have been migrated",
];

/// A set of extension kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All that live in a shoot's namespace.
    All,
    /// These.
    Only(&'static [&'static str]),
    /// All that live in a shoot's namespace, but these.
    Except(&'static [&'static str]),
}

impl Kinds {
    /// All that are no part of their own.
    pub const GENERIC: Self = Self::Except(&["Infrastructure", "ControlPlane", "DNSRecord"]);
    /// The records of a shoot's names.
    pub const DNS_RECORDS: Self = Self::Only(&["DNSRecord"]);

    fn holds(self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
            Self::Except(kinds) => !kinds.contains(&kind),
        }
    }
}

/// One extension object of any kind.
#[derive(Clone, Debug)]
pub struct AnyExtension {
    /// Its type.
    pub kind: ApiResource,
    /// The object.
    pub object: DynamicObject,
}

impl AnyExtension {
    /// The part of its status that all kinds share.
    #[must_use]
    pub fn status(&self) -> Option<DefaultStatus> {
        of_any(&self.object)
    }

    /// What tells apart several entries of this kind and name in a ShootState.
    #[must_use]
    pub fn purpose(&self) -> Option<String> {
        self.object
            .data
            .get("spec")?
            .get("purpose")?
            .as_str()
            .map(str::to_owned)
    }
}

/// The extension objects that are no part of their own.
#[derive(Debug)]
pub struct GenericExtensions;

impl Migrate for GenericExtensions {
    const TASKS: Tasks = MIGRATION;

    async fn migrate(stay: &Stay) -> Result<()> {
        stay.migrate_kinds(Kinds::GENERIC).await
    }

    async fn migrated(stay: &Stay) -> Result<()> {
        stay.wait_until_kinds_migrated(Kinds::GENERIC).await
    }
}

impl Destroy for GenericExtensions {
    const TASKS: Tasks = [
        "Deleting extension resources",
        "Waiting until extension resources have been deleted",
    ];

    async fn destroy(stay: &Stay) -> Result<()> {
        stay.delete_kinds(Kinds::GENERIC).await
    }

    async fn gone(stay: &Stay) -> Result<()> {
        stay.wait_until_kinds_deleted(Kinds::GENERIC).await
    }
}

/// All extension objects in the shoot's namespace.
#[derive(Debug)]
pub struct AllExtensions;

impl Migrate for AllExtensions {
    const TASKS: Tasks = MIGRATION;

    async fn migrate(stay: &Stay) -> Result<()> {
        stay.migrate_kinds(Kinds::All).await
    }

    async fn migrated(stay: &Stay) -> Result<()> {
        stay.wait_until_kinds_migrated(Kinds::All).await
    }
}

impl Destroy for AllExtensions {
    const TASKS: Tasks = [
        "Deleting extension resources from the Shoot namespace",
        "Waiting until extension resources have been deleted",
    ];

    async fn destroy(stay: &Stay) -> Result<()> {
        stay.delete_kinds(Kinds::All).await
    }

    async fn gone(stay: &Stay) -> Result<()> {
        stay.wait_until_kinds_deleted(Kinds::All).await
    }
}

impl AllExtensions {
    /// "Deleting extension resources by force": their providers let go of what they cannot take away.
    pub async fn destroy_by_force(stay: &Stay) -> Result<()> {
        let annotations = json!({
            (constants::CONFIRMATION_DELETION): "true", (constants::CONFIRMATION_FORCE_DELETION): "true",
        });
        stay.delete_annotated(Kinds::All, &annotations).await
    }
}

impl Stay {
    /// All extension objects of the shoot as they are, by kind: for their states and what these refer to (R7-13, R7-22).
    pub async fn extension_states(&self) -> Result<Vec<(String, serde_json::Value)>> {
        let all = self.list_extension_resources(Kinds::All).await?;
        all.into_iter()
            .map(|any| {
                let value = serde_json::to_value(&any.object).map_err(|e| Error::bug(e.to_string()))?;
                Ok((any.kind.kind, value))
            })
            .collect()
    }

    /// The extension objects in the shoot's namespace, in the order of kinds and names.
    pub async fn list_extension_resources(&self, kinds: Kinds) -> Result<Vec<AnyExtension>> {
        let group = match discovery::group(self.seed.client(), GROUP).await {
            Ok(group) => group,
            Err(kube::Error::Discovery(_)) => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).context(format_args!("could not ask the seed for the kinds of {GROUP}"));
            }
        };
        let known = group
            .recommended_resources()
            .into_iter()
            .filter(|(kind, capabilities)| {
                capabilities.scope == Scope::Namespaced && kinds.holds(&kind.kind)
            });
        let lists = known.map(|(kind, _)| async move {
            let list = self.any_api(&kind).list(&ListParams::default()).await;
            let items = list
                .context(format_args!("could not list objects of kind {}", kind.kind))?
                .items;
            Ok::<_, Error>(
                items
                    .into_iter()
                    .map(|object| AnyExtension {
                        kind: kind.clone(),
                        object,
                    })
                    .collect::<Vec<_>>(),
            )
        });
        let mut all: Vec<_> = try_join_all(lists).await?.into_iter().flatten().collect();
        all.sort_by_key(|any| (any.kind.kind.clone(), any.object.name_any()));
        Ok(all)
    }

    /// Tells the providers of all these objects to let go of them.
    pub(crate) async fn migrate_kinds(&self, kinds: Kinds) -> Result<()> {
        for any in self.list_extension_resources(kinds).await? {
            let told = operation_of(&any.object) == Some(operation::MIGRATE);
            let done = matches!(look_migrated(any.status().as_ref()), Seen::Done);
            if told || done || any.object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            dynamic::merge(
                &self.any_api(&any.kind),
                &any.kind,
                &any.object.name_any(),
                &json!({"metadata": {"annotations": annotations(operation::MIGRATE)}}),
            )
            .await?;
        }
        Ok(())
    }

    /// Waits until the providers have let go of all these objects.
    pub(crate) async fn wait_until_kinds_migrated(&self, kinds: Kinds) -> Result<()> {
        self.wait_for_all(kinds, |object| {
            object.map_or(Seen::Done, |object| look_migrated(of_any(object).as_ref()))
        })
        .await
    }

    /// Deletes all these objects.
    pub(crate) async fn delete_kinds(&self, kinds: Kinds) -> Result<()> {
        self.delete_annotated(kinds, &json!({(constants::CONFIRMATION_DELETION): "true"}))
            .await
    }

    /// The annotations come first: an object that nobody holds is gone as soon as it is deleted.
    async fn delete_annotated(&self, kinds: Kinds, annotations: &serde_json::Value) -> Result<()> {
        let body = json!({"metadata": {"annotations": annotations}});
        for any in self.list_extension_resources(kinds).await? {
            let (api, name) = (self.any_api(&any.kind), any.object.name_any());
            dynamic::merge(&api, &any.kind, &name, &body).await?;
            dynamic::delete(&api, &any.kind, &name, None).await?;
        }
        Ok(())
    }

    /// Waits until all these objects are gone.
    pub(crate) async fn wait_until_kinds_deleted(&self, kinds: Kinds) -> Result<()> {
        self.wait_for_all(kinds, |object| {
            object.map_or(Seen::Done, |object| {
                look_deleting(&object.metadata, of_any(object).as_ref())
            })
        })
        .await
    }

    async fn wait_for_all(
        &self,
        kinds: Kinds,
        look: impl Fn(Option<&DynamicObject>) -> Seen + Copy + Send + Sync,
    ) -> Result<()> {
        let all = self.list_extension_resources(kinds).await?;
        try_join_all(all.iter().map(|any| self.wait_for(any, look)))
            .await
            .map(|_| ())
    }

    async fn wait_for(
        &self,
        any: &AnyExtension,
        look: impl Fn(Option<&DynamicObject>) -> Seen + Copy + Send + Sync,
    ) -> Result<()> {
        let name = any.object.name_any();
        let Wait { severe, timeout } = self.wait_of(&any.kind.kind);
        let api = self.any_api(&any.kind);
        let mut awaited = Awaited::new(format!("{} {name}", any.kind.kind));
        let first = wait::until(&api, &name, severe, |object| awaited.look(look(object))).await;
        if first.is_ok() || awaited.failed() {
            return awaited.outcome(first).map(|_| ());
        }
        awaited.be_severe();
        let rest = timeout.saturating_sub(severe);
        let second = wait::until(&api, &name, rest, |object| awaited.look(look(object))).await;
        awaited.outcome(second).map(|_| ())
    }

    fn wait_of(&self, kind: &str) -> Wait {
        let timeouts = &self.settings.timeouts;
        match kind {
            "Infrastructure" => timeouts.infrastructure,
            "Worker" => timeouts.worker,
            "DNSRecord" => timeouts.dns_record,
            _ => timeouts.extension,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_nobody_knows_is_handled_with_the_generic_ones() {
        assert!(Kinds::GENERIC.holds("Worker"));
        assert!(Kinds::GENERIC.holds("SomethingNew"));
        assert!(!Kinds::GENERIC.holds("Infrastructure"));
        assert!(Kinds::DNS_RECORDS.holds("DNSRecord"));
        assert!(!Kinds::DNS_RECORDS.holds("Worker"));
    }
}
