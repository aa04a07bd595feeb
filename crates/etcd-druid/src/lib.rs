//! etcd-druid: the controller of `Etcd` objects in a seed.
//!
//! An Etcd becomes a StatefulSet with etcd and etcd-backup-restore, and Services to reach them; an Etcd with
//! `spec.backup.sourceStore` becomes a Job that copies backups (R17-24 to R17-29). Everything that is made goes with the
//! Etcd, data included; what stands in the way is in its `status.lastErrors` with a code and a sentence.

mod bytes;
mod cleanup;
mod controller;
mod ensure;
pub mod flags;
pub mod names;
pub mod objects;
pub mod observed;
mod retry;
pub mod sidecar;
pub mod status;
pub mod wanted;

use std::sync::Arc;

use api::druid::Etcd;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Service, ServiceAccount},
};
use kube::{
    Client, Resource, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{Cluster, Events, Process, Seed, runner};

pub use self::controller::EtcdController;
use self::{
    flags::Flags,
    names::{DRUID, MANAGED_BY_LABEL, PART_OF_LABEL},
};

/// Adds the controller to a process.
pub fn start(process: &mut Process, client: Client, flags: &Flags) {
    let seed = Seed::new(client.clone());
    let events = Events::new(client, DRUID);
    let settings = runner::Settings {
        concurrency: flags.concurrent_syncs,
        shutdown: process.shutdown.clone(),
        metrics: process.metrics.clone(),
        events: events.clone(),
    };
    let reconciler = Arc::new(EtcdController::new(seed.clone(), flags.defaults.clone(), events));
    let ours = watcher::Config::default().labels(&format!("{MANAGED_BY_LABEL}={DRUID}"));
    let controller = runner::controller(seed.all::<Etcd>(), watcher::Config::default(), fingerprint)
        .owns(seed.all::<StatefulSet>(), ours.clone())
        .owns(seed.all::<Service>(), ours.clone())
        .owns(seed.all::<ServiceAccount>(), ours.clone())
        .owns(seed.all::<Job>(), ours.clone())
        .watches(seed.all::<Pod>(), ours.clone(), etcd_of)
        .watches(seed.all::<PersistentVolumeClaim>(), ours, etcd_of);
    let api_of = move |etcd: &Etcd| seed.namespaced(&etcd.namespace().unwrap_or_default());
    process.part(
        "etcd controller",
        runner::run(controller, api_of, reconciler, settings),
    );
}

/// Everything of an Etcd but its status, which is ours.
fn fingerprint(etcd: &Etcd) -> Option<u64> {
    let meta = etcd.meta();
    let deleted = meta.deletion_timestamp.is_some();
    runner::fingerprint((
        meta.uid.as_ref(),
        meta.generation,
        deleted,
        meta.annotations.as_ref(),
        meta.finalizers.as_ref(),
    ))
}

/// The Etcd that an object without an owner reference to it belongs to.
#[allow(clippy::needless_pass_by_value)] // a mapper of kube is called so
fn etcd_of<K: Resource>(object: K) -> Option<ObjectRef<Etcd>> {
    let name = object.labels().get(PART_OF_LABEL)?;
    Some(ObjectRef::new(name).within(&object.namespace()?))
}
