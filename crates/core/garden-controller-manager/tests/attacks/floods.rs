//! Objects of a seed that would fill the memory of processes that serve all seeds, or the garden's etcd
//! (threats.md 18).

use api::gardencore::{BackupEntry, Seed, Shoot};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, event_in, refused};

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
    let annotated = |length: usize| json!({"metadata": {"annotations": {"x": "y".repeat(length)}}});
    refused(
        garden.patch(&seeds, "seed-a", annotated(70_000)).await,
        "may not write spec and metadata of",
    );
    allowed(garden.patch(&seeds, "seed-a", annotated(10)).await);
}

/// A seed reports about shoots and about itself, not in namespaces of the garden's own processes.
pub async fn a_seed_reports_in_no_foreign_namespace(garden: &Garden) {
    let create = async |namespace: &str, event: Event| {
        let events: Api<Event> = Api::namespaced(garden.seed_a.clone(), namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    };
    for namespace in ["garden", "kube-system", "gardener-system-seed-lease"] {
        refused(
            create(namespace, event_in(namespace)).await,
            &format!("may not write an Event in namespace {namespace}"),
        );
    }
    for namespace in ["default", NAMESPACE] {
        allowed(create(namespace, event_in(namespace)).await);
    }
    let mut large = event_in(NAMESPACE);
    large.metadata.name = Some("large".to_owned());
    large.metadata.annotations = Some([("x".to_owned(), "y".repeat(20_000))].into());
    refused(
        create(NAMESPACE, large).await,
        "an Event of a seed may have 16384",
    );
}

/// A chunk has the size that a writer makes, and an attempt a bounded number of chunks.
pub fn chunks_above_the_bounds(honest: &Value) -> [Value; 2] {
    let mut large = honest.clone();
    large["metadata"]["name"] = json!("filled.state-1-1");
    large["data"]["chunk"] = json!("QUFB".repeat(262_145));
    let mut numbered = honest.clone();
    numbered["metadata"]["name"] = json!("filled.state-1-10000");
    [large, numbered]
}
