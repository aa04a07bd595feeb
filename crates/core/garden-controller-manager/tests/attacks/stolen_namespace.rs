//! Two shoots with the same technical id have the same namespace on a seed: the second locks the first out.

use api::gardencore::{Project, Shoot};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

pub async fn an_id_comes_from_the_project_of_the_namespace_and_stays(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    garden.shoot("young", "seed-a", None, ("", "")).await;
    garden.finalizer(&admin, "young").await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let uid = a.get("young").await.unwrap().uid().unwrap();
    let first = |id: &str, uid: &str| json!({"seedName": "seed-a", "technicalID": id, "uid": uid});
    let write = |status: Value| garden.patch_status(&a, "young", status);
    refused(
        write(first("shoot--prod--victim", &uid)).await,
        "status.technicalID of Shoot young to \"shoot--prod--victim\": it must be \"shoot--dev--young\"",
    );
    refused(
        write(first("shoot--dev--young", "another")).await,
        &format!("status.uid of Shoot young to \"another\": it must be \"{uid}\""),
    );
    refused(
        write(json!({"seedName": "seed-a"})).await,
        "all three are set in one write",
    );
    refused(
        write(json!({"observedGeneration": 1})).await,
        "its first write says where the shoot is",
    );
    allowed(write(first("shoot--dev--young", &uid)).await);
    refused(
        write(json!({"technicalID": "shoot--prod--victim"})).await,
        "it is \"shoot--dev--young\" for ever",
    );
    refused(write(json!({"uid": "another"})).await, "for ever");
    refused(write(json!({"technicalID": null})).await, "for ever");
    // A recorded id stays, even if the id differs from the result of the formula.
    garden
        .shoot("old", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden
        .status(
            &admin,
            "old",
            json!({"technicalID": "shoot--former--old", "uid": "of-a-former-garden"}),
        )
        .await;
    allowed(
        garden
            .patch_status(&a, "old", json!({"observedGeneration": 1}))
            .await,
    );
    refused(
        garden
            .patch_status(&a, "old", json!({"technicalID": "shoot--dev--old"}))
            .await,
        "it is \"shoot--former--old\" for ever",
    );
    // Not even garden-controller-manager changes a recorded id.
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(
        garden
            .patch_status(&manager, "old", json!({"technicalID": "shoot--dev--old"}))
            .await,
        "for ever",
    );
}

/// A user who may create Projects could otherwise take the namespace of any other project.
pub async fn a_namespace_has_one_project(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let word = "namespace garden-dev belongs to project dev";
    let evil = garden::project_of("evil", Some(NAMESPACE));
    garden::until_refused(word, || garden::try_apply(&projects, "evil", evil.clone())).await;
    refused(garden.apply(&projects, "evil", evil.clone()).await, word);
    // The default namespace name of a project counts too.
    allowed(
        garden
            .apply(&projects, "quiet", garden::project_of("quiet", None))
            .await,
    );
    let evil = garden::project_of("evil", Some("garden-quiet"));
    let word = "namespace garden-quiet belongs to project quiet";
    garden::until_refused(word, || garden::try_apply(&projects, "evil", evil.clone())).await;
    refused(garden.apply(&projects, "evil", evil.clone()).await, word);
    // The technical ids of a--b/c and a/b--c would be equal.
    refused(
        garden
            .apply(&projects, "a--b", garden::project_of("a--b", None))
            .await,
        "two hyphens in a row",
    );
}
