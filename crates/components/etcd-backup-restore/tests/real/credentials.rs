//! A bucket that refuses: an error class that callers can distinguish, and no restart needed once the Secret
//! is right.

use crate::lab::{EtcdServer, Lab, Server, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_told_apart_and_read_again() {
    let lab = Lab::new();
    let secret = lab.credentials().join("secretAccessKey");
    std::fs::write(&secret, "wrong").unwrap();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::spawn(&lab, "p", &etcd.endpoint, &[]).await;
    let (status, json) = eventually("a refusal", async || {
        let answer = server.get("/snapshot/full?final=true").await;
        (answer.0 != 503).then_some(answer)
    })
    .await;
    assert_eq!((status, &json["code"]), (502, &"credentials".into()), "{json}");
    assert!(!json.to_string().contains("wrong"), "no secret in errors: {json}");
    let refused = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
    assert!(
        !refused.success && refused.errors.contains("StoreCredentials: "),
        "{}",
        refused.errors
    );
    let refused = lab.copy("p", "q", &[]).await;
    assert!(
        !refused.success && refused.errors.contains("StoreCredentials: "),
        "{}",
        refused.errors
    );

    std::fs::write(&secret, "open-sesame").unwrap();
    let name = server.snapshot("/snapshot/full?final=true").await;
    assert!(lab.objects("p").contains(&name));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket_or_key_is_named() {
    let lab = Lab::new();
    let more = ["--store-container=nowhere"];
    let refused = lab.copy("p", "q", &["--source-store-container=nowhere"]).await;
    assert!(!refused.success, "{refused:?}");
    let refused = lab.initialize("p", &lab.path("volume/new.etcd"), &more).await;
    assert!(!refused.success, "{refused:?}");
    std::fs::remove_file(lab.credentials().join("accessKeyID")).unwrap();
    let refused = lab.copy("p", "q", &[]).await;
    assert!(
        refused.errors.contains("must have the key accessKeyID"),
        "{}",
        refused.errors
    );
}
