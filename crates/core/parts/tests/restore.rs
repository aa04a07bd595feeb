//! Data that move with a shoot, on a real API server: carried Secrets and the states of extension objects. A
//! state is restored before the provider may act.

#![allow(clippy::unwrap_used, clippy::panic)]

use anyhow::Result;
use api::{
    constants::{SHOOT_UID, finalizer},
    extensions,
    gardencore::ShootStateSpec,
};
use k8s_openapi::api::core::v1::{self, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use parts::{
    AllExtensions, Deploy, Destroy, ExtensionSecrets, Facts, ForcedManagedResources, Infrastructure,
    Kubeconfig, ManagedResources, Migrate, Namespace, Operation, Secrets, Settings, left_in, shoot_state,
};
use parts_fixture::{NAMESPACE, PROJECT, World};
use serde_json::{Value, json};

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";
const RESOURCES: &str = "resources.gardener.cloud/v1alpha1";

/// R7-23: carried Secrets are unchanged on the destination, and derived Secrets match the users' copies.
/// R7-31: the provider is asked to restore only after `status.state` holds the state.
#[tokio::test]
async fn a_shoot_takes_its_secrets_and_states_along() -> Result<()> {
    let world = World::start("restore").await?;
    let source = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&source).await?;
    a_mark_of_an_earlier_residency_ends_with_the_next(&world, &source).await?;
    Secrets::deploy(&source).await?;
    let nobody = Kubeconfig::deploy(&source).await.unwrap_err();
    assert_eq!(nobody.class(), "NotReady", "a seed makes no Secret in the garden");
    world.make_kubeconfig_secret().await?;
    Kubeconfig::deploy(&source).await?;
    let kubeconfig = kubeconfig(&world).await?;
    create_secret(
        &world,
        json!({"metadata": {"name": "worker-key", "labels": {"persist": "true"}}, "immutable": true,
        "type": "example.test/key", "data": {"k": "dw=="}}),
    )
    .await?;
    let of_provider =
        json!({"persist": "true", "managed-by": "secrets-manager", "manager-identity": "provider-x"});
    create_secret(
        &world,
        json!({"metadata": {"name": "provider-ca", "labels": of_provider}, "type": "Opaque", "data": {"k": "dw=="}}),
    )
    .await?;
    let before = source.residency.carried_secrets().await?;
    let first = world.secrets().await?;
    Secrets::deploy(&source).await?;
    assert_eq!(world.secrets().await?, first, "doing it twice changes nothing");

    infrastructure_reports(&world, &source).await?;
    migrate(&world, &source).await?;
    persist(&world, &before).await?;
    managed_resources_of_extensions_are_left_to_them(&world, &source).await?;
    Namespace::destroy(&source.residency).await?;
    Namespace::gone(&source.residency).await?;

    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Namespace::deploy(&destination).await?;
    Secrets::deploy(&destination).await?;
    assert_eq!(
        world.secrets().await?.len(),
        first.len() - 2,
        "those of extensions wait for all owners of reserved names"
    );
    ExtensionSecrets::restore(&destination).await?;
    let after = destination.residency.carried_secrets().await?;
    assert_eq!(before.len(), 16, "fourteen of the gardenlet, two of extensions");
    assert_eq!(
        before.iter().map(essence).collect::<Vec<_>>(),
        after.iter().map(essence).collect::<Vec<_>>()
    );
    Kubeconfig::deploy(&destination).await?;
    assert_eq!(
        kubeconfig,
        self::kubeconfig(&world).await?,
        "users keep their kubeconfig"
    );

    Infrastructure::deploy(&destination).await?;
    let restored: extensions::Infrastructure = world.read("web").await?;
    assert_eq!(restored.annotations()["gardener.cloud/operation"], "restore");
    let status = restored.status.clone().unwrap().default;
    assert_eq!(status.state.unwrap().0, json!({"networkID": "n1"}));
    assert_eq!(status.resources.len(), 1);
    let referenced: Secret = world.read("of-extension").await?;
    assert_eq!(referenced.data.unwrap()["k"].0, b"v");
    // A second run does not overwrite a newer state.
    world
        .status(
            EXTENSIONS,
            "Infrastructure",
            "web",
            json!({"state": {"networkID": "newer"}}),
        )
        .await?;
    Infrastructure::deploy(&destination).await?;
    let again: extensions::Infrastructure = world.read("web").await?;
    assert_eq!(
        again.status.unwrap().default.state.unwrap().0,
        json!({"networkID": "newer"})
    );
    Ok(())
}

/// The provider's part: reports a status and a state to carry.
async fn infrastructure_reports(world: &World, facts: &Facts) -> Result<()> {
    Infrastructure::deploy(facts).await?;
    create_secret(
        world,
        json!({"metadata": {"name": "of-extension"}, "data": {"k": "dg=="}}),
    )
    .await?;

    let failing = json!({"lastError": {"description": "the account is closed", "codes": ["ERR_INFRA_UNAUTHORIZED"]},
        "lastOperation": last("Create", "Error"), "observedGeneration": 1});
    answer(world, failing).await?;
    let error = Infrastructure::ready(facts).await.unwrap_err();
    assert_eq!(
        (error.class(), error.to_string().as_str()),
        ("Config", "Infrastructure web: the account is closed")
    );

    Infrastructure::deploy(facts).await?;
    let resources = json!([{"name": "key", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "of-extension"}}]);
    answer(
        world,
        json!({"lastError": null, "lastOperation": last("Reconcile", "Succeeded"), "observedGeneration": 1,
        "state": {"networkID": "n1"}, "resources": resources}),
    )
    .await?;
    Infrastructure::ready(facts).await.map_err(Into::into)
}

/// Creates a Secret, like an extension.
async fn create_secret(world: &World, secret: Value) -> Result<()> {
    let api = Api::<Secret>::namespaced(world.client(), NAMESPACE);
    api.create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    Ok(())
}

/// Removes the annotation and writes the status, like a provider.
async fn answer(world: &World, status: Value) -> Result<()> {
    let body =
        kube::api::Patch::Merge(json!({"metadata": {"annotations": {"gardener.cloud/operation": null}}}));
    world
        .any(EXTENSIONS, "Infrastructure", Some(NAMESPACE))
        .patch("web", &kube::api::PatchParams::default(), &body)
        .await?;
    world.status(EXTENSIONS, "Infrastructure", "web", status).await
}

fn last(type_: &str, state: &str) -> Value {
    json!({"type": type_, "state": state, "progress": 100, "description": "", "lastUpdateTime": runtime::clock::now_k8s()})
}

async fn migrate(world: &World, facts: &Facts) -> Result<()> {
    Infrastructure::migrate(&facts.residency).await?;
    let told: extensions::Infrastructure = world.read("web").await?;
    assert_eq!(told.annotations()["gardener.cloud/operation"], "migrate");
    answer(world, json!({"lastOperation": last("Migrate", "Succeeded")})).await?;
    Infrastructure::migrated(&facts.residency).await?;
    // Over all kinds, too: all providers have released the objects.
    AllExtensions::migrate(&facts.residency).await?;
    AllExtensions::migrated(&facts.residency).await?;
    Ok(())
}

/// The gardenlet's own ManagedResources are deleted. A ManagedResource of an extension with objects in the
/// shoot blocks the deletion of the namespace.
async fn managed_resources_of_extensions_are_left_to_them(world: &World, facts: &Facts) -> Result<()> {
    let api = world.any(RESOURCES, "ManagedResource", Some(NAMESPACE));
    for (name, spec) in [
        (
            "shoot-core-coredns",
            json!({"secretRefs": [], "keepObjects": false}),
        ),
        ("of-extension", json!({"secretRefs": [], "keepObjects": false})),
        (
            "of-extension-in-seed",
            json!({"secretRefs": [], "keepObjects": false, "class": "seed"}),
        ),
    ] {
        world
            .apply(
                RESOURCES,
                "ManagedResource",
                Some(NAMESPACE),
                name,
                json!({"spec": spec}),
            )
            .await?;
    }
    ManagedResources::keep_objects(&facts.residency).await?;
    let kept = |object: DynamicObject| object.data["spec"]["keepObjects"] == true;
    assert!(kept(api.get("shoot-core-coredns").await?));
    assert!(!kept(api.get("of-extension").await?));
    ManagedResources::destroy(&facts.residency).await?;
    ManagedResources::gone(&facts.residency).await?;
    let left = api.list(&ListParams::default()).await?.items;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["of-extension", "of-extension-in-seed"]);

    let held = ManagedResources::check_no_other(&facts.residency)
        .await
        .unwrap_err()
        .to_string();
    assert!(held.contains("objects in the shoot: of-extension."), "{held}");
    the_departure_waits_for_undeleted_ones(world, facts).await?;
    ForcedManagedResources::keep_objects(&facts.residency).await?;
    assert!(kept(api.get("of-extension").await?));
    ManagedResources::check_no_other(&facts.residency).await?;
    assert!(
        !kept(api.get("of-extension-in-seed").await?),
        "it would stay in the seed for good"
    );
    ForcedManagedResources::destroy(&facts.residency).await?;
    ForcedManagedResources::gone(&facts.residency).await?;
    Ok(())
}

/// A shoot that returns to a seed before the end of the clean-up is not taken for a departed shoot.
async fn a_mark_of_an_earlier_residency_ends_with_the_next(world: &World, facts: &Facts) -> Result<()> {
    Namespace::mark_as_left(&facts.residency, 3).await?;
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    let marked = namespaces.get(NAMESPACE).await?;
    assert_eq!(left_in(&marked), Some(3));
    Namespace::deploy(facts).await?;
    let returned = namespaces.get(NAMESPACE).await?;
    assert_eq!(left_in(&returned), None);
    assert!(
        returned.annotations().contains_key(SHOOT_UID),
        "the namespace belongs to its Shoot"
    );
    Ok(())
}

/// After the departure of the shoot, an undeleted ManagedResource of an extension is named and awaited. A
/// ManagedResource that is being deleted is left to the resource-manager.
async fn the_departure_waits_for_undeleted_ones(world: &World, facts: &Facts) -> Result<()> {
    let api = world.any(RESOURCES, "ManagedResource", Some(NAMESPACE));
    let finalizers = |value: Value| kube::api::Patch::Merge(json!({"metadata": {"finalizers": value}}));
    let params = kube::api::PatchParams::default();
    let late = json!({"spec": {"secretRefs": [], "keepObjects": false}});
    world
        .apply(RESOURCES, "ManagedResource", Some(NAMESPACE), "late", late)
        .await?;
    let held = ManagedResources::check_departed(&facts.residency)
        .await
        .unwrap_err()
        .to_string();
    assert!(held.contains("of extensions: late, of-extension."), "{held}");
    let held_by = finalizers(json!([finalizer::RESOURCE_MANAGER]));
    api.patch("late", &params, &held_by).await?;
    api.delete("late", &DeleteParams::default()).await?;
    let held = ManagedResources::check_departed(&facts.residency)
        .await
        .unwrap_err()
        .to_string();
    assert!(held.contains("of extensions: of-extension."), "{held}");
    let all = ManagedResources::check_no_other(&facts.residency)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        all.contains("in the shoot: late, of-extension."),
        "a deletion of the shoot waits for the objects: {all}"
    );
    api.patch("late", &params, &finalizers(Value::Null)).await?;
    Ok(())
}

/// Writes the ShootState, like the gardenlet.
async fn persist(world: &World, carried: &[Secret]) -> Result<()> {
    let infrastructure: extensions::Infrastructure = world.read("web").await?;
    let status = infrastructure.status.unwrap().default;
    let referenced: Secret = world.read("of-extension").await?;
    let spec: ShootStateSpec = serde_json::from_value(json!({
        "gardener": shoot_state::to_shoot_state(carried)?,
        "extensions": [{"kind": "Infrastructure", "name": "web", "state": status.state, "resources": status.resources}],
        "resources": [{"apiVersion": "v1", "kind": "Secret", "name": "of-extension", "data": shoot_state::content(referenced)?}],
    }))?;
    world.make_shoot_state(spec).await?;
    let body = kube::api::Patch::Merge(json!({"status": {"lastOperation": last("Restore", "Processing")}}));
    world
        .any("core.gardener.cloud/v1beta1", "Shoot", Some(PROJECT))
        .patch_status("web", &kube::api::PatchParams::default(), &body)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_lost_authority_stops_the_flow_and_nothing_is_made_in_its_place() -> Result<()> {
    let world = World::start("lost").await?;
    let facts = world.facts(Operation::Restore, Settings::default()).await?;
    Namespace::deploy(&facts).await?;
    let error = Secrets::deploy(&facts).await.unwrap_err();
    assert_eq!(error.class(), "Config");
    assert!(
        error
            .to_string()
            .contains("Secret ca is not in the shoot's namespace"),
        "{error}"
    );
    assert_eq!(world.secrets().await?.len(), 0);
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    assert_eq!(
        namespaces.get(NAMESPACE).await?.labels()["gardener.cloud/role"],
        "shoot"
    );
    Ok(())
}

async fn kubeconfig(world: &World) -> Result<Secret> {
    let secret = Api::<Secret>::namespaced(world.client(), PROJECT)
        .get("web.kubeconfig")
        .await?;
    let text = String::from_utf8(secret.data.as_ref().unwrap()["kubeconfig"].0.clone())?;
    assert!(
        text.contains("server: https://api.web.dev.internal.example.test\n"),
        "{text}"
    );
    Ok(secret)
}

/// The fields that must be equal on both seeds.
fn essence(secret: &Secret) -> (String, Value) {
    (
        secret.name_any(),
        json!({"data": secret.data, "type": secret.type_, "immutable": secret.immutable, "labels": secret.labels()}),
    )
}
