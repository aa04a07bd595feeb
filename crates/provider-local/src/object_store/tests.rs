#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use testkit::Moto;

use super::*;

/// A bucket with versions, which may hold locks, in moto.
async fn bucket() -> (Moto, Store) {
    let moto = Moto::start().await.unwrap();
    moto.create_bucket_with_locks("bucket").await.unwrap();
    let store = store(&moto.endpoint);
    (moto, store)
}

fn store(endpoint: &str) -> Store {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = [
        ("accessKeyID", "writer"),
        ("secretAccessKey", "open-sesame"),
        ("region", "us-east-1"),
        ("endpoint", endpoint),
    ];
    let data: BTreeMap<_, _> = data.map(|(key, value)| (key.to_owned(), value.into())).into();
    let credentials = Credentials::new("garden/backup", data);
    Store::open(&credentials, "bucket", "", &Permit::sole("a test")).unwrap()
}

async fn versions(store: &Store, prefix: &str) -> Vec<String> {
    let (found, _) = store.bucket.page(Listed::Versions, prefix, None).await.unwrap();
    found.into_iter().map(|object| object.key).collect()
}

#[tokio::test]
async fn a_removal_takes_every_key_with_all_versions() {
    let (moto, store) = bucket().await;
    for key in [
        "p/a",
        "p/a",
        "p/b",
        "p//x",
        "p/./y",
        "p/../z",
        "p/c\u{1}d",
        "p/",
        "p/ +%2F&<",
        "p/kept.final",
        "p2/other",
    ] {
        moto.put_object("bucket", key, "x").await.unwrap();
    }
    store.s3.delete(&Path::from("p/b")).await.unwrap();
    let is_final = |key: &str| key.contains(".final");
    store.delete_below_but("p/", is_final).await.unwrap();
    assert_eq!(versions(&store, "").await, ["p/kept.final", "p2/other"]);
    store.delete_bucket().await.unwrap();
    // A bucket that is gone holds nothing to remove.
    store.delete_below("p/").await.unwrap();
}

#[tokio::test]
async fn a_locked_object_does_not_keep_the_others_from_removal() {
    let (moto, store) = bucket().await;
    moto.put_locked_object("bucket", "p/a", "x").await.unwrap();
    for key in ["p/b", "p//c"] {
        moto.put_object("bucket", key, "x").await.unwrap();
    }
    let error = store.delete_below("p/").await.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthorized], "{error}");
    assert!(
        error
            .to_string()
            .contains("refused to remove 1 objects of bucket bucket, such as \"p/a\" (AccessDenied)"),
        "{error}"
    );
    assert_eq!(versions(&store, "").await, ["p/a"]);
}
