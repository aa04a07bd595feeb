//! The environment of the scenarios: clients, waiting, and a manifest.

pub mod owner_check;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Result, ensure};
use api::druid::Etcd;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Service, ServiceAccount},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use runtime::client::{
    apply::Object,
    wait::{self, WaitState},
};
use serde_json::{Value, json};

/// Far longer than any step takes: each takes well under five seconds on an idle machine with two cores. Only
/// the Job controller's pauses are longer: 10 s after the first failed pod, then 20 s, then 40 s. A busy
/// machine has more failed pods before the test has noticed and fixed the cause.
pub const SOON: Duration = Duration::from_secs(180);

pub struct World {
    pub admin: Client,
    /// Whether the bucket of namespace `past` is empty.
    pub bucket_is_empty: Arc<AtomicBool>,
    /// Whether the object store of namespace `copy` refuses its credentials.
    pub store_refuses: Arc<AtomicBool>,
}

pub fn requires_snapshot(pod: &Pod) -> bool {
    let first = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_ref()?.first());
    first
        .and_then(|container| container.args.as_ref())
        .is_some_and(|args| args.iter().any(|arg| arg == "--require-snapshot"))
}

impl World {
    pub fn api<K: Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    pub async fn pods(&self, namespace: &str) -> Result<usize> {
        Ok(self
            .api::<Pod>(namespace)
            .list(&ListParams::default())
            .await?
            .items
            .len())
    }

    pub async fn nothing_left(&self, namespace: &str) -> Result<()> {
        let all = ListParams::default();
        let mut left: Vec<String> = Vec::new();
        left.extend(
            self.api::<StatefulSet>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Job>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Pod>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Service>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<PersistentVolumeClaim>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        let accounts = self.api::<ServiceAccount>(namespace).list(&all).await?;
        left.extend(
            accounts
                .iter()
                .map(ResourceExt::name_any)
                .filter(|name| name != "default"),
        );
        ensure!(left.is_empty(), "left in {namespace}: {left:?}");
        Ok(())
    }
}

pub fn manifest(name: &str) -> Value {
    let tls = json!({
        "tlsCASecretRef": {"name": "ca-etcd"},
        "serverTLSSecretRef": {"name": "etcd-server"},
        "clientTLSSecretRef": {"name": "etcd-client"},
    });
    json!({
        "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "labels": {"gardener.cloud/role": "controlplane"},
            "etcd": {"clientUrlTls": tls},
            "backup": {
                "deltaSnapshotPeriod": "5m",
                "garbageCollectionPolicy": "Exponential",
                "store": {
                    "provider": "S3", "container": "bucket", "prefix": "shoot/etcd-main", "secretRef": {"name": "etcd-backup"},
                },
            },
        },
    })
}

/// Waits until the Etcd is ready and has no error. A failure that passes, such as a conflict, also stands in
/// the status until the next reconciliation.
pub async fn ready(etcds: &Api<Etcd>) -> Result<Etcd> {
    until(etcds, "etcd-main", "ready", |etcd| {
        etcd.status.as_ref().is_some_and(|s| {
            s.ready == Some(true)
                && s.observed_generation == etcd.metadata.generation
                && s.last_errors.is_empty()
        })
    })
    .await
}

/// Waits until the first error of the Etcd has this description. Before it, the status may report a failure
/// that passes.
pub async fn refused(etcds: &Api<Etcd>, is_wanted: impl Fn(&str) -> bool + Send + Sync) -> Result<Etcd> {
    until(etcds, "etcd-main", "the refusal", |etcd| {
        let errors = etcd.status.as_ref().map(|status| &status.last_errors);
        let first = errors.and_then(|errors| errors.first());
        first.is_some_and(|error| is_wanted(&error.description))
    })
    .await
}

pub async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    what: &str,
    holds: impl Fn(&K) -> bool + Send + Sync,
) -> Result<K> {
    let look = |object: Option<&K>| match object {
        Some(object) if holds(object) => WaitState::Done,
        other => WaitState::Wait(format!(
            "awaiting: {what}; it is {}",
            serde_json::to_string(&other).unwrap()
        )),
    };
    let found = testkit::measured(what, SOON, |bound| wait::until(api, name, bound, look));
    Ok(found.await?.unwrap())
}

/// Waits until the Etcd is gone.
pub async fn gone(etcds: &Api<Etcd>) -> Result<()> {
    let gone = testkit::measured("the Etcd is gone", SOON, |bound| {
        wait::until_gone(etcds, "etcd-main", bound)
    });
    Ok(gone.await?)
}

pub async fn create<K: Object>(api: &Api<K>, manifest: &Value) -> Result<K> {
    Ok(api
        .create(&PostParams::default(), &serde_json::from_value(manifest.clone())?)
        .await?)
}

/// For manifests that the types would not even take.
pub async fn create_raw(client: &Client, namespace: &str, manifest: &Value) -> Result<Value> {
    let path = format!("/apis/druid.gardener.cloud/v1alpha1/namespaces/{namespace}/etcds");
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(manifest)?)?;
    Ok(client.request(request).await?)
}

pub async fn change(etcds: &Api<Etcd>, body: Value) -> Result<()> {
    etcds
        .patch("etcd-main", &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(())
}
