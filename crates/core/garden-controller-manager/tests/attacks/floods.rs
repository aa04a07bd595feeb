//! Objects of a seed that would fill the memory of processes that serve all seeds, or the garden's etcd
//! (threats.md 18).

use api::{
    constants::{LEFTOVER_NAMESPACES, seed_user},
    gardencore::{BackupEntry, ControllerInstallation, Seed, Shoot, ShootState},
};
use k8s_openapi::api::{core::v1::EventSource, events::v1::Event};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{Garden, NAMESPACE, allowed, event_in, refused, try_create, until_allowed, until_refused},
    grant_rights,
};

/// Some fifty statuses of 1 MB end garden-controller-manager and every gardenlet.
pub async fn a_seed_writes_no_large_status(garden: &Garden) {
    let status = "may not write a status of";
    let failed = |length: usize| json!({"lastErrors": [{"description": "x".repeat(length)}]});
    let resources = |number: usize| json!({"encryptedResources": vec!["a"; number]});
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden
        .shoot("flooded", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    refused(
        garden.patch_status(&shoots, "flooded", failed(70_000)).await,
        status,
    );
    refused(
        garden.patch_status(&shoots, "flooded", resources(7000)).await,
        "fields and entries to Shoot flooded: a seed may write 6000",
    );
    allowed(garden.patch_status(&shoots, "flooded", failed(60_000)).await);
    allowed(
        garden
            .patch_status(&shoots, "flooded", json!({"lastErrors": null}))
            .await,
    );
    // A status from before the bound shrinks.
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), "flooded", resources(9000))
        .await;
    allowed(garden.patch_status(&shoots, "flooded", resources(8000)).await);
    refused(
        garden.patch_status(&shoots, "flooded", resources(8500)).await,
        status,
    );

    let entries: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden.entry("flooded", "seed-a", "bucket-a").await;
    let error = |length: usize| {
        let last = json!({"description": "x".repeat(length)});
        json!({"seedName": "seed-a", "lastError": last})
    };
    refused(
        garden.patch_status(&entries, "flooded", error(70_000)).await,
        status,
    );
    allowed(garden.patch_status(&entries, "flooded", error(1000)).await);

    let seeds: Api<Seed> = Api::all(garden.seed_a.clone());
    let version = |length: usize| json!({"kubernetesVersion": "1".repeat(length)});
    refused(
        garden.patch_status(&seeds, "seed-a", version(70_000)).await,
        status,
    );
    allowed(garden.patch_status(&seeds, "seed-a", version(5)).await);
    let annotated =
        |length: usize| json!({"metadata": {"annotations": {LEFTOVER_NAMESPACES: "y".repeat(length)}}});
    refused(
        garden.patch(&seeds, "seed-a", annotated(70_000)).await,
        "may not write spec and metadata of",
    );
    allowed(garden.patch(&seeds, "seed-a", annotated(10)).await);
    let many = json!({"spec": {"provider": {"zones": vec!["a"; 3000]}}});
    refused(
        garden.patch(&seeds, "seed-a", many).await,
        "fields and entries to Seed seed-a: a seed may write 2000",
    );
}

/// garden-controller-manager and every gardenlet read each ControllerInstallation, and an object at the bound
/// of etcd can be neither changed nor deleted.
pub async fn a_seed_fills_no_controller_installation(garden: &Garden) {
    let made: Api<ControllerInstallation> = Api::all(garden.administrator());
    let spec = json!({"registrationRef": {"name": "flood"}, "seedRef": {"name": "seed-a"}});
    let object = |name: &str| {
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerInstallation",
            "metadata": {"name": name}, "spec": spec})
    };
    for name in ["flood", "flood-large"] {
        garden.apply(&made, name, object(name)).await.unwrap();
    }
    let installations: Api<ControllerInstallation> = Api::all(garden.seed_a.clone());
    let own = "core.gardener.cloud/controllerinstallation";
    let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    for repeated in [2, 34_000] {
        let flood = with(json!(vec![own; repeated]));
        refused(
            garden.patch(&installations, "flood", flood).await,
            "\"flood\" is forbidden",
        );
    }
    refused(
        garden
            .patch(&installations, "flood", with(json!([own, own])))
            .await,
        "may not write a finalizer of ControllerInstallation flood more than once",
    );
    refused(
        garden
            .patch(&installations, "flood", with(json!(["x.example/hold"])))
            .await,
        "and its own finalizer, and nothing else",
    );
    for finalizers in [json!([own]), json!(null), json!([own])] {
        allowed(garden.patch(&installations, "flood", with(finalizers)).await);
    }
    // Repetitions from before the rule go.
    let repeated = with(json!(vec![own; 9]));
    garden.patch(&made, "flood", repeated).await.unwrap();
    let installed = json!({"conditions": []});
    allowed(garden.patch_status(&installations, "flood", installed).await);
    for finalizers in [json!(vec![own; 3]), json!(null)] {
        allowed(garden.patch(&installations, "flood", with(finalizers)).await);
    }
    // An object above the bound shrinks, and does not grow.
    let annotated = json!({"metadata": {"annotations": {"x": "y".repeat(70_000)}, "finalizers": [own]}});
    garden.patch(&made, "flood-large", annotated).await.unwrap();
    allowed(
        garden
            .patch(&installations, "flood-large", with(json!(null)))
            .await,
    );
    refused(
        garden
            .patch(&installations, "flood-large", with(json!([own])))
            .await,
        "bytes to ControllerInstallation flood-large: a seed may write 65536",
    );
}

/// A project without an object of seed-a until the test creates a Shoot.
const QUIET: &str = "garden-quiet";

/// A seed reports about itself and in projects where the seed has a shoot, and in no other namespace. The
/// right in a project is there within seconds, so that the Events of a first creation are published.
pub async fn a_seed_reports_where_the_seed_has_a_shoot(garden: &Garden) {
    let _controllers = grant_rights(garden);
    let labels = json!({"project.gardener.cloud/name": "quiet", "gardener.cloud/role": "project"});
    let metadata = json!({"name": QUIET, "labels": labels});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
    garden
        .shoot_in(
            QUIET,
            "theirs",
            "seed-b",
            Some("seed-b"),
            ("Reconcile", "Succeeded"),
        )
        .await;
    let events = |client: &kube::Client, namespace: &str| Api::<Event>::namespaced(client.clone(), namespace);
    let create = async |namespace: &str, event: Event| {
        let events = events(&garden.seed_a, namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    };
    // The controller has granted the rights in this project.
    let theirs = events(&garden.seed_b, QUIET);
    until_allowed(|| try_create(&theirs, event_in(QUIET, "seed-b"))).await;
    let no_right = "cannot create resource \"events\"";
    for namespace in ["garden", "kube-system", "gardener-system-seed-lease", QUIET] {
        refused(create(namespace, event_in(namespace, "seed-a")).await, no_right);
    }
    allowed(create("default", event_in("default", "seed-a")).await);

    // A new Shoot, of which no status names a seed.
    garden.shoot_in(QUIET, "mine", "seed-a", None, ("", "")).await;
    let mine = events(&garden.seed_a, QUIET);
    until_allowed(|| try_create(&mine, event_in(QUIET, "seed-a"))).await;
    allowed(create(QUIET, event_in(QUIET, "seed-a")).await);
    let mut large = event_in(QUIET, "seed-a");
    large.metadata.name = Some("large".to_owned());
    large.metadata.annotations = Some([("x".to_owned(), "y".repeat(5000))].into());
    refused(create(QUIET, large).await, "an Event of a seed may have 4096");
    // No right to keys follows from a name in the specification.
    let states: Api<ShootState> = Api::namespaced(garden.seed_a.clone(), QUIET);
    refused(states.get("mine").await.map(drop), "cannot get resource");

    let shoots: Api<Shoot> = garden.admin(QUIET);
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    garden.patch(&shoots, "mine", confirmed).await.unwrap();
    shoots.delete("mine", &DeleteParams::default()).await.unwrap();
    // An Event of a present name is refused also with the right.
    let late = || {
        let mut event = event_in(QUIET, "seed-a");
        event.metadata.name = Some("late".to_owned());
        event
    };
    until_refused(no_right, || try_create(&mine, late())).await;
    refused(create(QUIET, late()).await, no_right);
    a_wide_right_to_events_meets_the_policy(garden).await;
}

/// A seed reports under its own name, and changes no Event of a different process: an operator reads there
/// that the seed is silent.
pub async fn a_seed_writes_no_event_of_a_different_process(garden: &Garden) {
    let of_seed = |seed: &kube::Client| Api::<Event>::namespaced(seed.clone(), "default");
    let own = of_seed(&garden.seed_a);
    let named = |name: &str, seed: &str| {
        let mut event = event_in("default", seed);
        event.metadata.name = Some(name.to_owned());
        event
    };
    let create = async |event: Event| own.create(&PostParams::default(), &event).await.map(drop);
    let mut forged = named("forged", "seed-a");
    forged.reporting_instance = Some("garden-controller-manager".to_owned());
    let reporter = "the Events of a seed have the user of the seed there";
    refused(create(forged).await, reporter);
    let mut of_b = named("of-b", "seed-b");
    of_b.reporting_instance = Some(seed_user("seed-a"));
    refused(create(of_b).await, "may not write an Event about Seed seed-b");
    let mut about_node = named("of-node", "seed-a");
    about_node.regarding =
        Some(serde_json::from_value(json!({"apiVersion": "v1", "kind": "Node", "name": "n"})).unwrap());
    refused(create(about_node).await, "may not write an Event about Node n");
    allowed(create(named("own", "seed-a")).await);
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    allowed(garden.patch(&own, "own", series.clone()).await);

    let present = garden_event(named("silent", "seed-a"));
    let of_garden: Api<Event> = garden.admin("default");
    of_garden.create(&PostParams::default(), &present).await.unwrap();
    let annotated = json!({"metadata": {"annotations": {"note": "all is well"}}});
    for change in [series, annotated] {
        refused(garden.patch(&own, "silent", change.clone()).await, reporter);
        refused(
            garden.patch(&of_seed(&garden.seed_b), "own", change).await,
            reporter,
        );
    }
}

/// kubectl prints the process that reports, and runbooks follow the Events of garden-controller-manager.
pub async fn a_seed_reports_under_no_foreign_name(garden: &Garden) {
    let own: Api<Event> = Api::namespaced(garden.seed_a.clone(), "default");
    let create = async |name: &str, controller: &str, component: Option<&str>| {
        let mut event = event_in("default", "seed-a");
        event.metadata.name = Some(name.to_owned());
        event.reporting_controller = Some(controller.to_owned());
        event.deprecated_source = component.map(|component| EventSource {
            component: Some(component.to_owned()),
            host: None,
        });
        own.create(&PostParams::default(), &event).await.map(drop)
    };
    let manager = "garden-controller-manager";
    let words = "the processes of a seed report as gardenlet or as provider-<name>";
    for controller in [manager, "kubectl", "my-gardenlet", "provider-Local"] {
        refused(create("foreign", controller, None).await, words);
    }
    allowed(create("of-provider", "provider-local", None).await);
    allowed(create("of-gardenlet", "gardenlet", None).await);
    // The API server takes no second name, and keeps the first name.
    assert!(create("second", "gardenlet", Some(manager)).await.is_err());
    for renamed in [
        json!({"reportingController": manager}),
        json!({"deprecatedSource": {"component": manager}}),
    ] {
        assert!(garden.patch(&own, "of-gardenlet", renamed).await.is_err());
    }
    a_seed_writes_a_single_line(&own).await;
}

/// `kubectl describe` prints a second line as a further Event. A thief of a certificate publishes raw texts.
async fn a_seed_writes_a_single_line(own: &Api<Event>) {
    let forged = "x\n  Warning  ForceRestoreRefused  2s  garden-controller-manager  seed-a still answers";
    let words = "with a control character in note, reason, action or type";
    for field in ["note", "reason", "action"] {
        for text in [forged, "x\u{1b}]0;y\u{7}", "x\u{202e}"] {
            let mut event = event_in("default", "seed-a");
            event.metadata.name = Some("forged".to_owned());
            let changed = match field {
                "note" => &mut event.note,
                "reason" => &mut event.reason,
                _ => &mut event.action,
            };
            *changed = Some(text.to_owned());
            refused(own.create(&PostParams::default(), &event).await.map(drop), words);
        }
    }
}

/// The runbook for a lost seed names objects of that seed, and a false Event would name others.
pub async fn a_seed_reports_about_its_own_bucket_and_extensions(garden: &Garden) {
    let core = "core.gardener.cloud/v1beta1";
    for seed in ["seed-a", "seed-b"] {
        let name = format!("reported-of-{seed}");
        let spec = json!({"seedRef": {"name": seed}, "registrationRef": {"name": "x"}});
        let metadata = json!({"name": name});
        let installation =
            json!({"apiVersion": core, "kind": "ControllerInstallation", "metadata": metadata, "spec": spec});
        garden.bring(&installation).await.unwrap();
    }
    let events: Api<Event> = Api::namespaced(garden.seed_a.clone(), "default");
    let about = |kind: &str, name: &str| {
        let mut event = event_in("default", "seed-a");
        event.metadata.name = Some(format!("{}.{name}", kind.to_lowercase()));
        let regarding = json!({"apiVersion": core, "kind": kind, "name": name});
        event.regarding = Some(serde_json::from_value(regarding).unwrap());
        event
    };
    let create = async |event: Event| events.create(&PostParams::default(), &event).await.map(drop);
    let kind = "ControllerInstallation";
    let words = "may not write an Event about ControllerInstallation reported-of-seed-b of seed \"seed-b\"";
    let foreign = || about(kind, "reported-of-seed-b");
    until_refused(words, || try_create(&events, foreign())).await;
    refused(create(foreign()).await, words);
    allowed(create(about(kind, "reported-of-seed-a")).await);

    // A BackupBucket has the uid of its Seed as the name. No BackupBucket of the last two names exists.
    let kind = "BackupBucket";
    let own = garden.bucket_of("seed-a").await;
    let words = format!("the bucket of its seed has the name {own}");
    let bucket_of_b = garden.bucket_of("seed-b").await;
    let without_backup = garden.bucket_of("seed-c").await;
    for name in [bucket_of_b.as_str(), without_backup.as_str(), "all-is-well"] {
        until_refused(&words, || try_create(&events, about(kind, name))).await;
        refused(create(about(kind, name)).await, &words);
    }
    allowed(create(about(kind, &own)).await);

    let mut of_two = about(kind, &own);
    of_two.metadata.name = Some("of-two-objects".to_owned());
    let related = json!({"apiVersion": core, "kind": kind, "name": bucket_of_b});
    of_two.related = Some(serde_json::from_value(related).unwrap());
    refused(create(of_two).await, "may not write an Event with field related");
    let added = json!({"related": {"apiVersion": core, "kind": kind, "name": bucket_of_b}});
    let present = format!("backupbucket.{own}");
    assert!(garden.patch(&events, &present, added).await.is_err());
}

/// The same Event, as garden-controller-manager reports it.
fn garden_event(mut event: Event) -> Event {
    event.reporting_controller = Some("garden-controller-manager".to_owned());
    event.reporting_instance = Some("garden-controller-manager".to_owned());
    event
}

/// Where an operator gives gardenlets a right in all namespaces.
async fn a_wide_right_to_events_meets_the_policy(garden: &Garden) {
    garden.grant_gardenlets("events.k8s.io", "events", "create").await;
    for namespace in ["garden", "kube-system", "gardener-system-seed-lease"] {
        let words = format!("may not write an Event in namespace {namespace}");
        let events: Api<Event> = Api::namespaced(garden.seed_a.clone(), namespace);
        until_refused(&words, || try_create(&events, event_in(namespace, "seed-a"))).await;
        let created = events
            .create(&PostParams::default(), &event_in(namespace, "seed-a"))
            .await;
        refused(created.map(drop), &words);
    }
}

/// A chunk has the size that a writer makes, and an attempt a bounded number of chunks.
pub fn chunks_above_the_bounds(honest: &Value) -> [Value; 3] {
    let mut large = honest.clone();
    large["metadata"]["name"] = json!("filled.state-1-1");
    large["data"]["chunk"] = json!("QUFB".repeat(262_145));
    let mut numbered = honest.clone();
    numbered["metadata"]["name"] = json!("filled.state-1-10000");
    // Six bytes in etcd for each sign.
    let mut unencoded = honest.clone();
    unencoded["metadata"]["name"] = json!("filled.state-1-1");
    unencoded["data"]["chunk"] = json!("<".repeat(1000));
    [large, numbered, unencoded]
}
