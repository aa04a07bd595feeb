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
const SOON: Duration = Duration::from_secs(120);
/// The project of the attacker.
const ATTACKERS: &str = "garden-attackers";
const DOMAIN: &str = "apps.customer.test";

fn shoot_with_domain(name: &str, domain: &str) -> Value {
    let mut body = garden::shoot_with_pools(name, "local", &json!([]));
    body["spec"]["dns"] = json!({"domain": domain});
    body
}

async fn namespace_of(garden: &Garden, project: &str, namespace: &str) {
    let labels = json!({"project.gardener.cloud/name": project, "gardener.cloud/role": "project"});
    let metadata = json!({"name": namespace, "labels": labels});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
}

async fn project_of_attackers(garden: &Garden) {
    namespace_of(garden, "attackers", ATTACKERS).await;
    let project = garden::project_of("attackers", Some(ATTACKERS));
    garden.bring(&project).await.unwrap();
}

/// An editor of Shoots names the domain of a Shoot of a different project, or a name above or below.
pub async fn a_domain_belongs_to_one_shoot(garden: &Garden) {
    project_of_attackers(garden).await;
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::shoot_domain::run(garden.context(&[])));
    let victims: Api<Shoot> = garden.admin(NAMESPACE);
    allowed(
        garden
            .apply(&victims, "with-domain", shoot_with_domain("with-domain", DOMAIN))
            .await,
    );
    until_reserved(&victims, "with-domain", DOMAIN).await;

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
    allowed(garden.patch(&victims, "with-domain", confirmed).await);
    allowed(
        victims
            .delete("with-domain", &DeleteParams::default())
            .await
            .map(drop),
    );
    allowed(
        garden
            .apply(&shoots, "next", shoot_with_domain("next", DOMAIN))
            .await,
    );
    until_reserved(&shoots, "next", DOMAIN).await;
}

/// Otherwise the seed, and each seed to which the shoot moves, would serve the name of a different shoot.
pub async fn a_seed_takes_a_shoot_after_the_reservation(garden: &Garden) {
    project_of_attackers(garden).await;
    let admin: Api<Shoot> = garden.admin(ATTACKERS);
    let domain = "early.taken.test";
    allowed(
        garden
            .apply(&admin, "early", shoot_with_domain("early", domain))
            .await,
    );
    garden.finalizer(&admin, "early").await;
    let uid = admin.get("early").await.unwrap().uid().unwrap();
    let seed: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), ATTACKERS);
    let taken = json!({"seedName": "seed-a", "technicalID": "shoot--attackers--early", "uid": uid});
    let take = || garden.patch_status(&seed, "early", taken.clone());
    let words = "may not take Shoot early before its spec.dns.domain early.taken.test is reserved";
    refused(take().await, words);
    let reserved = |domain: &str| json!({"reservedDomain": domain});
    garden.status(&admin, "early", reserved("other.taken.test")).await;
    refused(take().await, words);
    garden.status(&admin, "early", reserved(domain)).await;
    allowed(take().await);
    a_shoot_on_a_seed_gets_no_domain(garden).await;
}

/// Shoot `early` is on a seed with a reserved domain.
async fn a_shoot_on_a_seed_gets_no_domain(garden: &Garden) {
    let editor = garden.editor_of_shoots(ATTACKERS).await.unwrap();
    let shoots: Api<Shoot> = Api::namespaced(editor, ATTACKERS);
    let last = ("Reconcile", "Succeeded");
    garden
        .shoot_in(ATTACKERS, "plain", "seed-a", Some("seed-a"), last)
        .await;
    garden
        .shoot_in(ATTACKERS, "unhosted", "seed-a", None, ("", ""))
        .await;
    let named = |domain: &str| json!({"spec": {"dns": {"domain": domain}}});
    let late = named("late.taken.test");
    let words = "cannot be added to Shoot plain, which is on seed \"seed-a\" without this domain";
    garden::until_refused(words, || garden::try_patch(&shoots, "plain", &late)).await;
    refused(garden.patch(&shoots, "plain", late.clone()).await, words);
    // A change in two steps.
    let removed = json!({"spec": {"dns": null}});
    allowed(garden.patch(&shoots, "early", removed).await);
    refused(
        garden.patch(&shoots, "early", late.clone()).await,
        "for which early.taken.test is reserved",
    );
    allowed(garden.patch(&shoots, "early", named("early.taken.test")).await);
    // No seed has this Shoot yet.
    allowed(garden.patch(&shoots, "unhosted", late).await);
}

/// Shoots that seeds have had since before garden-controller-manager reserved domains.
pub async fn a_shoot_from_before_reservations_keeps_its_domain(garden: &Garden) {
    project_of_attackers(garden).await;
    namespace_of(garden, "gone", "garden-gone").await;
    let (dev, theirs): (Api<Shoot>, Api<Shoot>) = (garden.admin(NAMESPACE), garden.admin(ATTACKERS));
    for (shoots, name, domain) in [
        (&dev, "former", "former.test"),
        (&theirs, "overlap", "web.former.test"),
        (&dev, "leaving", "leaving.test"),
    ] {
        allowed(garden.apply(shoots, name, shoot_with_domain(name, domain)).await);
        let last = garden::operation("Reconcile", "Succeeded");
        let status = json!({"seedName": "seed-a", "lastOperation": last});
        garden.status(shoots, name, status).await;
    }
    let finalizers = |list: &[&str]| json!({"metadata": {"finalizers": list}});
    let both = finalizers(&["gardener", "example.org/own"]);
    allowed(garden.patch(&dev, "leaving", both).await);
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&dev, "leaving", confirmed).await);
    allowed(dev.delete("leaving", &DeleteParams::default()).await.map(drop));
    // A Shoot whose Project is gone, and that no seed has.
    let stray: Api<Shoot> = garden.admin("garden-gone");
    allowed(
        garden
            .apply(&stray, "stray", shoot_with_domain("stray", "stray.test"))
            .await,
    );
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::shoot_domain::run(garden.context(&[])));

    until_reserved(&dev, "former", "former.test").await;
    until_reserved(&theirs, "overlap", "web.former.test").await;
    let note = until_reported(garden, "overlap", "DomainOverlaps").await;
    assert!(note.contains("keeps its domain"), "{note}");
    for (name, domain) in [
        ("owner", "stray.test"),
        ("heir", "leaving.test"),
        ("suffix", "co.uk"),
    ] {
        allowed(garden.apply(&theirs, name, shoot_with_domain(name, domain)).await);
    }
    until_reserved(&theirs, "owner", "stray.test").await;
    until_refused(garden, "heir").await;
    let note = until_reported(garden, "suffix", "DomainRefused").await;
    assert!(note.contains("co.uk is a public suffix"), "{note}");
    eventually("the refusal is in the status", SOON, || async {
        let found = theirs.get("suffix").await.map_err(|error| error.to_string())?;
        let errors = found.status.map(|status| status.last_errors).unwrap_or_default();
        let is_refusal = |text: &str| text.contains("co.uk is a public suffix");
        let is_reported = errors.iter().any(|error| is_refusal(&error.description));
        is_reported.then_some(()).ok_or_else(|| format!("{errors:?}"))
    })
    .await
    .unwrap();
    // A finalizer of a user does not keep the domain.
    let released = finalizers(&["example.org/own"]);
    allowed(garden.patch(&dev, "leaving", released).await);
    until_reserved(&theirs, "heir", "leaving.test").await;
    allowed(garden.patch(&dev, "leaving", finalizers(&[])).await);
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
    let note = until_reported(garden, name, "DomainRefused").await;
    assert!(note.contains("the domain of a second Shoot"), "{note}");
    assert!(!note.contains("with-domain"), "{name}: {note}");
}

/// The text of the Event about a Shoot of the attacker.
async fn until_reported(garden: &Garden, name: &str, reason: &str) -> String {
    let events: Api<Event> = garden.admin(ATTACKERS);
    let event = eventually(&format!("Event {reason} of {name}"), SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?.items;
        let is_report = |event: &Event| {
            let regarding = event.regarding.as_ref().and_then(|of| of.name.as_deref());
            regarding == Some(name) && event.reason.as_deref() == Some(reason)
        };
        all.into_iter()
            .find(is_report)
            .ok_or_else(|| format!("no Event {reason}"))
    })
    .await
    .unwrap();
    event.note.unwrap_or_default()
}
