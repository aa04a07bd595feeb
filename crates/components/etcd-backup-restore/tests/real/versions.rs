//! Buckets with versions, and with locks that refuse their deletion.

use crate::lab::{KeyBucket, Lab, RefusingS3};
use axum::http::{Method, StatusCode};
use etcd_backup_restore::snapshot_name::Snapshot;
use etcd_backup_restore::store::Deletion;

const NAME: &str = "Full-00000000-00000007-1700000000";

#[tokio::test(flavor = "multi_thread")]
async fn garbage_goes_with_its_versions_and_a_locked_version_stays_visible() {
    let lab = Lab::new();
    let bucket = KeyBucket::with_locks(&lab).await;
    let store = lab.store("p");
    let snapshot = Snapshot::parse(NAME).unwrap();
    let key = format!("p/v2/{NAME}");
    for key in [&key, &key, &format!("{key}.final")] {
        bucket.put_key(key, "x").await;
    }
    assert_eq!(store.delete(&snapshot).await.unwrap(), Deletion::Deleted);
    assert_eq!(bucket.versions().await, [format!("{key}.final")]);

    bucket.put_locked(&key, "x").await;
    let refused = Deletion::Refused("AccessDenied".to_owned());
    assert_eq!(store.delete(&snapshot).await.unwrap(), refused);
    let listed = store.everything().await.unwrap();
    assert!(listed.iter().any(|found| found.to_string() == NAME), "{listed:?}");
    // A final snapshot that was not proved must not be taken for the end, also where its version stays.
    store.hide(&snapshot).await.unwrap();
    let listed = store.everything().await.unwrap();
    assert!(
        !listed.iter().any(|found| found.to_string() == NAME),
        "{listed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_leaves_the_listing_although_the_account_may_not_delete_versions() {
    let snapshot = Snapshot::parse(NAME).unwrap();
    let key = format!("p/v2/{NAME}");
    // The right to list versions without the right to delete versions, and neither right.
    for (method, query) in [(Method::DELETE, "?versionId="), (Method::GET, "?versions")] {
        let lab = Lab::new();
        let bucket = KeyBucket::with_locks(&lab).await;
        let s3 = RefusingS3::start_before(&lab, bucket.endpoint()).await;
        s3.refuse(method, query, (StatusCode::FORBIDDEN, "AccessDenied"), usize::MAX);
        let store = lab.store("p");
        bucket.put_key(&key, "x").await;
        bucket.put_key(&key, "x").await;
        assert_eq!(store.everything().await.unwrap().len(), 1);
        assert_eq!(
            store.delete(&snapshot).await.unwrap(),
            Deletion::Deleted,
            "{query}"
        );
        assert_eq!(store.everything().await.unwrap(), [], "{query}");
        // Two versions and the delete marker.
        assert_eq!(bucket.versions().await, [&*key; 3], "{query}");
        assert!(s3.refused() > 0, "{query}");
    }
}
