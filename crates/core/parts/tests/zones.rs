//! A zone that is cut off, on a real API server: the Worker leaves the zone, and the zone's network is closed
//! and opened. The former state moves with the shoot (RZ-10..12, RZ-30).

#![allow(clippy::unwrap_used, clippy::panic)]

use anyhow::Result;
use api::extensions::{self, Worker};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use parts::{Deploy, Destroy, Facts, Namespace, Operation, Secrets, Settings, SubnetIsolation, Workers};
use parts_fixture::{NAMESPACE, World};
use placement::Isolation;
use serde_json::json;

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";

#[tokio::test]
async fn a_zone_is_closed_opened_and_carried() -> Result<()> {
    let world = World::start("zones").await?;
    let mut facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    assert_eq!(facts.isolation, Isolation::Nothing);
    Namespace::deploy(&facts).await?;
    Secrets::deploy(&facts).await?;
    let secret = json!({"name": "cloudprovider", "namespace": NAMESPACE});
    let infrastructure = json!({"spec": {"type": "local", "region": "local", "secretRef": secret}});
    world
        .apply(
            EXTENSIONS,
            "Infrastructure",
            Some(NAMESPACE),
            "web",
            infrastructure,
        )
        .await?;
    let subnets = json!({"providerStatus": {"subnets": ["a", "b"]}});
    world.status(EXTENSIONS, "Infrastructure", "web", subnets).await?;

    // No user isolates a zone.
    SubnetIsolation::deploy(&facts).await?;
    SubnetIsolation::ready(&facts).await?;
    assert!(!SubnetIsolation::is_there(&facts.residency).await?);
    Workers::deploy(&facts).await?;
    assert_eq!(left(&world).await?, None);

    cut_off(&mut facts, "id-a");
    Workers::deploy(&facts).await?;
    assert_eq!(left(&world).await?.as_deref(), Some("id-a"));
    SubnetIsolation::deploy(&facts).await?;
    let closed: extensions::SubnetIsolation = world.read("web").await?;
    assert_eq!(closed.annotations()["gardener.cloud/operation"], "reconcile");
    let spec = json!(closed.spec);
    assert_eq!(spec["isolatedZoneID"], "id-a");
    assert_eq!(
        spec["infrastructureProviderStatus"],
        json!({"subnets": ["a", "b"]})
    );
    assert!(SubnetIsolation::is_there(&facts.residency).await? && !SubnetIsolation::is_stale(&facts).await?);

    Box::pin(has_a_deadline(&world, &mut facts)).await?;

    Box::pin(is_made_anew(&world, &facts)).await?;

    // Never two at a time: the former SubnetIsolation is deleted first.
    cut_off(&mut facts, "id-b");
    assert!(SubnetIsolation::is_stale(&facts).await?);
    let refused = SubnetIsolation::deploy(&facts).await.unwrap_err();
    assert!(refused.to_string().contains("immutable"), "{refused}");
    SubnetIsolation::destroy_stale(&facts).await?;
    SubnetIsolation::stale_gone(&facts).await?;
    SubnetIsolation::deploy(&facts).await?;
    assert!(!SubnetIsolation::is_stale(&facts).await?);

    // The SubnetIsolation is deleted with the shoot, for every requested isolation.
    SubnetIsolation::destroy(&facts.residency).await?;
    SubnetIsolation::gone(&facts.residency).await?;
    assert!(!SubnetIsolation::is_there(&facts.residency).await?);
    Box::pin(restored(&world)).await
}

/// A user spends the budget while the flow runs: both objects get the new deadline. A Worker that no flow has
/// reached gets the request to leave the zone at the deadline (RZ-32).
async fn has_a_deadline(world: &World, facts: &mut Facts) -> Result<()> {
    let deadline = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations
            .get("extensions.gardener.cloud/isolated-zone-close-deadline")
            .cloned()
    };
    let closed: extensions::SubnetIsolation = world.read("web").await?;
    assert_eq!(deadline(closed.annotations()), None);
    facts.close_deadline.set(Some("2026-01-01T00:15:00Z".parse()?));
    Workers::publish_deadline(facts).await?;
    let closed: extensions::SubnetIsolation = world.read("web").await?;
    let worker: Worker = world.read("web").await?;
    for annotations in [closed.annotations(), worker.annotations()] {
        assert_eq!(deadline(annotations).as_deref(), Some("2026-01-01T00:15:00Z"));
    }

    facts.close_deadline.set(None);
    Workers::deploy(facts).await?;
    let worker: Worker = world.read("web").await?;
    assert_eq!(deadline(worker.annotations()), None, "the failover has ended");
    facts.isolation = Isolation::Nothing;
    Workers::deploy(facts).await?;
    assert_eq!(left(world).await?, None);
    cut_off(facts, "id-a");
    facts.close_deadline.set(Some("2026-01-01T00:20:00Z".parse()?));
    Workers::leave_zone(facts).await?;
    let worker: Worker = world.read("web").await?;
    assert_eq!(worker.spec.isolated_zone_id.as_deref(), Some("id-a"));
    assert_eq!(
        deadline(worker.annotations()).as_deref(),
        Some("2026-01-01T00:20:00Z")
    );
    assert_eq!(worker.annotations()["gardener.cloud/operation"], "reconcile");

    // A failback takes back also what was merged and not applied.
    facts.isolation = Isolation::Nothing;
    facts.close_deadline.set(None);
    Workers::deploy(facts).await?;
    assert_eq!(left(world).await?, None, "the Worker still leaves the zone");
    let worker: Worker = world.read("web").await?;
    assert_eq!(deadline(worker.annotations()), None);
    cut_off(facts, "id-a");
    Ok(())
}

/// A cancelled failover of the same zone begins again while the former SubnetIsolation is being deleted: a
/// new object is made when the former object is gone.
async fn is_made_anew(world: &World, facts: &Facts) -> Result<()> {
    let api: Api<extensions::SubnetIsolation> = Api::namespaced(world.client(), NAMESPACE);
    let finalizers = |all: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": all}}));
    let params = PatchParams::default();
    let former = api
        .patch("web", &params, &finalizers(&["example.test/opens"]))
        .await?;
    SubnetIsolation::destroy(&facts.residency).await?;
    assert!(
        SubnetIsolation::is_stale(facts).await?,
        "the zone is being opened"
    );
    let refused = SubnetIsolation::deploy(facts).await.unwrap_err();
    assert!(refused.to_string().contains("is being deleted"), "{refused}");
    api.patch("web", &params, &finalizers(&[])).await?;
    SubnetIsolation::stale_gone(facts).await?;
    SubnetIsolation::deploy(facts).await?;
    let anew: extensions::SubnetIsolation = world.read("web").await?;
    assert_ne!(anew.uid(), former.uid());
    Ok(())
}

/// Restores on a different seed.
async fn restored(world: &World) -> Result<()> {
    let mut facts = world.facts(Operation::Restore, Settings::default()).await?;
    facts.isolation = Isolation::Carried {
        zone: "id-b".into(),
        is_left: true,
    };
    // The zone's network was not closed yet on the source.
    SubnetIsolation::deploy(&facts).await?;
    SubnetIsolation::ready(&facts).await?;
    assert!(!SubnetIsolation::is_there(&facts.residency).await?);

    let state = json!({"formerACL": "acl-1"});
    let carried = json!({"extensions": [{"kind": "SubnetIsolation", "name": "web", "state": state}]});
    world.make_shoot_state(serde_json::from_value(carried)?).await?;
    SubnetIsolation::deploy(&facts).await?;
    let closed: extensions::SubnetIsolation = world.read("web").await?;
    assert_eq!(closed.annotations()["gardener.cloud/operation"], "restore");
    assert_eq!(closed.spec.isolated_zone_id, "id-b");
    assert_eq!(closed.status.unwrap().state.unwrap().0, state);
    assert!(!SubnetIsolation::is_stale(&facts).await?, "whatever is asked for");
    Ok(())
}

fn cut_off(facts: &mut Facts, zone: &str) {
    facts.isolation = Isolation::CutOff(zone.to_owned());
}

/// The zone that the Worker leaves.
async fn left(world: &World) -> Result<Option<String>> {
    let worker: Worker = world.read("web").await?;
    Ok(worker.spec.isolated_zone_id)
}
