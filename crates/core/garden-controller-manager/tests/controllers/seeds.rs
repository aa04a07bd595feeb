//! Seeds in deletion.

use api::{
    constants::finalizer,
    gardencore::{BackupEntry, Seed, Shoot},
};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::eventually;

use super::{
    SOON,
    garden::{self, Garden, NAMESPACE, allowed, refused},
    until,
};

/// A stolen gardenlet certificate removes finalizer `gardener` at once. With the Seed, takeovers from the
/// seed would end, and the credentials of the bucket would be deleted.
pub async fn stay_while_a_shoot_needs_them(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    for name in ["seed-kept", "seed-unused"] {
        garden.bring(&garden::seed(name)).await.unwrap();
        until(&seeds, name, |seed| seed.finalizers() == [finalizer::SEED]).await;
    }
    garden
        .shoot(
            "keeps-a-seed",
            "seed-kept",
            Some("seed-kept"),
            ("Reconcile", "Succeeded"),
        )
        .await;
    seeds
        .delete("seed-unused", &DeleteParams::default())
        .await
        .unwrap();
    is_gone(&seeds, "seed-unused").await;

    seeds.delete("seed-kept", &DeleteParams::default()).await.unwrap();
    is_reported_in_use(garden, "Shoot garden-dev/keeps-a-seed").await;
    let user = "gardener.cloud:system:seed:seed-kept";
    let gardenlet: Api<Seed> = Api::all(garden.client(user, &["gardener.cloud:system:seeds"]).await);
    let released = json!({"metadata": {"finalizers": null}});
    refused(
        garden.patch(&gardenlet, "seed-kept", released.clone()).await,
        "may not change the lifetime of Seed seed-kept",
    );
    assert_eq!(
        seeds.get("seed-kept").await.unwrap().finalizers(),
        [finalizer::SEED]
    );

    // An administrator who knows that the seed is lost ends the Seed.
    allowed(garden.patch(&seeds, "seed-kept", released).await);
    is_gone(&seeds, "seed-kept").await;
    assert!(shoots.get_opt("keeps-a-seed").await.unwrap().is_some());
}

/// A Seed in deletion that no object needs goes at the change of the last object, long before the resync
/// period of the controller ends.
pub async fn go_with_the_last_object_that_needs_them(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden.bring(&garden::seed("seed-emptied")).await.unwrap();
    until(&seeds, "seed-emptied", |seed| {
        seed.finalizers() == [finalizer::SEED]
    })
    .await;
    garden
        .shoot(
            "leaves-a-seed",
            "seed-emptied",
            Some("seed-emptied"),
            ("Reconcile", "Succeeded"),
        )
        .await;
    let bucket = garden.bucket_of("seed-emptied").await;
    garden.entry("of-the-bucket", "seed-elsewhere", &bucket).await;
    garden.entry("of-the-seed", "seed-emptied", "elsewhere").await;

    let params = DeleteParams::default();
    seeds.delete("seed-emptied", &params).await.unwrap();
    is_reported_in_use(garden, "Shoot garden-dev/leaves-a-seed").await;
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&shoots, "leaves-a-seed", confirmed).await);
    shoots.delete("leaves-a-seed", &params).await.unwrap();
    is_reported_in_use(garden, "BackupEntry garden-dev/of-the-").await;
    entries.delete("of-the-seed", &params).await.unwrap();
    is_reported_in_use(garden, "BackupEntry garden-dev/of-the-bucket").await;
    entries.delete("of-the-bucket", &params).await.unwrap();
    is_gone(&seeds, "seed-emptied").await;
}

/// A finalizer of a member keeps the object of a deleted Shoot, and not the Seed.
pub async fn end_although_a_member_keeps_a_deleted_shoot(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    let member: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    garden.bring(&garden::seed("seed-freed")).await.unwrap();
    until(&seeds, "seed-freed", |seed| {
        seed.finalizers() == [finalizer::SEED]
    })
    .await;
    garden
        .shoot(
            "clings",
            "seed-freed",
            Some("seed-freed"),
            ("Reconcile", "Succeeded"),
        )
        .await;
    let finalizers = |list: &[&str]| json!({"metadata": {"finalizers": list}});
    let both = finalizers(&["gardener", "example.org/own"]);
    allowed(garden.patch(&shoots, "clings", both).await);
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    garden::until_allowed(|| garden::try_patch(&member, "clings", &confirmed)).await;
    allowed(garden.patch(&member, "clings", confirmed).await);
    let deleted = member.delete("clings", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    seeds
        .delete("seed-freed", &DeleteParams::default())
        .await
        .unwrap();
    is_reported_in_use(garden, "Shoot garden-dev/clings").await;

    // The gardenlet has removed the control plane.
    let user = "gardener.cloud:system:seed:seed-freed";
    let user = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let gardenlet: Api<Shoot> = Api::namespaced(user, NAMESPACE);
    let released = finalizers(&["example.org/own"]);
    allowed(garden.patch(&gardenlet, "clings", released).await);
    is_gone(&seeds, "seed-freed").await;
    assert!(shoots.get_opt("clings").await.unwrap().is_some());
    allowed(garden.patch(&member, "clings", finalizers(&[])).await);
}

async fn is_gone(seeds: &Api<Seed>, name: &str) {
    eventually(&format!("{name} is gone"), SOON, || async {
        match seeds.get_opt(name).await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(seed) => Err(format!("{:?}", seed.metadata)),
        }
    })
    .await
    .unwrap();
}

async fn is_reported_in_use(garden: &Garden, words: &str) {
    let events: Api<Event> = garden.admin("default");
    eventually("the Seed is reported to be in use", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let is_report = |event: &Event| {
            event.reason.as_deref() == Some("SeedInUse")
                && event.note.as_deref().is_some_and(|note| note.contains(words))
        };
        all.items
            .iter()
            .any(is_report)
            .then_some(())
            .ok_or_else(|| "no Event SeedInUse".to_owned())
    })
    .await
    .unwrap();
}
