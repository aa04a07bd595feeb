//! etcd-druid: the controller of `Etcd` objects in a seed.
//!
//! An Etcd becomes a StatefulSet with etcd and etcd-backup-restore, and Services for both; an Etcd with
//! `spec.backup.sourceStore` becomes a Job that copies backups (R17-24 to R17-29). All these objects are
//! deleted with the Etcd, data included unless annotation `keep-volume` is set. Obstacles are reported in
//! `status.lastErrors`, with a code and a sentence.
//!
//! | file | content |
//! |---|---|
//! | `controller` | reads, decides and writes |
//! | `wanted` | a validated Etcd with all defaults |
//! | `objects` | the objects of an Etcd; `ensure` applies the objects |
//! | `observed` | reads the existing objects |
//! | `status` | the status, from the observed objects |
//! | `sidecar` | the state of etcd-backup-restore; `copying`: the progress of a copy |
//! | `health` | alarm NOSPACE at the probe port of etcd |
//! | `rollout` | restarts pods whose template changed |
//! | `retry` | replaces pods and Jobs that failed several times; `containers`: containers of a pod |
//! | `retained_volume` | volumes that outlive their Etcd |
//! | `cleanup` | deletes the objects of an Etcd |
//! | `news` | the Events of an Etcd |
//! | `flags` | the command line; `bytes`: quantities; `names`: names, labels, ports |

mod bytes;
mod cleanup;
mod containers;
mod controller;
mod copying;
mod ensure;
pub mod flags;
mod health;
pub mod names;
pub mod news;
pub mod objects;
pub mod observed;
mod retained_volume;
mod retry;
mod rollout;
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
    Resource, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    client::{Cluster, Seed},
    controller::{Events, runner},
    process::metrics::Metrics,
};
use tokio_util::sync::CancellationToken;

pub use self::controller::EtcdController;
use self::{
    flags::Flags,
    names::{DRUID, MANAGED_BY_LABEL, PART_OF_LABEL},
};

/// Runs the controller until shutdown, under the permit of the seed client. Dropping the future stops the
/// controller.
pub async fn run(seed: Seed, flags: Flags, metrics: Metrics, shutdown: CancellationToken) {
    let events = Events::new(seed.client().clone(), DRUID);
    let settings = runner::Settings {
        concurrency: flags.concurrent_syncs,
        shutdown,
        permit: seed.permit().clone(),
        metrics,
        events: events.clone(),
    };
    let reconciler = Arc::new(EtcdController::new(seed.clone(), flags.defaults, events));
    let ours = watcher::Config::default().labels(&format!("{MANAGED_BY_LABEL}={DRUID}"));
    let controller = runner::controller(seed.all::<Etcd>(), watcher::Config::default(), fingerprint)
        .owns(seed.all::<StatefulSet>(), ours.clone())
        .owns(seed.all::<Service>(), ours.clone())
        .owns(seed.all::<ServiceAccount>(), ours.clone())
        .owns(seed.all::<Job>(), ours.clone())
        .watches(seed.all::<Pod>(), ours.clone(), etcd_of)
        .watches(seed.all::<PersistentVolumeClaim>(), ours, etcd_of);
    runner::run_namespaced(controller, &seed, reconciler, settings).await;
}

/// A fingerprint of the Etcd without its status, which only this controller writes.
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

/// Maps an object without an owner reference to its Etcd, by label.
#[allow(clippy::needless_pass_by_value)] // a mapper of kube is called so
fn etcd_of<K: Resource>(object: K) -> Option<ObjectRef<Etcd>> {
    let name = object.labels().get(PART_OF_LABEL)?;
    Some(ObjectRef::new(name).within(&object.namespace()?))
}
