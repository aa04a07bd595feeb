#![allow(clippy::unwrap_used)]

use super::*;
use object_store::path::Path;

const ARN: &str = "arn:aws:iam::123456789012:role/backups";
const TOKEN: &str = "aGVhZA.Ym9keQ.c2ln";
const RENEWED: &str = "aGVhZA.bmV3.c2ln";
const NOT_FOUND: &str = "404 Not Found";

fn check_error(change: impl FnOnce(&mut Credentials)) -> Option<String> {
    let mut credentials = Credentials {
        region: "us-east-1".into(),
        endpoint: Some("https://store.example.com:9000".into()),
        bucket: "backups".into(),
        ..Credentials::default()
    };
    change(&mut credentials);
    credentials.check().err().map(|e| e.to_string())
}

/// Answers a single request, and returns the request. The head is in lower case.
async fn answer_one(listener: &tokio::net::TcpListener, status: &str, answer: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::<u8>::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn mounted(files: &[(&str, &str)]) -> (tempfile::TempDir, StoreConfig) {
    let account = [("accessKeyID", "AKIA"), ("secretAccessKey", "s3cret")];
    mounted_alone(&[&account[..], files].concat())
}

fn mounted_alone(files: &[(&str, &str)]) -> (tempfile::TempDir, StoreConfig) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let config = StoreConfig {
        provider: Provider::S3,
        container: "backups".into(),
        prefix: String::new(),
        credentials_dir: Some(folder.path().to_owned()),
        endpoint: None,
        permit: Permit::sole("a test"),
    };
    (folder, config)
}

#[tokio::test]
async fn temporary_keys_are_sent_with_their_session_token() {
    // Like the process at its start.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (_folder, config) = mounted(&[("sessionToken", "t0ken\n"), ("endpoint", endpoint.as_str())]);
    let client = config.connect(&config.credentials().unwrap()).unwrap();
    let path = Path::from("a");
    let (head, _) = tokio::join!(
        answer_one(&listener, NOT_FOUND, ""),
        client
            .objects
            .get_opts(&path, object_store::GetOptions::default())
    );
    assert!(head.contains("x-amz-security-token: t0ken"), "{head}");
    let (head, _) = tokio::join!(answer_one(&listener, NOT_FOUND, ""), client.names.below(&path));
    assert!(head.contains("x-amz-security-token: t0ken"), "{head}");
}

fn refusal(config: &StoreConfig) -> String {
    let refused = config.credentials().err();
    refused.map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_backup_secret_with_further_credentials_is_refused() {
    for key in ["roleARN", "token", "webIdentityTokenFile", "credential_process"] {
        let (_folder, config) = mounted(&[(key, "x")]);
        let refused = refusal(&config);
        assert!(
            refused.starts_with(&format!("Configuration: the backup Secret has the key {key}"))
                && refused.contains("remove the "),
            "{refused}"
        );
    }
    let (_folder, config) = mounted_alone(&[("roleARN", ARN)]);
    assert!(refusal(&config).contains("add token"), "{}", refusal(&config));
}

#[test]
fn a_renewed_token_keeps_the_client_and_a_new_role_does_not() {
    let (folder, config) = mounted_alone(&[("roleARN", ARN), ("token", TOKEN)]);
    let before = config.credentials().unwrap();
    std::fs::write(folder.path().join("token"), RENEWED).unwrap();
    assert!(config.credentials().unwrap() == before);
    std::fs::write(folder.path().join("roleARN"), format!("{ARN}2")).unwrap();
    assert!(config.credentials().unwrap() != before);
}

#[tokio::test]
async fn a_role_signs_all_requests_and_a_renewed_token_counts_at_once() {
    // Like the process at its start.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (folder, config) = mounted_alone(&[
        ("roleARN", ARN),
        ("token", TOKEN),
        ("endpoint", &endpoint),
        ("stsEndpoint", &endpoint),
    ]);
    let client = config.connect(&config.credentials().unwrap()).unwrap();
    let path = Path::from("a");
    let expired = "<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error></ErrorResponse>";
    let (asked, listed) = tokio::join!(
        answer_one(&listener, "400 Bad Request", expired),
        client.names.below(&path)
    );
    assert!(asked.contains(&format!("WebIdentityToken={TOKEN}")), "{asked}");
    let error = listed.unwrap_err();
    assert_eq!(error.class, Class::Credentials, "{error}");
    let text = format!("{error} {error:?}");
    assert!(
        text.contains(ARN) && text.contains("the token has expired") && !text.contains(TOKEN),
        "{text}"
    );

    std::fs::write(folder.path().join("token"), RENEWED).unwrap();
    let issued = "<R><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId>\
         <SecretAccessKey>s</SecretAccessKey><SessionToken>t0ken</SessionToken><Expiration>2026-11-27T11:00:00Z</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></R>";
    let answers = async {
        let asked = answer_one(&listener, "200 OK", issued).await;
        (asked, answer_one(&listener, NOT_FOUND, "").await)
    };
    let ((asked, listing), _) = tokio::join!(answers, client.names.below(&path));
    assert!(asked.contains(&format!("WebIdentityToken={RENEWED}")), "{asked}");
    let options = object_store::GetOptions::default();
    let (read, _) = tokio::join!(
        answer_one(&listener, NOT_FOUND, ""),
        client.objects.get_opts(&path, options)
    );
    for head in [listing, read] {
        assert!(head.contains("x-amz-security-token: t0ken"), "{head}");
    }
}

#[test]
fn a_bucket_is_in_the_domain_of_its_partition() {
    for (region, url) in [
        ("eu-west-1", "https://s3.eu-west-1.amazonaws.com/backups"),
        ("cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn/backups"),
    ] {
        let (_folder, config) = mounted(&[("region", region)]);
        assert_eq!(config.credentials().unwrap().url(), url);
    }
}

/// Invalid values in a Secret must not end the process that takes the backups.
#[test]
fn what_is_no_place_is_told_instead_of_a_panic_in_the_library() {
    assert_eq!(check_error(|_| {}), None);
    assert_eq!(check_error(|c| c.endpoint = None), None);
    for endpoint in ["store", "store:9000", "ftp://store", "http://", "http://a b"] {
        let told = check_error(|c| c.endpoint = Some(endpoint.into())).unwrap_or_default();
        assert!(told.contains("endpoint is no URL"), "{endpoint}: {told}");
    }
    for name in ["", "..", "a/b", "a b", "a?b"] {
        let bucket = check_error(|c| c.bucket = name.into()).unwrap_or_default();
        assert!(bucket.contains("bucketName is no name"), "{name}: {bucket}");
        let region = check_error(|c| c.region = name.into()).unwrap_or_default();
        assert!(region.contains("region is no name"), "{name}: {region}");
    }
}
