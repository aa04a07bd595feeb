//! The keys of each shoot: its ShootState and the Secret of its kubeconfig.

use api::{
    constants::finalizer::SHOOT_STATE,
    gardencore::{Shoot, ShootState},
};
use k8s_openapi::api::{core::v1::Secret, events::v1::Event, rbac::v1::ClusterRole};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::eventually;

use crate::{
    SOON,
    garden::{Garden, NAMESPACE, allowed, operation},
    gone, until,
};

/// No seed makes either object. The keys stay in the garden, so that a seed that dies takes none with it
/// (R7-42), and only the seed that has the shoot can read them.
pub async fn are_for_the_seed_that_has_the_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let states: Api<ShootState> = garden.admin(NAMESPACE);
    let secrets: Api<Secret> = garden.admin(NAMESPACE);
    garden
        .shoot("keeper", "seed-a", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let uid = shoots.get("keeper").await.unwrap().uid();
    let secret = until(&secrets, "keeper.kubeconfig", |_| true).await;
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert!(secret.data.is_none());
    assert_eq!(secret.labels()["shoot.gardener.cloud/name"], "keeper");
    let state = until(&states, "keeper", |_| true).await;
    assert_eq!(state.finalizers(), [SHOOT_STATE]);
    for owners in [secret.owner_references(), state.owner_references()] {
        assert_eq!(owners.first().map(|owner| &owner.uid), uid.as_ref());
    }
    let of_a: Api<ShootState> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let of_b: Api<ShootState> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let key = json!({"spec": {"gardener": [{"name": "ca", "type": "secret", "data": {"data": {}}}]}});
    eventually("the seed may fill it", SOON, || {
        garden.patch(&of_a, "keeper", key.clone())
    })
    .await
    .unwrap();
    let forbidden = |outcome: Result<ShootState, kube::Error>| match outcome {
        Err(kube::Error::Api(answer)) if answer.is_forbidden() => Ok(()),
        other => Err(format!("it can be read: {}", other.is_ok())),
    };
    forbidden(of_b.get("keeper").await).unwrap();
    let restored = json!({"seedName": "seed-b", "lastOperation": operation("Restore", "Succeeded")});
    garden.status(&shoots, "keeper", restored).await;
    let carried = eventually("the seed that has it may read it", SOON, || of_b.get("keeper"))
        .await
        .unwrap();
    assert_eq!(
        carried.spec.gardener.len(),
        1,
        "a restore takes nothing out of it"
    );
    eventually("the former seed may not any more", SOON, || async {
        forbidden(of_a.get("keeper").await)
    })
    .await
    .unwrap();
    // A new one for a Shoot whose ShootState somebody deleted.
    states.delete("keeper", &DeleteParams::default()).await.unwrap();
    let old = state.uid();
    until(&states, "keeper", |state| state.uid() != old).await;
}

/// After its hand-over it is restored before it is taken down. A deletion in the foreground takes what
/// belongs to the Shoot at once: its ShootState stays, and who may read it is said again.
pub async fn of_a_shoot_that_is_deleted_change_hands_too(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("leaver", "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    garden.finalizer(&shoots, "leaver").await;
    let [of_a, of_b]: [Api<ShootState>; 2] =
        [&garden.seed_a, &garden.seed_b].map(|seed| Api::namespaced(seed.clone(), NAMESPACE));
    eventually("the seed that has it may read it", SOON, || of_a.get("leaver"))
        .await
        .unwrap();
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&shoots, "leaver", confirmed).await);
    shoots
        .delete("leaver", &DeleteParams::foreground())
        .await
        .unwrap();
    let handed_over = json!({"seedName": "seed-b", "lastOperation": operation("Migrate", "Succeeded")});
    garden.status(&shoots, "leaver", handed_over).await;
    eventually("its new seed may read it", SOON, || of_b.get("leaver"))
        .await
        .unwrap();
    // With the state goes what keeps the Shoot beside the seed, and nothing of it is left.
    garden
        .status(
            &shoots,
            "leaver",
            json!({"lastOperation": operation("Delete", "Succeeded")}),
        )
        .await;
    until(&shoots, "leaver", |shoot| shoot.finalizers() == ["gardener"]).await;
    let done = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&shoots, "leaver", done).await);
    gone(&shoots, "leaver").await;
    let roles: Api<ClusterRole> = Api::all(garden.administrator());
    eventually("no role names it", SOON, || async {
        let all = roles.list(&ListParams::default()).await.unwrap();
        let every = all.into_iter().flat_map(|role| role.rules.unwrap_or_default());
        let mut names = every.flat_map(|rule| rule.resource_names.unwrap_or_default());
        names
            .all(|name| name != "leaver")
            .then_some(())
            .ok_or("a role names it")
    })
    .await
    .unwrap();
}

/// A restore of the garden from a backup has made the ShootState without its owner.
pub async fn without_an_owner_are_reported_until_they_have_one(garden: &Garden) {
    let states: Api<ShootState> = garden.admin(NAMESPACE);
    garden.state("restored").await;
    garden
        .shoot("restored", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let events: Api<Event> = garden.admin(NAMESPACE);
    let note = eventually("the ShootState is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let found = all.items.into_iter().find(|event| {
            let shoot = event.regarding.as_ref().and_then(|shoot| shoot.name.as_deref());
            event.reason.as_deref() == Some("ShootStateNotOwned") && shoot == Some("restored")
        });
        found.and_then(|event| event.note).ok_or("no Event".to_owned())
    })
    .await
    .unwrap();
    assert!(note.contains("delete the ShootState"), "{note}");
    // The administrator follows the report.
    garden.state("restored").await;
    until(&states, "restored", |state| state.finalizers() == [SHOOT_STATE]).await;
}
