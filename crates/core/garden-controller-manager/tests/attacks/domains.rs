//! Names of shoots outside of the default domains: a name belongs to a single Shoot (threats.md 9, 20).

use std::time::Duration;

use api::gardencore::Shoot;
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::task::JoinSet;

use crate::garden::{self, Garden, NAMESPACE, allowed, refused, until_allowed};

/// Longer than garden-controller-manager takes on a slow machine, and than its period for refused domains.
const SOON: Duration = Duration::from_secs(180);
/// The project of the attacker.
const ATTACKERS: &str = "garden-attackers";
const DOMAIN: &str = "apps.customer.test";

fn shoot_with_domain(name: &str, domain: &str) -> Value {
    let mut body = garden::shoot_with_pools(name, "local", &json!([]));
    body["spec"]["dns"] = json!({"domain": domain});
    body
}

/// An editor of Shoots names the domain of a Shoot of a different project, or a name above or below.
pub async fn a_domain_belongs_to_one_shoot(garden: &Garden) {
    let labels = json!({"project.gardener.cloud/name": "attackers", "gardener.cloud/role": "project"});
    let metadata = json!({"name": ATTACKERS, "labels": labels});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::shoot_domain::run(garden.context(&[])));
    let victims: Api<Shoot> = garden.admin(NAMESPACE);
    allowed(
        garden
            .apply(&victims, "named", shoot_with_domain("named", DOMAIN))
            .await,
    );
    until_reserved(&victims, "named", DOMAIN).await;

    let editor = garden.editor_of_shoots(ATTACKERS).await.unwrap();
    let shoots: Api<Shoot> = Api::namespaced(editor, ATTACKERS);
    let probe = shoot_with_domain("free", "free.customer.test");
    until_allowed(|| garden::try_apply(&shoots, "free", probe.clone())).await;
    allowed(garden.apply(&shoots, "free", probe).await);
    until_reserved(&shoots, "free", "free.customer.test").await;
    let names = [
        ("equal", DOMAIN),
        ("below", "web.apps.customer.test"),
        ("above", "customer.test"),
    ];
    for (name, domain) in names {
        allowed(garden.apply(&shoots, name, shoot_with_domain(name, domain)).await);
        until_refused(garden, name).await;
    }
    a_seed_reserves_no_domain(garden).await;
    // A refused Shoot is deleted like any other Shoot.
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    for (name, _) in names {
        let found = shoots.get(name).await.unwrap();
        assert_eq!(
            found.status.and_then(|status| status.reserved_domain),
            None,
            "{name}"
        );
        allowed(garden.patch(&shoots, name, confirmed.clone()).await);
        allowed(shoots.delete(name, &DeleteParams::default()).await.map(drop));
    }
    // The reservation ends with its Shoot.
    allowed(garden.patch(&victims, "named", confirmed).await);
    allowed(victims.delete("named", &DeleteParams::default()).await.map(drop));
    allowed(
        garden
            .apply(&shoots, "next", shoot_with_domain("next", DOMAIN))
            .await,
    );
    until_reserved(&shoots, "next", DOMAIN).await;
}

/// The gardenlet of the seed of the attacker's Shoot.
async fn a_seed_reserves_no_domain(garden: &Garden) {
    // A Shoot that the seed has: a single policy refuses the write.
    garden
        .shoot_in(
            ATTACKERS,
            "hosted",
            "seed-a",
            Some("seed-a"),
            ("Reconcile", "Succeeded"),
        )
        .await;
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), ATTACKERS);
    let words = "may not change status.reservedDomain of Shoot hosted";
    for domain in [json!(DOMAIN), json!("other.customer.test")] {
        let status = json!({"reservedDomain": domain});
        refused(garden.patch_status(&shoots, "hosted", status).await, words);
    }
    let reserved = json!({"reservedDomain": "hosted.customer.test"});
    let admin: Api<Shoot> = garden.admin(ATTACKERS);
    garden.status(&admin, "hosted", reserved).await;
    let ended = json!({"reservedDomain": null});
    refused(garden.patch_status(&shoots, "hosted", ended).await, words);
}

async fn until_reserved(shoots: &Api<Shoot>, name: &str, domain: &str) {
    eventually(&format!("{domain} is reserved for {name}"), SOON, || async {
        let found = shoots.get(name).await.map_err(|error| error.to_string())?;
        let reserved = found.status.and_then(|status| status.reserved_domain);
        if reserved.as_deref() == Some(domain) {
            Ok(())
        } else {
            Err(format!("{reserved:?}"))
        }
    })
    .await
    .unwrap();
}

/// The Event is in the namespace of the attacker, and does not identify the Shoot of the victim.
async fn until_refused(garden: &Garden, name: &str) {
    let events: Api<Event> = garden.admin(ATTACKERS);
    let event = eventually(&format!("the domain of {name} is refused"), SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?.items;
        let is_refusal = |event: &Event| {
            let regarding = event.regarding.as_ref().and_then(|of| of.name.as_deref());
            regarding == Some(name) && event.reason.as_deref() == Some("DomainRefused")
        };
        all.into_iter()
            .find(is_refusal)
            .ok_or_else(|| "no Event DomainRefused".to_owned())
    })
    .await
    .unwrap();
    let note = event.note.clone().unwrap_or_default();
    assert!(note.contains("the domain of a second Shoot"), "{note}");
    assert!(!note.contains("named"), "{}: {note}", event.name_any());
}
