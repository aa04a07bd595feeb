//! All extension objects of a shoot, including kinds that are known only at run time (R7-13).
//!
//! The kinds come from the discovery of the seed's API, so a provider may add a kind.

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
use placement::isolation;
use runtime::{
    Error, Result,
    client::{Cluster, wait},
    error::Explain,
};
use serde_json::json;

use crate::{
    Residency, Wait, configuration_problem,
    extensions::{
        dynamic,
        resource::{
            ObjectState, ObjectWait, annotations, look_deleting, look_migrated, of_any, operation_of,
        },
    },
    task::{CLOUD, CLOUD_AND_DNS, ExternalSystems, NONE, PartTask},
    verbs::{Destroy, Migrate, Tasks},
};

/// Group of the extension kinds.
const GROUP: &str = "extensions.gardener.cloud";
/// The kind of further extensions, which a flow handles in separate phases.
const FURTHER: &str = placement::extensions::KIND;

/// A set of extension kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All kinds with objects in a shoot's namespace.
    All,
    /// The listed kinds.
    Only(&'static [&'static str]),
    /// All kinds with objects in a shoot's namespace, except the listed kinds.
    Except(&'static [&'static str]),
}

impl Kinds {
    fn contains(self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
            Self::Except(kinds) => !kinds.contains(&kind),
        }
    }
}

/// An extension object of any kind.
#[derive(Clone, Debug)]
pub struct AnyExtension {
    /// API resource of the kind.
    pub kind: ApiResource,
    /// The object.
    pub object: DynamicObject,
}

impl AnyExtension {
    /// The part of the status that all kinds share.
    #[must_use]
    pub fn status(&self) -> Option<DefaultStatus> {
        of_any(&self.object)
    }

    /// Distinguishes several entries of the same kind and name in a ShootState.
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

/// A part that consists of all extension objects of some kinds.
pub trait OfKinds: 'static {
    /// Kinds of the part.
    const KINDS: Kinds;
    /// Kinds that are removed together: the flow removes the remaining kinds at a different time.
    const REMOVED: Kinds = Self::KINDS;
    /// Task names of the migration.
    const MIGRATION: Tasks;
    /// Task names of the removal.
    const REMOVAL: Tasks;
    /// The external systems that the removal may change. The migration changes none (I9).
    const REMOVAL_TOUCHES: ExternalSystems;

    /// Whether an object of these kinds belongs to the part.
    fn is_meant(_: &DynamicObject) -> bool {
        true
    }
}

/// Selects objects by kind and predicate.
#[derive(Clone, Copy)]
struct Which {
    kinds: Kinds,
    is_meant: fn(&DynamicObject) -> bool,
}

impl Which {
    fn select<P: OfKinds>() -> Self {
        Self {
            kinds: P::KINDS,
            is_meant: P::is_meant,
        }
    }

    fn removed<P: OfKinds>() -> Self {
        Self {
            kinds: P::REMOVED,
            ..Self::select::<P>()
        }
    }
}

impl<P: OfKinds> Migrate for P {
    const TASKS: Tasks = P::MIGRATION;

    async fn migrate(residency: &Residency) -> Result<()> {
        residency.migrate_kinds(Which::select::<P>()).await
    }

    async fn migrated(residency: &Residency) -> Result<()> {
        residency.wait_until_kinds_migrated(Which::select::<P>()).await
    }
}

impl<P: OfKinds> Destroy for P {
    const TASKS: Tasks = P::REMOVAL;
    const TOUCHES: ExternalSystems = P::REMOVAL_TOUCHES;

    async fn destroy(residency: &Residency) -> Result<()> {
        let annotations = json!({(constants::CONFIRMATION_DELETION): "true"});
        residency
            .delete_annotated(Which::removed::<P>(), &annotations)
            .await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        residency.wait_until_kinds_deleted(Which::removed::<P>()).await
    }
}

/// The extension objects without a separate part.
#[derive(Debug)]
pub struct GenericExtensions;

impl OfKinds for GenericExtensions {
    const KINDS: Kinds = Kinds::Except(&["Infrastructure", "ControlPlane", "DNSRecord", FURTHER]);
    // A zone is opened only after the zone's machines are gone (RZ-14).
    const REMOVED: Kinds = Kinds::Except(&[
        "Infrastructure",
        "ControlPlane",
        "DNSRecord",
        FURTHER,
        isolation::KIND,
    ]);
    const MIGRATION: Tasks = AllExtensions::MIGRATION;
    const REMOVAL: Tasks = [
        "Deleting extension resources",
        "Waiting until extension resources have been deleted",
    ];
    const REMOVAL_TOUCHES: ExternalSystems = CLOUD;
}

/// All extension objects in the shoot's namespace except objects of kind `Extension`. Providers of kind
/// `Extension` may influence the remaining objects, for example by a webhook, so these objects go last
/// (gardener#9651).
#[derive(Debug)]
pub struct OtherExtensions;

impl OfKinds for OtherExtensions {
    const KINDS: Kinds = Kinds::Except(&[FURTHER]);
    const MIGRATION: Tasks = AllExtensions::MIGRATION;
    const REMOVAL: Tasks = AllExtensions::REMOVAL;
    const REMOVAL_TOUCHES: ExternalSystems = CLOUD_AND_DNS;
}

/// All extension objects in the shoot's namespace.
#[derive(Debug)]
pub struct AllExtensions;

impl OfKinds for AllExtensions {
    const KINDS: Kinds = Kinds::All;
    const MIGRATION: Tasks = [
        "Migrating extension resources",
        "Waiting until extension resources have been migrated",
    ];
    const REMOVAL: Tasks = [
        "Deleting extension resources from the Shoot namespace",
        "Waiting until extension resources have been deleted",
    ];
    const REMOVAL_TOUCHES: ExternalSystems = CLOUD_AND_DNS;
}

impl AllExtensions {
    /// Waits until the providers have released the objects of all kinds, also of kinds that a flow does not
    /// name.
    pub const AWAIT_MIGRATION: PartTask<Residency> =
        PartTask::new("Waiting until everything has been migrated", NONE, |residency| {
            Box::pin(Self::migrated(residency))
        });
}

/// All extension objects in the shoot's namespace except the owner record. The owner record goes last,
/// because without the record no process may act for the shoot. Providers release resources that the
/// providers cannot delete.
#[derive(Debug)]
pub struct ForcedExtensions;

impl Destroy for ForcedExtensions {
    const TASKS: Tasks = [
        "Deleting extension resources by force",
        "Waiting until extension resources have been deleted",
    ];
    const TOUCHES: ExternalSystems = CLOUD_AND_DNS;

    /// The owner record is only annotated.
    async fn destroy(residency: &Residency) -> Result<()> {
        let annotations = json!({
            (constants::CONFIRMATION_DELETION): "true", (constants::CONFIRMATION_FORCE_DELETION): "true",
        });
        residency
            .annotate(Self::those(is_owner_record), &annotations)
            .await?;
        residency
            .delete_annotated(Self::those(is_other), &annotations)
            .await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        residency.wait_until_kinds_deleted(Self::those(is_other)).await
    }
}

impl ForcedExtensions {
    fn those(is_meant: fn(&DynamicObject) -> bool) -> Which {
        Which {
            kinds: Kinds::All,
            is_meant,
        }
    }
}

/// Whether the object is the owner record.
pub(crate) fn is_owner_record(object: &DynamicObject) -> bool {
    object.annotations().contains_key(constants::OWNERSHIP_EPOCH)
}

fn is_other(object: &DynamicObject) -> bool {
    !is_owner_record(object)
}

impl Residency {
    /// The kinds of extension objects that the seed serves, in the order of their names.
    pub(crate) async fn extension_kinds(&self, kinds: Kinds) -> Result<Vec<ApiResource>> {
        let group = match discovery::group(self.seed.client(), GROUP).await {
            Ok(group) => group,
            Err(kube::Error::Discovery(_)) => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).context(format_args!("could not ask the seed for the kinds of {GROUP}"));
            }
        };
        let known = group.recommended_resources().into_iter();
        let mut known: Vec<_> = known
            .filter(|(kind, can)| can.scope == Scope::Namespaced && kinds.contains(&kind.kind))
            .map(|(kind, _)| kind)
            .collect();
        known.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(known)
    }

    /// The extension objects in the shoot's namespace, in the order of kinds and names.
    pub async fn list_extension_resources(&self, kinds: Kinds) -> Result<Vec<AnyExtension>> {
        let known = self.extension_kinds(kinds).await?;
        let lists = known.into_iter().map(|kind| async move {
            let list = self.any_api(&kind).list(&ListParams::default()).await;
            let items = list.map_err(|error| why_not_listed(&kind, error))?.items;
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

    /// The selected objects.
    async fn meant(&self, which: Which) -> Result<Vec<AnyExtension>> {
        let mut all = self.list_extension_resources(which.kinds).await?;
        all.retain(|any| (which.is_meant)(&any.object));
        Ok(all)
    }

    /// Requests the migration of all these objects.
    async fn migrate_kinds(&self, which: Which) -> Result<()> {
        for any in self.meant(which).await? {
            let told = operation_of(&any.object) == Some(operation::MIGRATE);
            let done = matches!(look_migrated(any.status().as_ref()), ObjectState::Done);
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

    /// Waits until the providers have released all these objects.
    async fn wait_until_kinds_migrated(&self, which: Which) -> Result<()> {
        self.wait_for_all(which, |object| {
            object.map_or(ObjectState::Done, |object| look_migrated(of_any(object).as_ref()))
        })
        .await
    }

    /// Annotates all these objects.
    async fn annotate(&self, which: Which, annotations: &serde_json::Value) -> Result<()> {
        let body = json!({"metadata": {"annotations": annotations}});
        for any in self.meant(which).await? {
            dynamic::merge(&self.any_api(&any.kind), &any.kind, &any.object.name_any(), &body).await?;
        }
        Ok(())
    }

    /// Deletes all these objects. The annotations come first: an object without finalizers is gone right
    /// after the deletion.
    async fn delete_annotated(&self, which: Which, annotations: &serde_json::Value) -> Result<()> {
        let body = json!({"metadata": {"annotations": annotations}});
        for any in self.meant(which).await? {
            let (api, name) = (self.any_api(&any.kind), any.object.name_any());
            dynamic::merge(&api, &any.kind, &name, &body).await?;
            dynamic::delete(&api, &any.kind, &name, None).await?;
        }
        Ok(())
    }

    /// Waits until all these objects are gone.
    async fn wait_until_kinds_deleted(&self, which: Which) -> Result<()> {
        self.wait_for_all(which, |object| {
            object.map_or(ObjectState::Done, |object| {
                look_deleting(&object.metadata, of_any(object).as_ref())
            })
        })
        .await
    }

    async fn wait_for_all(
        &self,
        which: Which,
        look: impl Fn(Option<&DynamicObject>) -> ObjectState + Copy + Send + Sync,
    ) -> Result<()> {
        let all = self.meant(which).await?;
        try_join_all(all.iter().map(|any| self.wait_for(any, look)))
            .await
            .map(|_| ())
    }

    async fn wait_for(
        &self,
        any: &AnyExtension,
        look: impl Fn(Option<&DynamicObject>) -> ObjectState + Copy + Send + Sync,
    ) -> Result<()> {
        let name = any.object.name_any();
        let Wait { severe, timeout } = self.wait_of(&any.kind.kind);
        let api = self.any_api(&any.kind);
        let mut object_wait = ObjectWait::new(format!("{} {name}", any.kind.kind));
        let first = wait::until(&api, &name, severe, |object| object_wait.evaluate(look(object))).await;
        if first.is_ok() || object_wait.failed() {
            return object_wait.outcome(first).map(|_| ());
        }
        object_wait.be_severe();
        let rest = timeout.saturating_sub(severe);
        let second = wait::until(&api, &name, rest, |object| object_wait.evaluate(look(object))).await;
        object_wait.outcome(second).map(|_| ())
    }

    fn wait_of(&self, kind: &str) -> Wait {
        let timeouts = &self.settings.timeouts;
        match kind {
            "Infrastructure" => timeouts.infrastructure,
            "Worker" => timeouts.worker,
            "DNSRecord" => timeouts.dns_record,
            isolation::KIND => timeouts.subnet_isolation,
            _ => timeouts.extension,
        }
    }
}

/// A provider with an additional kind has to grant the gardenlet the rights on the kind: a move must release
/// all objects.
fn why_not_listed(kind: &ApiResource, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => configuration_problem(format!(
            "the gardenlet has no right to list {}.{GROUP} in the seed, and cannot release objects of this kind (remedy: the provider's chart \
             binds the verbs get, list, watch, patch and delete to the gardenlet)",
            kind.plural
        )),
        error => Error::from(error).context(format_args!("could not list objects of kind {}", kind.kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DnsRecords;

    #[test]
    fn a_missing_right_on_a_kind_is_reported_with_the_remedy() {
        let kind = ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk(GROUP, "v1alpha1", "Firewall"),
            "firewalls",
        );
        let refused = |code: u16, reason: &str| {
            let status = kube::core::Status::failure("no", reason).with_code(code);
            why_not_listed(&kind, kube::Error::Api(Box::new(status)))
        };
        let error = refused(403, "Forbidden");
        assert_eq!(error.codes(), [api::meta::ErrorCode::ErrConfigurationProblem]);
        let text = error.to_string();
        assert!(
            text.contains("no right to list firewalls.extensions.gardener.cloud"),
            "{text}"
        );
        assert!(
            refused(500, "InternalError").is_retryable(),
            "a server that is ill may recover"
        );
    }

    #[test]
    fn a_kind_that_nobody_knows_is_handled_with_the_generic_ones() {
        assert!(GenericExtensions::KINDS.contains("Worker"));
        assert!(GenericExtensions::KINDS.contains("SomethingNew"));
        assert!(!GenericExtensions::KINDS.contains("Infrastructure"));
        // A SubnetIsolation is migrated with the remaining kinds, and removed later.
        assert!(GenericExtensions::KINDS.contains("SubnetIsolation"));
        assert!(!GenericExtensions::REMOVED.contains("SubnetIsolation"));
        assert!(GenericExtensions::REMOVED.contains("Worker"));
        assert!(DnsRecords::KINDS.contains("DNSRecord"));
        assert!(!DnsRecords::KINDS.contains("Worker"));
    }
}
