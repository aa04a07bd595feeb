use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use cloud_controller_manager_local::{MANAGER, names::Name};
use cloud_local::{Account, LEDGER, LoadBalancers, Source};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::world::{ACCOUNT, CLUSTER, SOON, World, create, options};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn services(world: &World) -> Api<Service> {
    Api::namespaced(world.shoot.clone(), "default")
}

async fn make(world: &World, name: &str, more: Value) -> Result<Service> {
    let mut spec = json!({"type": "LoadBalancer", "ports": [{"port": 443}]});
    for (key, value) in more.as_object().context("no object")? {
        spec[key] = value.clone();
    }
    create(
        &services(world),
        json!({"metadata": {"name": name}, "spec": spec}),
    )
    .await
}

fn shown(service: &Service) -> Vec<String> {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let points = balancer
        .into_iter()
        .flat_map(|balancer| balancer.ingress.iter().flatten());
    points.filter_map(|point| point.ip.clone()).collect()
}

async fn until(world: &World, name: &str, what: &str, look: impl Fn(&Service) -> bool) -> Result<Service> {
    eventually(what, SOON, || async {
        let service = services(world).get(name).await?;
        ensure!(
            look(&service),
            "{name}: {:?} {:?}",
            service.metadata,
            service.status
        );
        anyhow::Ok(service)
    })
    .await
}

async fn gone(world: &World, name: &str) -> Result<()> {
    eventually("the service is gone", SOON, || async {
        let left = services(world).get_opt(name).await?;
        ensure!(left.is_none(), "{left:?}");
        anyhow::Ok(())
    })
    .await
}

/// The Services of the account that carry the packets.
fn in_cloud(world: &World) -> Api<Service> {
    Api::namespaced(world.shoot.clone(), ACCOUNT)
}

fn carrier(service: &Service) -> String {
    format!("lb-{}", service.uid().unwrap_or_default())
}

/// Checks that the cloud forwards the address to the node port of the cluster's machines, for these sources
/// only.
async fn leads(world: &World, service: &Service, address: &str, sources: &Value) -> Result<()> {
    let now = services(world).get(&service.name_any()).await?;
    let ports = now.spec.unwrap_or_default().ports.unwrap_or_default();
    let wanted = json!({
        "selector": {"local.provider.extensions.gardener.cloud/cluster": CLUSTER},
        "ports": [{"port": 443, "targetPort": ports.first().and_then(|port| port.node_port)}],
        "sources": sources,
        "shown": [address],
    });
    eventually("the address leads to the machines", SOON, || async {
        let carrier = in_cloud(world).get(&carrier(service)).await?;
        let spec = carrier.spec.clone().unwrap_or_default();
        let ports = spec.ports.iter().flatten();
        let found = json!({
            "selector": spec.selector,
            "ports": ports.map(|port| json!({"port": port.port, "targetPort": port.target_port})).collect::<Vec<_>>(),
            "sources": spec.load_balancer_source_ranges.unwrap_or_default(),
            "shown": shown(&carrier),
        });
        ensure!(found == wanted, "{found} and not {wanted}");
        anyhow::Ok(())
    })
    .await
}

/// Keys of the ledger.
async fn ledger(world: &World) -> Result<BTreeSet<String>> {
    let ledger = world.cloud().get_opt(LEDGER).await?;
    Ok(ledger
        .and_then(|ledger| ledger.data)
        .unwrap_or_default()
        .into_keys()
        .collect())
}

pub async fn services_have_addresses(world: &World) -> Result<()> {
    let running = world.run(&[Name::Service], options(None));
    let first = make(world, "first", json!({})).await?;
    let wishes = make(world, "wishes", json!({"loadBalancerIP": "10.184.0.9"})).await?;
    make(
        world,
        "of-another-class",
        json!({"loadBalancerClass": "example.org/lb"}),
    )
    .await?;
    make(world, "internal", json!({"type": "ClusterIP"})).await?;
    let one = until(world, "first", "an address", |service| !shown(service).is_empty()).await?;
    ensure!(one.finalizers() == [FINALIZER], "{:?}", one.finalizers());
    ensure!(shown(&one) == ["10.184.0.1"], "{:?}", shown(&one));
    until(world, "wishes", "the address", |service| {
        shown(service) == ["10.184.0.9"]
    })
    .await?;
    world.event("Service", "wishes", "EnsuredLoadBalancer").await?;
    make(world, "same-wish", json!({"loadBalancerIP": "10.184.0.9"})).await?;
    world
        .event("Service", "same-wish", "SyncLoadBalancerFailed")
        .await?;
    let key = |service: &Service| format!("{CLUSTER}.{}", service.uid().unwrap_or_default());
    ensure!(
        ledger(world).await? == BTreeSet::from([key(&first), key(&wishes)]),
        "{:?}",
        ledger(world).await?
    );
    for name in ["of-another-class", "internal"] {
        let service = services(world).get(name).await?;
        ensure!(
            service.finalizers().is_empty() && shown(&service).is_empty(),
            "{service:?}"
        );
    }

    leads(world, &first, "10.184.0.1", &json!([])).await?;
    let narrowed = json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}});
    services(world)
        .patch("first", &PatchParams::default(), &Patch::Merge(narrowed))
        .await?;
    leads(world, &first, "10.184.0.1", &json!(["192.0.2.0/24"])).await?;

    // A foreign write of the status is corrected.
    let wrong = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    services(world)
        .patch_status("first", &PatchParams::default(), &Patch::Merge(wrong))
        .await?;
    until(world, "first", "the address again", |service| {
        shown(service) == ["10.184.0.1"]
    })
    .await?;

    // A different type: the load balancer is released and the Service stays.
    let internal = json!({"spec": {"type": "ClusterIP", "loadBalancerSourceRanges": null}});
    services(world)
        .patch("first", &PatchParams::default(), &Patch::Merge(internal))
        .await?;
    until(world, "first", "it is released", |service| {
        service.finalizers().is_empty() && shown(service).is_empty()
    })
    .await?;
    ensure!(
        ledger(world).await? == BTreeSet::from([key(&wishes)]),
        "{:?}",
        ledger(world).await?
    );
    let carried = in_cloud(world).get_opt(&carrier(&first)).await?;
    ensure!(carried.is_none(), "{carried:?}");
    // A deletion frees the address for a waiting Service.
    services(world).delete("wishes", &DeleteParams::default()).await?;
    gone(world, "wishes").await?;
    until(world, "same-wish", "the free address", |service| {
        shown(service) == ["10.184.0.9"]
    })
    .await?;
    for name in ["first", "same-wish", "of-another-class", "internal"] {
        services(world).delete(name, &DeleteParams::default()).await?;
        gone(world, name).await?;
    }
    ensure!(ledger(world).await?.is_empty(), "{:?}", ledger(world).await?);
    running.stop().await;
    Ok(())
}

/// The shoot must keep the finalizer until the cloud has released the address.
pub async fn an_unusable_cloud_keeps_services(world: &World) -> Result<()> {
    let running = world.run(&[Name::Service], options(None));
    make(world, "held", json!({})).await?;
    until(world, "held", "an address", |service| !shown(service).is_empty()).await?;
    let stranger = serde_json::to_value(world.plane.kubeconfig("stranger", &[])?)?;
    world.write_credentials(&stranger, ACCOUNT)?;
    services(world).delete("held", &DeleteParams::default()).await?;
    world.event("Service", "held", "SyncLoadBalancerFailed").await?;
    let held = services(world).get("held").await?;
    ensure!(held.finalizers() == [FINALIZER], "{:?}", held.finalizers());
    ensure!(ledger(world).await?.len() == 1, "{:?}", ledger(world).await?);
    world.good_credentials()?;
    gone(world, "held").await?;
    ensure!(ledger(world).await?.is_empty(), "{:?}", ledger(world).await?);
    running.stop().await;
    Ok(())
}

/// Two clusters that take addresses at the same moment.
pub async fn clusters_share_the_ledger(world: &World) -> Result<()> {
    let balancers = |cluster: &str| {
        let account = Arc::new(Account::new(
            Source::Folder(world.folder()),
            MANAGER,
            Arc::new(|cloud| cloud.client(&runtime::client::Permit::sole("a test"))),
        ));
        LoadBalancers::new(account, cluster, options(None).load_balancer_range)
    };
    let (a, b) = (balancers("a"), balancers("b"));
    let uids: Vec<_> = (0..7).map(|i| format!("uid-{i}")).collect();
    let take = uids
        .iter()
        .flat_map(|uid| [&a, &b].map(|of| of.ensure(uid, "default/s", None)));
    let taken = try_join_all(take).await?;
    let different: BTreeSet<_> = taken.iter().collect();
    ensure!(different.len() == 14, "{taken:?}");
    let again = a.ensure("uid-0", "default/s", None).await?;
    ensure!(again == taken[0], "{again} is not {}", taken[0]);
    // The range has 14 addresses.
    let full = a.ensure("one-too-many", "default/s", None).await;
    ensure!(full.is_err(), "{full:?}");
    try_join_all(uids.iter().flat_map(|uid| [&a, &b].map(|of| of.release(uid)))).await?;
    ensure!(ledger(world).await?.is_empty(), "{:?}", ledger(world).await?);
    Ok(())
}
