//! Buckets with versions, and with locks that refuse their deletion.

use crate::lab::{KeyBucket, Lab};
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
        bucket.put(key, "x").await;
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
