//! Puts a reconciler to work: one watch a kind, woken by requests only.

use std::sync::Arc;

use api::extensions::ExtensionObject;
use kube::{Api, runtime::watcher};
use runtime::{Cluster, runner};

use crate::{
    Actuator, ExtensionReconciler, operation,
    reconciler::{Provider, Scope},
};

/// Runs the controller of one kind until shutdown.
///
/// After a start every object is looked at once, so that what was begun is finished; later ones are looked at
/// when an operation is asked for or they are being deleted ([`operation::fingerprint`]), and after failures.
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
