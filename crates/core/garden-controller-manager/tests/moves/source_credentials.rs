//! A takeover waits for the credentials of the bucket with the backups, before the hand-over.

use api::gardencore::{BackupBucket, Shoot};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;

use crate::{
    garden::{self, Garden, allowed},
    journey::{create_on, edit},
    renewal::until_event,
    servers,
    takeover::{ask, check_owners, taken_over, tells, unasked},
};

const NAME: &str = "keyless";
const SEED: &str = "seed-k";
/// Namespace of the garden with the credentials of the seed.
const HOME: &str = "seed-seed-k";

/// The seed has died, and its Seed names a Secret that does not exist. No seed could restore the shoot.
pub async fn a_bucket_without_its_secret_holds_a_takeover(garden: &Garden) {
    garden.bring(&garden::seed(SEED)).await.unwrap();
    garden.bring(&garden::seed_namespace(SEED)).await.unwrap();
    check_owners(garden, SEED, true).await;
    create_on(garden, NAME, SEED).await;
    let name = garden.bucket_of(SEED).await;
    let mut bucket = garden::bucket(&name, SEED);
    bucket["spec"]["credentialsRef"] = json!({"kind": "Secret", "namespace": HOME, "name": "none"});
    let buckets: Api<BackupBucket> = Api::all(garden.administrator());
    allowed(garden.apply(&buckets, &name, bucket).await);
    servers::all_processes_ask(garden, NAME, SEED).await;
    tells(garden, NAME, "constraints", "ShootStateUpToDate").await;
    allowed(edit(garden, NAME, json!({"seedName": "seed-b"})).await);

    ask(garden, NAME).await;
    let shoot = unasked(garden, NAME).await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    let words = format!("Secret {HOME}/none of BackupBucket {name} does not exist");
    until_event(garden, "ForceRestoreRefused", &words).await;
    let secrets: Api<Secret> = garden.admin(HOME);
    assert!(
        secrets.get_opt("none").await.unwrap().is_none(),
        "a dry run creates nothing"
    );

    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "none"}, "data": {"key": "eA=="}});
    allowed(garden.apply(&secrets, "none", secret).await);
    let shoot: Shoot = taken_over(garden, NAME, "seed-b").await;
    assert_eq!(shoot.status.unwrap().epoch(), 2);
}
