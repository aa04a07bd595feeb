#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use async_trait::async_trait;
use object_store::client::{HttpResponse, HttpService};
use testkit::Moto;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

const ROLE_ARN: &str = "arn:aws:iam::123456789012:role/backups";
const TOKEN: &str = "aGVhZA.Ym9keQ.c2ln";

/// A bucket with versions and object locks, in moto.
async fn bucket() -> (Moto, Store) {
    let moto = Moto::start().await.unwrap();
    moto.create_bucket_with_locks("bucket").await.unwrap();
    let store = store(&moto.endpoint);
    (moto, store)
}

fn store(endpoint: &str) -> Store {
    open(&[
        ("accessKeyID", "writer"),
        ("secretAccessKey", "open-sesame"),
        ("region", "us-east-1"),
        ("endpoint", endpoint),
    ])
}

fn store_of_role(endpoint: &str, sts: &str) -> Store {
    open(&[
        ("roleARN", ROLE_ARN),
        ("token", TOKEN),
        ("region", "us-east-1"),
        ("endpoint", endpoint),
        ("stsEndpoint", sts),
    ])
}

fn open(data: &[(&str, &str)]) -> Store {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let entries = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
    let data: BTreeMap<_, _> = entries.collect();
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
    // A bucket that is gone has no object to remove.
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

/// A store that limits an account.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Rights to list and delete objects, without those for versions.
    NoVersions,
    /// The right to list versions, without the right to delete versions.
    NoDeletionOfVersions,
    /// Each page of a listing has the same continuation token.
    SamePage,
}

#[derive(Debug)]
struct Limited(Limit, HttpClient);

#[async_trait]
impl HttpService for Limited {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body = request.body().as_bytes();
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        let refusal = "<Error><Code>AccessDenied</Code></Error>".to_owned();
        let (status, text): (u16, _) = match self.0 {
            Limit::NoVersions if query.starts_with("versions") => (403, refusal),
            Limit::SamePage if query.starts_with("versions") => (501, refusal),
            Limit::SamePage => {
                let page =
                    "<Contents><Key>p/kept</Key></Contents><NextContinuationToken>t</NextContinuationToken>";
                (200, format!("<ListBucketResult>{page}</ListBucketResult>"))
            }
            _ if body.contains("<VersionId>") => {
                let keys = body
                    .split("<Key>")
                    .skip(1)
                    .filter_map(|key| key.split_once("</Key>"));
                let errors =
                    keys.map(|(key, _)| format!("<Error><Key>{key}</Key><Code>AccessDenied</Code></Error>"));
                (
                    200,
                    format!("<DeleteResult>{}</DeleteResult>", errors.collect::<String>()),
                )
            }
            _ => return self.1.execute(request).await,
        };
        let mut answer = HttpResponse::new(text.into());
        *answer.status_mut() = status.try_into().unwrap();
        Ok(answer)
    }
}

fn limit(store: &mut Store, limit: Limit) {
    let limited = Limited(limit, store.client.clone());
    store.bucket.client = HttpClient::new(Telling(HttpClient::new(limited)));
}

#[tokio::test]
async fn an_account_without_rights_to_versions_removes_objects() {
    let moto = Moto::start().await.unwrap();
    for rights in [Limit::NoVersions, Limit::NoDeletionOfVersions] {
        let mut store = store(&moto.endpoint);
        moto.put_object("bucket", "", "").await.unwrap();
        for key in ["p/a", "p/b", "p2/other"] {
            moto.put_object("bucket", key, "x").await.unwrap();
        }
        limit(&mut store, rights);
        store.delete_below("p/").await.unwrap();
        limit(&mut store, Limit::NoVersions);
        let (left, _) = store.bucket.page(Listed::Objects, "", None).await.unwrap();
        let left: Vec<_> = left.into_iter().map(|object| object.key).collect();
        assert_eq!(left, ["p2/other"], "{rights:?}");
        store.delete_bucket().await.unwrap();
    }
}

#[tokio::test]
async fn a_version_that_the_account_may_not_delete_is_reported() {
    let (moto, mut store) = bucket().await;
    moto.put_object("bucket", "p/a", "x").await.unwrap();
    limit(&mut store, Limit::NoDeletionOfVersions);
    let error = store.delete_below("p/").await.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthorized], "{error}");
    // No delete marker was added.
    assert_eq!(versions(&store, "").await, ["p/a"]);
    // Without the right to list versions the object leaves the listing, and the bucket reports the version.
    limit(&mut store, Limit::NoVersions);
    store.delete_below("p/").await.unwrap();
    let error = store.delete_bucket().await.unwrap_err();
    assert!(error.to_string().contains("grant the account"), "{error}");
}

#[tokio::test]
async fn a_listing_that_repeats_its_continuation_token_ends() {
    let mut store = store("http://127.0.0.1:1");
    limit(&mut store, Limit::SamePage);
    let removal = store.delete_below_but("p/", |_| true);
    let ended = tokio::time::timeout(Duration::from_secs(15), removal).await;
    let error = ended.expect("the listing ends").unwrap_err();
    assert!(error.to_string().contains("continuation token"), "{error}");
}

/// moto issues the keys of the role, too.
#[tokio::test]
async fn a_role_empties_and_removes_a_bucket() {
    let (moto, _) = bucket().await;
    let store = store_of_role(&moto.endpoint, &moto.endpoint);
    for key in ["p/a", "p//b", "q/c"] {
        moto.put_object("bucket", key, "x").await.unwrap();
    }
    store.delete_below("p/").await.unwrap();
    assert_eq!(versions(&store, "").await, ["q/c"]);
    store.delete_bucket().await.unwrap();
}

/// Answers a single request for keys.
async fn refuse_role(listener: &TcpListener, code: &str) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut asked, mut buffer) = (Vec::new(), [0; 4096]);
    while !asked.ends_with(TOKEN.as_bytes()) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ends without the token");
        asked.extend_from_slice(&buffer[..read]);
    }
    let body = format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>");
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_refused_role_is_reported_with_role_secret_and_remedy() {
    for (code, expected, remedy) in [
        (
            "ExpiredTokenException",
            ErrorCode::ErrInfraUnauthenticated,
            "renew the key token",
        ),
        ("AccessDenied", ErrorCode::ErrInfraUnauthorized, "trust policy"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sts = format!("http://{}", listener.local_addr().unwrap());
        let store = store_of_role("http://127.0.0.1:1", &sts);
        let (removed, ()) = tokio::join!(store.delete_below("p/"), refuse_role(&listener, code));
        let error = removed.unwrap_err();
        assert_eq!(error.codes(), [expected], "{error}");
        let text = error.to_string();
        for part in [ROLE_ARN, "the Secret garden/backup", remedy] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(TOKEN), "{text}");
    }
}
