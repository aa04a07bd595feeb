//! Names, labels and bounds with meaning outside this process.

use std::time::Duration;

pub use api::constants::{
    RESOURCES_IGNORE, RESOURCES_KEEP_OBJECT, RESOURCES_MODE, RESOURCES_ORIGIN,
    finalizer::RESOURCE_MANAGER as FINALIZER,
};
use runtime::client::apply::FieldManager;

/// Name of the process, the Lease and the event source.
pub const NAME: &str = "resource-manager";
/// The field manager of this process.
pub const MANAGER: FieldManager = FieldManager(NAME);

/// Secret in a shoot's namespace with the kubeconfig of the shoot, written by the gardenlet.
pub const KUBECONFIG_SECRET: &str = "resource-manager";
/// The key in that Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// The class of ManagedResources with objects in the seed.
pub const SEED_CLASS: &str = "seed";

/// Label of every managed object. Watches select this label.
pub const MANAGED_BY_LABEL: &str = "resources.gardener.cloud/managed-by";
/// The value of that label.
pub const MANAGED_BY: &str = "gardener";
/// Prefix of the origin of an object that a ManagedResource of class `seed` has written into a seed. A seed
/// can itself be a shoot: objects from the seed of that shoot have an origin without the prefix.
pub const SEED_ORIGIN: &str = "seed:";

/// Annotation: the health of the object does not count (`true`).
pub const SKIP_HEALTH_CHECK: &str = "resources.gardener.cloud/skip-health-check";
/// Annotation: an object that cannot be updated is deleted and created again (`true`).
pub const DELETE_ON_INVALID_UPDATE: &str = "resources.gardener.cloud/delete-on-invalid-update";
/// Annotation: another writer sets the number of replicas (`true`).
pub const PRESERVE_REPLICAS: &str = "resources.gardener.cloud/preserve-replicas";
/// Annotation: another writer sets requests and limits of containers (`true`).
pub const PRESERVE_RESOURCES: &str = "resources.gardener.cloud/preserve-resources";
/// Annotation: when the deletion has taken this long, the finalizers of the object are removed.
pub const FINALIZE_DELETION_AFTER: &str = "resources.gardener.cloud/finalize-deletion-after";

/// All annotations that this process reads from an object.
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

/// Bound of a request. Longer than a busy API server takes; short enough that a hanging request is reported
/// soon.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Requeue interval where no watch reports the awaited change: a kind that is not served yet, an object with
/// finalizers.
pub const UNWATCHED_REQUEUE: Duration = Duration::from_secs(10);
