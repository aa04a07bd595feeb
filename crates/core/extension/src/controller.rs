//! Runs a reconciler: one watch per kind, woken only by requests.

use std::sync::Arc;

use api::extensions::ExtensionObject;
use kube::{Api, ResourceExt, runtime::watcher};
use placement::names;
use runtime::{
    bounds::SharePercent,
    client::Cluster,
    controller::runner::{self, ByProject},
};

use crate::{
    Actuator, ExtensionReconciler, operation,
    reconciler::{Provider, Scope},
};

/// Runs the controller of a kind until shutdown.
///
/// After a start, every object is reconciled once, so that an unfinished operation is completed. Later, an
/// object is reconciled when an operation is requested, when the object is being deleted
/// ([`operation::fingerprint`]), and after failures.
///
/// The projects share the workers: a project whose cloud answers slowly delays no other project. The share is
/// fixed, as providers have no flag for the share.
pub async fn run<K, A>(provider: Provider, scope: Scope<K>, actuator: A, settings: runner::Settings)
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    let api: Api<K> = provider.seed.all();
    let reconciler = Arc::new(ExtensionReconciler::new(provider, scope, actuator));
    let controller = runner::controller(api, watcher::Config::default(), operation::fingerprint);
    let of = Arc::clone(&reconciler);
    let by_project = ByProject {
        share: SharePercent::HALF,
        project: project_of,
    };
    let api_of = move |object: &K| of.api_of(object);
    runner::run_by_project(controller, api_of, reconciler, settings, by_project).await;
}

/// The project in the namespace of an object, or in the name of an object without a namespace (BackupEntry).
/// An object of the seed stands for a project of the object's own.
fn project_of(object: &impl ResourceExt) -> String {
    let shoot = object.namespace().unwrap_or_else(|| object.name_any());
    names::project_in(&shoot).unwrap_or(&shoot).to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn the_shoots_of_a_project_share_the_workers() {
        for (namespace, name, project) in [
            (Some("shoot--dev--web"), "infrastructure", "dev"),
            (Some("shoot--dev--shop"), "infrastructure", "dev"),
            (None, "shoot--dev--web--uid", "dev"),
            (None, "source-shoot--dev--web--uid", "dev"),
            (Some("garden"), "ingress", "garden"),
            (None, "bucket", "bucket"),
            (None, "source-bucket", "source-bucket"),
        ] {
            let mut object = ConfigMap::default();
            object.metadata.namespace = namespace.map(str::to_owned);
            object.metadata.name = Some(name.to_owned());
            assert_eq!(project_of(&object), project, "{namespace:?} {name}");
        }
    }
}
