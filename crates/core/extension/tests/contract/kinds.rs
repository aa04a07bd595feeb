//! Every kind runs through the protocol, with an actuator without work; only a DNSRecord has no owner check
//! for the owner record (R17-63). An object without state is restored as well (R7-32). No annotation is left
//! after a completed operation, including a restore (R7-33).

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{
        OPERATION,
        operation::{MIGRATE, RECONCILE, RESTORE},
    },
    extensions::{
        BackupBucket, BackupEntry, Bastion, ContainerRuntime, ControlPlane, DNSRecord, Extension,
        ExtensionObject, Infrastructure, Network, OperatingSystemConfig, SubnetIsolation, Worker,
    },
    meta::{LastOperationState, LastOperationType},
};
use async_trait::async_trait;
use extension::{
    Actuator, Context, Outcome,
    reconciler::{Scope, cluster_wide, namespaced},
};
use kube::ResourceExt;
use runtime::client::apply;
use serde_json::{Value, json};

use crate::world::{Seeds, TEST, create, object, reconciler};

const NAMESPACE: &str = "shoot--toy--kinds";

struct Still;

#[async_trait]
impl<K: ExtensionObject> Actuator<K> for Still {
    const NAME: &'static str = "still";

    async fn reconcile(&self, _: &Context<K>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn restore(&self, _: &Context<K>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn migrate(&self, _: &Context<K>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn delete(&self, _: &Context<K>) -> runtime::Result<()> {
        Ok(())
    }
}

/// R7-32, R7-33: also without a state, and no request is left that was met.
pub async fn each_runs_through_the_protocol(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let cloud = json!({"region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}});
    let with = |more: Value| {
        let mut spec = cloud.clone();
        json_merge(&mut spec, more);
        spec
    };
    let none = json!([]);
    runs::<BackupBucket>(seeds, cluster_wide, "backupbucket", cloud.clone()).await?;
    runs::<BackupEntry>(
        seeds,
        cluster_wide,
        "backupentry",
        with(json!({"bucketName": "b"})),
    )
    .await?;
    runs::<Bastion>(
        seeds,
        namespaced,
        "bastion",
        json!({"ingress": none, "userData": "eA=="}),
    )
    .await?;
    let runtime = json!({"binaryPath": "/b", "workerPool": {"name": "a", "selector": {}}});
    runs::<ContainerRuntime>(seeds, namespaced, "containerruntime", runtime).await?;
    runs::<ControlPlane>(seeds, namespaced, "controlplane", cloud.clone()).await?;
    let record = with(json!({"name": "a.b", "recordType": "A", "values": ["192.0.2.1"]}));
    runs::<DNSRecord>(seeds, namespaced, "dnsrecord", record).await?;
    runs::<Extension>(seeds, namespaced, "toy", json!({})).await?;
    runs::<Infrastructure>(seeds, namespaced, "infrastructure", cloud.clone()).await?;
    let network = json!({"podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"});
    runs::<Network>(seeds, namespaced, "network", network).await?;
    let config = json!({"purpose": "provision", "units": none, "files": none});
    runs::<OperatingSystemConfig>(seeds, namespaced, "operatingsystemconfigs", config).await?;
    let isolation = with(json!({"isolatedZoneID": "z-1"}));
    runs::<SubnetIsolation>(seeds, namespaced, "subnetisolation", isolation).await?;
    runs::<Worker>(seeds, namespaced, "worker", with(json!({"pools": none}))).await
}

fn json_merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

async fn runs<K: ExtensionObject>(
    seeds: &Seeds,
    scope: Scope<K>,
    finalizer: &str,
    mut spec: Value,
) -> Result<()> {
    spec["type"] = json!("toy");
    let mut wanted =
        json!({"metadata": {"name": "one", "annotations": {(OPERATION): RECONCILE}}, "spec": spec});
    if !matches!(K::kind(&()).as_ref(), "BackupBucket" | "BackupEntry") {
        wanted["metadata"]["namespace"] = json!(NAMESPACE);
    }
    let wanted: K = object(wanted).with_context(|| K::kind(&()).into_owned())?;
    let by = reconciler(&seeds.a, scope, Still);
    let api = by.api_of(&wanted);
    create(&api, &wanted).await?;
    let (ours, none) = ([format!("extensions.gardener.cloud/{finalizer}")], []);
    for (operation, type_, finalizers) in [
        (RECONCILE, LastOperationType::Create, &ours[..]),
        (MIGRATE, LastOperationType::Migrate, &none),
        (RESTORE, LastOperationType::Restore, &ours),
        (RECONCILE, LastOperationType::Reconcile, &ours),
    ] {
        TEST.annotate(&api, "one", OPERATION, Some(operation)).await?;
        by.run(&wanted).await?;
        let found = api.get("one").await?;
        let last = found
            .default_status()
            .and_then(|status| status.last_operation.clone());
        let last = last.map(|last| (last.type_, last.state));
        ensure!(
            last == Some((type_, LastOperationState::Succeeded)),
            "{}: {last:?}",
            K::kind(&())
        );
        ensure!(
            found.finalizers() == finalizers,
            "{}: {:?}",
            K::kind(&()),
            found.finalizers()
        );
        let state = found.default_status().and_then(|status| status.state.clone());
        ensure!(state.is_none(), "{}: {state:?}", K::kind(&()));
        ensure!(
            !found.annotations().contains_key(OPERATION),
            "{}: {operation}",
            K::kind(&())
        );
        ensure!(
            found
                .default_status()
                .is_some_and(|status| status.state.is_none()),
            "{}: a state that nobody gave",
            K::kind(&())
        );
    }
    apply::delete(&api, "one").await?;
    by.run(&wanted).await?;
    ensure!(
        api.get_opt("one").await?.is_none(),
        "{} is still there",
        K::kind(&())
    );
    Ok(())
}
