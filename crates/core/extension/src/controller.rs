//! Runs a reconciler: one watch per kind, woken only by requests.

use std::sync::Arc;

use api::extensions::ExtensionObject;
use kube::{Api, runtime::watcher};
use runtime::{client::Cluster, controller::runner};

use crate::{
    Actuator, ExtensionReconciler, operation,
    reconciler::{Provider, Scope},
};

/// Runs the controller of a kind until shutdown.
///
/// After a start, every object is reconciled once, so that an unfinished operation is completed. Later, an
/// object is reconciled when an operation is requested, when the object is being deleted
/// ([`operation::fingerprint`]), and after failures.
pub async fn run<K, A>(provider: Provider, scope: Scope<K>, actuator: A, settings: runner::Settings)
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    let api: Api<K> = provider.seed.all();
    let reconciler = Arc::new(ExtensionReconciler::new(provider, scope, actuator));
    let controller = runner::controller(api, watcher::Config::default(), operation::fingerprint);
    let of = Arc::clone(&reconciler);
    runner::run(
        controller,
        move |object: &K| of.api_of(object),
        reconciler,
        settings,
    )
    .await;
}
