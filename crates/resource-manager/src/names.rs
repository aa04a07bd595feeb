//! Names, labels and bounds that others rely on.

use std::time::Duration;

pub use api::constants::{
    RESOURCES_IGNORE, RESOURCES_KEEP_OBJECT, RESOURCES_MODE, RESOURCES_ORIGIN,
    finalizer::RESOURCE_MANAGER as FINALIZER,
};
use runtime::apply::FieldManager;

/// Name of the process, its Lease and its event source.
pub const NAME: &str = "resource-manager";
/// Who writes.
pub const MANAGER: FieldManager = FieldManager(NAME);

/// Secret in a shoot's namespace with the way into the shoot. The gardenlet writes it.
pub const KUBECONFIG_SECRET: &str = "resource-manager";
/// Its key.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// The class of ManagedResources whose objects go into the seed itself.
pub const SEED_CLASS: &str = "seed";

/// Label of every object that is kept here. Watches are restricted to it.
pub const MANAGED_BY_LABEL: &str = "resources.gardener.cloud/managed-by";
/// Its value.
pub const MANAGED_BY: &str = "gardener";
/// Before the origin of an object that a ManagedResource of class `seed` has put into its seed. A seed can
/// itself be a shoot: what comes from the seed of that one has an origin without this.
pub const SEED_ORIGIN: &str = "seed:";

/// Annotation: the object is not counted when health is judged (`true`).
pub const SKIP_HEALTH_CHECK: &str = "resources.gardener.cloud/skip-health-check";
/// Annotation: an object that cannot be changed as wanted is deleted and made anew (`true`).
pub const DELETE_ON_INVALID_UPDATE: &str = "resources.gardener.cloud/delete-on-invalid-update";
/// Annotation: the number of replicas is another's affair (`true`).
pub const PRESERVE_REPLICAS: &str = "resources.gardener.cloud/preserve-replicas";
/// Annotation: requests and limits of containers are another's affair (`true`).
pub const PRESERVE_RESOURCES: &str = "resources.gardener.cloud/preserve-resources";
/// Annotation: after this time of being deleted, the object loses its finalizers.
pub const FINALIZE_DELETION_AFTER: &str = "resources.gardener.cloud/finalize-deletion-after";

/// Annotations by which an object says something to us.
pub const MEANT_FOR_US: [&str; 9] = [
    RESOURCES_ORIGIN,
    RESOURCES_IGNORE,
    RESOURCES_KEEP_OBJECT,
    RESOURCES_MODE,
    SKIP_HEALTH_CHECK,
    DELETE_ON_INVALID_UPDATE,
    PRESERVE_REPLICAS,
    PRESERVE_RESOURCES,
    FINALIZE_DELETION_AFTER,
];

/// One request. Longer than a busy API server takes; short enough that one which hangs is told soon.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// When what is awaited is looked at again where no watch tells: a kind that is not served yet, an object
/// with finalizers.
pub const LOOK_AGAIN: Duration = Duration::from_secs(10);
