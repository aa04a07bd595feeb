//! Objects for backups that a seed plants for shoots and Seeds elsewhere (threats.md 13).

use api::{
    constants::OWNERSHIP_EPOCH,
    gardencore::{BackupBucket, BackupEntry, Seed, Shoot},
};
use kube::{Api, ResourceExt, api::PostParams};
use serde_json::json;

use crate::garden::{self, Garden, NAMESPACE, allowed, refused, try_create};

fn entry(name: &str, seed: &str) -> BackupEntry {
    let mut entry = garden::entry(name, seed, "bucket-of-planted");
    // A takeover prefers the source BackupEntry of a late epoch.
    entry["metadata"]["annotations"] = json!({(OWNERSHIP_EPOCH): "999"});
    serde_json::from_value(entry).unwrap()
}

/// A later takeover would restore the planted data and report success, or the shoot would never get backups.
pub async fn a_seed_plants_no_entry_for_a_shoot_elsewhere(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.shoot("planted", "seed-a", None, ("", "")).await;
    let uid = shoots.get("planted").await.unwrap().uid().unwrap();
    let id = format!("shoot--dev--planted--{uid}");
    let source = format!("source-{id}");
    let params = PostParams::default();
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let nowhere = "Shoot planted is on no seed yet";
    garden::until_refused_with(nowhere, || try_create(&b, entry(&id, "seed-b"))).await;
    for (entries, seed) in [(&a, "seed-a"), (&b, "seed-b")] {
        for name in [&id, &source] {
            let planted = entries.create(&params, &entry(name, seed)).await;
            refused(planted.map(drop), nowhere);
        }
    }
    let status = json!({"seedName": "seed-a", "technicalID": "shoot--dev--planted", "uid": uid});
    garden.status(&shoots, "planted", status).await;
    let elsewhere = "Shoot planted is on seed \"seed-a\"";
    garden::until_refused_with(elsewhere, || try_create(&b, entry(&id, "seed-b"))).await;
    for name in [&id, &source] {
        let planted = b.create(&params, &entry(name, "seed-b")).await;
        refused(planted.map(drop), elsewhere);
    }
    garden::until_allowed(|| try_create(&a, entry(&id, "seed-a"))).await;
    allowed(a.create(&params, &entry(&id, "seed-a")).await.map(drop));
    // In the first epoch there is no source. After the hand-over, the former seed plants no source either.
    let planted = a.create(&params, &entry(&source, "seed-a")).await;
    refused(planted.map(drop), "Shoot planted was never handed over");
    let handed = json!({"seedName": "seed-b", "ownership": {"epoch": 2}});
    garden.status(&shoots, "planted", handed).await;
    let handed_over = "Shoot planted is on seed \"seed-b\"";
    garden::until_refused_with(handed_over, || try_create(&a, entry(&source, "seed-a"))).await;
    let planted = a.create(&params, &entry(&source, "seed-a")).await;
    refused(planted.map(drop), handed_over);
}

/// Under the uid of a different Seed, a BackupBucket would get the backups of that seed, or block the name.
pub async fn a_seed_makes_its_own_bucket_alone(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let own = seeds.get("seed-a").await.unwrap().uid().unwrap();
    let foreign = seeds.get("seed-b").await.unwrap().uid().unwrap();
    let buckets: Api<BackupBucket> = Api::all(garden.seed_a.clone());
    for name in [foreign.as_str(), "any"] {
        refused(
            garden.apply(&buckets, name, garden::bucket(name, "seed-a")).await,
            "the name of a BackupBucket is the uid of its own Seed",
        );
    }
    allowed(garden.apply(&buckets, &own, garden::bucket(&own, "seed-a")).await);
}
