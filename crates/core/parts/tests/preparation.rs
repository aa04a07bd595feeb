//! The namespace and the Secrets of a preparation, on a real API server: the mark comes with the namespace
//! alone, and mark and Secrets go before the first step of an owner.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use api::{
    constants::{PREPARED_BY_GRANT, PREPARED_IN_EPOCH},
    gardencore::{InternalSecret, shoot::MigrationPreparation},
};
use k8s_openapi::{ByteString, api::core::v1};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parts::{
    Facts, Namespace, Operation, PreparationFacts, PreparationState, Secrets, Settings, UrlOf, prepared_in,
};
use placement::preparation_state_name;
use serde_json::json;
use testkit::FakeGate;

use parts_fixture::{NAMESPACE, PROJECT, World};

/// A grant of this epoch.
fn grant(facts: &Facts, epoch: i64, expiry: &str) -> MigrationPreparation {
    serde_json::from_value(
        json!({"uid": facts.shoot.uid(), "source": "seed-b", "destination": "seed-a",
        "epoch": epoch, "expiry": expiry}),
    )
    .unwrap()
}

/// The facts of a preparation under a grant of this epoch.
fn preparation(facts: &Facts, epoch: i64) -> PreparationFacts {
    PreparationFacts {
        garden: facts.garden.clone(),
        residency: facts.residency.clone(),
        shoot: Arc::clone(&facts.shoot),
        project: facts.project.clone(),
        seed_object: facts.seed_object.clone(),
        granted: grant(facts, epoch, "2999-01-01T00:00:00Z"),
    }
}

/// The object with the keys, as the source makes the object. Each value is the expiry.
async fn publish_fake(world: &World, prepared: &PreparationFacts) -> Result<()> {
    let expiry = prepared.granted.expiry.0.as_second().to_string();
    let data = PreparationState::data_keys().map(|key| (key, ByteString(expiry.clone().into_bytes())));
    let owner = kube::Resource::owner_ref(&*prepared.shoot, &());
    let object: InternalSecret = serde_json::from_value(json!({
        "metadata": {"name": preparation_state_name("web", &prepared.granted), "ownerReferences": [owner]},
        "type": "gardener.cloud/shoot-preparation", "immutable": true,
        "data": data.collect::<BTreeMap<_, _>>(),
    }))?;
    let objects: Api<InternalSecret> = Api::namespaced(world.client(), PROJECT);
    objects.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// The Secrets of a preparation, with the value of each.
async fn prepared_secrets(world: &World) -> Result<BTreeSet<(String, String)>> {
    let secrets: Api<v1::Secret> = Api::namespaced(world.client(), NAMESPACE);
    let found = secrets
        .list(&ListParams::default().labels(PREPARED_BY_GRANT))
        .await?;
    let all = found.items.into_iter().map(|secret| {
        let mut values = secret.data.clone().unwrap_or_default().into_values();
        let value = values.next().map(|value| String::from_utf8(value.0).unwrap());
        (secret.name_any(), value.unwrap_or_default())
    });
    Ok(all.collect())
}

#[tokio::test]
async fn no_mark_outlasts_the_first_step_of_an_owner() -> Result<()> {
    let world = World::start("preparation").await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    let prepared = preparation(&facts, 3);
    for _ in 0..2 {
        Namespace::prepare(&prepared).await?;
    }
    let found = namespaces.get(NAMESPACE).await?;
    assert_eq!(prepared_in(&found), Some(3));
    let why = Namespace::prepare(&preparation(&facts, 4)).await.unwrap_err();
    let why = why.to_string();
    assert!(
        why.contains("was prepared under a grant of a different epoch"),
        "{why}"
    );

    Namespace::deploy(&facts).await?;
    let owned = namespaces.get(NAMESPACE).await?;
    assert_eq!((prepared_in(&owned), owned.uid()), (None, found.uid()));
    // A removal that was decided before the owner began comes too late.
    let is_removed = Namespace::remove_prepared(&facts.residency, &found).await?;
    assert!(!is_removed, "the namespace of the owner is removed");
    let kept = namespaces.get(NAMESPACE).await?;
    assert_eq!(kept.metadata.deletion_timestamp, None);
    // No later preparation marks the namespace.
    let why = Namespace::prepare(&prepared).await.unwrap_err().to_string();
    assert!(why.contains("exists in this seed and was not prepared"), "{why}");
    assert_eq!(prepared_in(&namespaces.get(NAMESPACE).await?), None);
    let why = Namespace::remove_prepared(&facts.residency, &owned).await;
    assert!(why.unwrap_err().to_string().contains("was not prepared"));
    Box::pin(a_mark_of_a_user_removes_no_etcd(&world, &facts)).await
}

/// A user with the right to mark has marked the namespace of a control plane.
async fn a_mark_of_a_user_removes_no_etcd(world: &World, facts: &Facts) -> Result<()> {
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    let etcd =
        json!({"spec": {"labels": {}, "etcd": {}, "replicas": 1, "backup": {"store": {"prefix": "p"}}}});
    let druid = "druid.gardener.cloud/v1alpha1";
    world
        .apply(druid, "Etcd", Some(NAMESPACE), "etcd-main", etcd)
        .await?;
    let mark = json!({"metadata": {"annotations": {PREPARED_IN_EPOCH: "3"}}});
    let params = PatchParams::default();
    let marked = namespaces.patch(NAMESPACE, &params, &Patch::Merge(mark)).await?;
    let why = Namespace::remove_prepared(&facts.residency, &marked).await;
    let why = why.unwrap_err().to_string();
    assert!(why.contains("and an Etcd: no object is changed"), "{why}");
    let kept = namespaces.get(NAMESPACE).await?;
    assert_eq!(kept.metadata.deletion_timestamp, None);
    Ok(())
}

#[tokio::test]
async fn no_secret_of_a_preparation_outlasts_the_first_step_of_an_owner() -> Result<()> {
    let world = World::start("prepared-secrets").await?;
    let facts = world.facts(Operation::Restore, Settings::default()).await?;
    let mut prepared = preparation(&facts, 3);
    Namespace::prepare(&prepared).await?;
    let why = PreparationState::deploy(&prepared).await.unwrap_err().to_string();
    assert!(
        why.contains("seed seed-b has not made InternalSecret web.preparation-3-"),
        "{why}"
    );
    publish_fake(&world, &prepared).await?;
    for _ in 0..2 {
        PreparationState::deploy(&prepared).await?;
    }
    let first = prepared_secrets(&world).await?;
    assert_eq!(first.len(), 12, "{first:?}");

    // A later grant in the same epoch.
    prepared.granted = grant(&facts, 3, "3000-01-01T00:00:00Z");
    publish_fake(&world, &prepared).await?;
    PreparationState::deploy(&prepared).await?;
    let second = prepared_secrets(&world).await?;
    assert_eq!((second.len(), second.intersection(&first).count()), (12, 0));

    Namespace::deploy(&facts).await?;
    assert_eq!(prepared_secrets(&world).await?, BTreeSet::new());
    // A preparation that runs beside the first step of the owner: the next step removes the Secrets.
    PreparationState::deploy(&prepared).await?;
    assert_eq!(prepared_secrets(&world).await?, second);
    // There is no ShootState to restore the keys from.
    let why = Secrets::deploy(&facts).await.unwrap_err().to_string();
    assert!(why.contains("No new one is made in its place"), "{why}");
    assert_eq!(prepared_secrets(&world).await?, BTreeSet::new());
    // A key of an owner stays, also with the label of a preparation, and the preparation fails.
    let labels = json!({"manager-identity": "gardenlet", PREPARED_BY_GRANT: "1-1"});
    let own = json!({"metadata": {"name": "ca-etcd", "labels": labels}, "stringData": {"ca.key": "x"}});
    let secrets: Api<v1::Secret> = Api::namespaced(world.client(), NAMESPACE);
    let own = serde_json::from_value(own)?;
    let own = secrets.create(&PostParams::default(), &own).await?;
    let why = PreparationState::deploy(&prepared).await.unwrap_err().to_string();
    assert!(why.contains("could not make Secret ca-etcd"), "{why}");
    assert_eq!(secrets.get("ca-etcd").await?.data, own.data);
    Ok(())
}

/// The source makes the object once for each grant, from the keys in its seed.
#[tokio::test]
async fn a_source_issues_the_keys_of_a_preparation_once() -> Result<()> {
    let world = World::start("issued-keys").await?;
    let gate = FakeGate::default();
    let url = gate.start()?;
    let settings = Settings {
        etcd_backup_url: UrlOf::new(move |_| url.clone()),
        ..Settings::default()
    };
    let facts = world.facts(Operation::Reconcile, settings).await?;
    let prepared = preparation(&facts, 1);
    let objects: Api<InternalSecret> = Api::namespaced(world.client(), PROJECT);
    let name = preparation_state_name("web", &prepared.granted);
    let publish = || PreparationState::publish(&prepared);
    let why = publish().await.unwrap_err().to_string();
    assert!(why.contains("has no control plane of the shoot yet"), "{why}");
    Namespace::prepare(&prepared).await?;
    let why = publish().await.unwrap_err().to_string();
    assert!(why.contains("has no control plane of the shoot yet"), "{why}");
    Namespace::deploy(&facts).await?;
    let why = publish().await.unwrap_err().to_string();
    assert!(why.contains("is not there yet"), "{why}");
    assert!(objects.get_opt(&name).await?.is_none());
    Secrets::deploy(&facts).await?;
    // The gate of a former version knows no list.
    gate.set_former(true);
    let why = publish().await.unwrap_err().to_string();
    assert!(why.contains("so no keys are issued"), "{why}");
    assert!(objects.get_opt(&name).await?.is_none());
    gate.set_former(false);
    publish().await?;
    let first = objects.get(&name).await?;
    let serial = serial_for_etcd(&first);
    assert_eq!(gate.serials(), Some(vec![serial.clone()]));
    let keys: BTreeSet<_> = first.spec.data.keys().cloned().collect();
    assert_eq!(keys, PreparationState::data_keys().collect::<BTreeSet<_>>());
    assert_eq!(
        (first.spec.immutable, first.owner_references().len()),
        (Some(true), 1)
    );
    let size: usize = first.spec.data.values().map(|value| value.0.len()).sum();
    assert!(size < 64 * 1024, "{size}");
    publish().await?;
    assert_eq!(objects.get(&name).await?.uid(), first.uid());
    // garden-controller-manager has deleted the object, and the grant is still valid.
    objects.delete(&name, &DeleteParams::default()).await?;
    publish().await?;
    let second = objects.get(&name).await?;
    assert_ne!(second.uid(), first.uid());
    assert_eq!(serial_for_etcd(&second), serial);
    assert_eq!(gate.serials(), Some(vec![serial]));

    // The end of the grant.
    let mut shoot = (*facts.shoot).clone();
    shoot.status.get_or_insert_default().technical_id = NAMESPACE.to_owned();
    let (seed, settings) = (
        facts.residency.seed.clone(),
        Arc::clone(&facts.residency.settings),
    );
    PreparationState::withdraw(seed, settings, &shoot, 1).await?;
    assert_eq!(gate.serials(), Some(Vec::new()));
    Ok(())
}

/// Serial number of the certificate for etcd.
fn serial_for_etcd(object: &InternalSecret) -> String {
    let pem = &object.spec.data["etcd-client_tls.crt"].0;
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem).unwrap();
    let leaf = pem.parse_x509().unwrap();
    leaf.raw_serial_as_string().replace(':', "")
}
