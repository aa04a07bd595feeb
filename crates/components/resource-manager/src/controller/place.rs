//! The place of a manifest's object: the served kind, the namespace, and the watch.

use std::sync::Arc;

use api::resources::ManagedResource;

use super::Controller;
use crate::{
    kinds::Served,
    ledger::Item,
    object::{Key, ManifestObject, Owner},
    target::Target,
    trouble::Trouble,
    watches::Of,
};

/// Namespace of namespaced objects without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// A ManagedResource that is applied.
pub(super) struct Work<'a> {
    pub owner: &'a Owner,
    pub resource: &'a ManagedResource,
    pub target: &'a Arc<Target>,
}

/// An object of a served kind.
pub(super) struct Placed<'a> {
    pub key: Key,
    pub served: Arc<Served>,
    pub wanted: &'a ManifestObject,
    pub item: Item,
}

impl Controller {
    /// Discovers the kinds of objects, and begins the watches.
    pub(super) async fn discover_objects<'a>(
        &self,
        work: &Work<'_>,
        objects: impl Iterator<Item = &'a ManifestObject>,
    ) -> (Vec<Placed<'a>>, Vec<Trouble>) {
        let (mut placed, mut troubles) = (Vec::new(), Vec::new());
        for wanted in objects {
            let mut key = wanted.key.clone();
            let served = match work.target.served(&key).await {
                Ok(Some(served)) => served,
                Ok(None) => {
                    let why = format!("is of a kind that is not served yet ({})", key.api_version());
                    troubles.push(Trouble::awaited(&key, &why));
                    continue;
                }
                Err(refused) => {
                    troubles.push(Trouble::from_refused(&key, refused));
                    if troubles.iter().any(Trouble::ends_all) {
                        break;
                    }
                    continue;
                }
            };
            key.namespace = match (served.namespaced, key.namespace) {
                (true, namespace) => Some(namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                (false, _) => None,
            };
            if let Err(why) = work.owner.reaches(&key) {
                troubles.push(Trouble::Wrong(why));
                continue;
            }
            let watch = served.watchable.then(|| {
                work.target.watches.watch_kind(&Of {
                    client: work.target.lookout().client().clone(),
                    permit: work.target.lookout().permit().clone(),
                    scope: work.target.scope.clone(),
                    kind: Arc::clone(&served),
                })
            });
            let item = Item {
                key: key.clone(),
                judged: !wanted.handling.unjudged,
                watch,
            };
            placed.push(Placed {
                key,
                served,
                wanted,
                item,
            });
        }
        (placed, troubles)
    }
}
