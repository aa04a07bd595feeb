//! The process as in a seed: the binary, with exactly the rights from the chart.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod chart;
mod world;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use api::{
    extensions::{
        BackupBucket, BackupEntry, ControlPlane, DNSRecord, ExtensionObject, Infrastructure, Network,
        SubnetIsolation,
    },
    meta::LastOperationState,
};
use chart::NAMESPACE;
use extension_contract::shoot_objects::ShootObjects;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{Api, ResourceExt};
use local_cloud_fixture::run_hosts;
use serde_json::json;
use testkit::{NameServer, ObjectStore, PlayedKubelet, Server, eventually};
use tokio::time::Instant;
use world::{ACCOUNT, MANAGER_OF_TEST, SOON, ZONE, create, gone, object};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_works_with_the_rights_of_its_chart() -> Result<()> {
    let plane = testkit::ControlPlane::start("seed").await?;
    let seed = world::seed(&plane).await?;
    let cloud = world::account(&plane, "cloud-user").await?;
    let (dns, store) = (NameServer::start(&[ZONE]).await?, ObjectStore::start().await?);
    create(
        &Api::all(seed.clone()),
        &world::named::<Namespace>(json!({"metadata": {"name": NAMESPACE}}))?,
    )
    .await?;
    chart::install(&plane.admin_kubeconfig_file(), &[]).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = plane.kubeconfig(&format!("system:serviceaccount:{NAMESPACE}:provider-local"), &[])?;
    std::fs::write(folder.path().join("kubeconfig"), serde_json::to_vec(&kubeconfig)?)?;
    let lock = format!("--leader-elect-resource-namespace={NAMESPACE}");
    let arguments = ["--kubeconfig=kubeconfig", "--health-address=127.0.0.1:0", &lock];
    let mut process = Server::start(
        "provider-local",
        env!("CARGO_BIN_EXE_provider-local"),
        folder.path(),
        arguments,
        // The test counts attempts in the log, so the log must not depend on the filter in the caller's
        // environment.
        &[("RUST_LOG", "warn")],
    )?;

    for (namespace, credentials) in [
        ("shoot--dev--one", &cloud),
        ("dns", &world::dns_credentials(&dns)),
        ("store", &world::store_credentials(&store)),
    ] {
        world::namespace(&seed, namespace, credentials).await?;
    }
    world::secrets_of_control_plane(&seed, "shoot--dev--one").await?;
    world::pool_in(&seed, "shoot--dev--one", &["x", "y"]).await?;
    let _hosts = run_hosts(&seed, ACCOUNT, MANAGER_OF_TEST, ["host-1"]).await?;
    // A seed without nodes has no kubelet that reports on pods.
    let _pods = PlayedKubelet::start(&seed);
    // A seed without a resource-manager, too.
    let _manager = ShootObjects::default().kept_by(&seed, "shoot--dev--one");
    every_kind_is_looked_after(&seed).await?;

    let leases: Api<Lease> = Api::namespaced(seed.clone(), NAMESPACE);
    eventually("the heartbeat", SOON, || {
        leases.get("gardener-extension-heartbeat")
    })
    .await?;
    process.check_alive()?;
    failures_are_tried_again_with_growing_pauses(&seed, process.log()).await
}

async fn every_kind_is_looked_after(seed: &kube::Client) -> Result<()> {
    let infra: Infrastructure = object("one", "shoot--dev--one", json!({}))?;
    let control_plane: ControlPlane = object(
        "one",
        "shoot--dev--one",
        json!({"infrastructureProviderStatus": {"networkID": "net-1"}}),
    )?;
    let ranges = json!({"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"});
    let network: Network = object("one", "shoot--dev--one", ranges)?;
    let closed: SubnetIsolation = object(
        "one",
        "shoot--dev--one",
        json!({"isolatedZoneID": cloud_local::zones::id_of("x")}),
    )?;
    let record: DNSRecord = object(
        "one",
        "dns",
        json!({"name": format!("one.{ZONE}"), "recordType": "A", "values": ["192.0.2.1"]}),
    )?;
    let bucket: BackupBucket = object("bucket-one", "store", json!({}))?;
    let entry: BackupEntry = object(
        "shoot--dev--one--uid",
        "store",
        json!({"bucketName": "bucket-one"}),
    )?;
    let infras: Api<Infrastructure> = Api::namespaced(seed.clone(), "shoot--dev--one");
    let planes: Api<ControlPlane> = Api::namespaced(seed.clone(), "shoot--dev--one");
    let networks: Api<Network> = Api::namespaced(seed.clone(), "shoot--dev--one");
    let zones: Api<SubnetIsolation> = Api::namespaced(seed.clone(), "shoot--dev--one");
    let records: Api<DNSRecord> = Api::namespaced(seed.clone(), "dns");
    let (buckets, entries) = (
        Api::<BackupBucket>::all(seed.clone()),
        Api::<BackupEntry>::all(seed.clone()),
    );
    create(&infras, &infra).await?;
    create(&planes, &control_plane).await?;
    create(&networks, &network).await?;
    create(&zones, &closed).await?;
    create(&records, &record).await?;
    create(&buckets, &bucket).await?;
    create(&entries, &entry).await?;
    succeeds(&infras, "one").await?;
    succeeds(&planes, "one").await?;
    succeeds(&networks, "one").await?;
    succeeds(&zones, "one").await?;
    succeeds(&records, "one").await?;
    succeeds(&buckets, "bucket-one").await?;
    succeeds(&entries, "shoot--dev--one--uid").await?;

    // A migrated object is released, and a deleted object is removed.
    MANAGER_OF_TEST
        .annotate(&infras, "one", "gardener.cloud/operation", Some("migrate"))
        .await?;
    eventually("the infrastructure has migrated", SOON, || async {
        let found = infras.get("one").await?;
        ensure!(
            found.finalizers().is_empty() && found.annotations().is_empty(),
            "{:?}",
            found.metadata
        );
        Ok(())
    })
    .await?;
    gone(&infras, "one").await?;
    gone(&planes, "one").await?;
    gone(&networks, "one").await?;
    gone(&records, "one").await?;
    gone(&entries, "shoot--dev--one--uid").await?;
    gone(&buckets, "bucket-one").await?;
    ensure!(
        world::networks(seed).await?["shoot--dev--one"].is_object(),
        "migrate removed the network (I9)"
    );
    Ok(())
}

/// The controller's own status writes must not wake the controller.
async fn failures_are_tried_again_with_growing_pauses(seed: &kube::Client, log: &Path) -> Result<()> {
    const NAME: &str = "no.zone.test";
    let records: Api<DNSRecord> = Api::namespaced(seed.clone(), "dns");
    let wrong = json!({"name": NAME, "recordType": "A", "values": ["192.0.2.1"]});
    let begin = Instant::now();
    create(&records, &object("wrong", "dns", wrong)?).await?;
    // Only for this record: a write of a different record may have conflicted before.
    let failures = || {
        let lines = std::fs::read_to_string(log).unwrap_or_default();
        lines
            .lines()
            .filter(|line| line.contains("reconciliation failed") && line.contains(NAME))
            .count()
    };
    eventually("the third attempt", SOON, || async {
        ensure!(failures() >= 3, "{} attempts", failures());
        Ok(())
    })
    .await?;
    // Pauses of at least 1, 2, 4 … seconds, even if this test is scheduled late. The n-th attempt comes at
    // least 2^(n-1) - 1 seconds after the first attempt.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let attempts = failures();
    let least = 2_u64.saturating_pow(u32::try_from(attempts)? - 1) - 1;
    ensure!(
        begin.elapsed() >= Duration::from_secs(least),
        "{attempts} attempts within {:?}",
        begin.elapsed()
    );
    Ok(())
}

async fn succeeds<K: ExtensionObject>(api: &Api<K>, name: &str) -> Result<()> {
    eventually("the operation succeeds", SOON, || async {
        let object = api.get(name).await?;
        let status = object.default_status().context("no status")?;
        let state = status.last_operation.as_ref().map(|operation| operation.state);
        ensure!(
            state == Some(LastOperationState::Succeeded),
            "{} {name}: {status:?}",
            K::kind(&())
        );
        Ok(())
    })
    .await
}
