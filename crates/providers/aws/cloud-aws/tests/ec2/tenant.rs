//! A tenant of the seed writes the Secret of a Shoot. No setting of the Secret reaches the rights of the
//! seed.

use std::{
    collections::BTreeMap,
    env,
    process::Stdio,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result, ensure};
use aws_fixture::region::{credentials, refused};
use cloud_aws::{Call, Ec2Access};
use permit::Permit;
use runtime::client::Credentials;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
};

/// Address of the fake EC2, for the process below.
const EC2: &str = "REPOT_TEST_EC2";
const EMPTY: &str = "<DescribeVpcsResponse><vpcSet/></DescribeVpcsResponse>";

/// A server that keeps the heads of all requests, and answers each request with an empty list.
struct Recorder {
    endpoint: String,
    heads: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

impl Recorder {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let heads = Arc::new(Mutex::new(Vec::new()));
        let mut server = JoinSet::new();
        let kept = Arc::clone(&heads);
        server.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let head = read_request(&mut stream).await;
                kept.lock().unwrap().push(head);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{EMPTY}",
                    EMPTY.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Ok(Self {
            endpoint,
            heads,
            _server: server,
        })
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Reads a request, and returns the head in small letters. An unread body would break the connection.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ");
            let length = length.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return head.to_owned();
            }
        }
        match stream.read_buf(&mut read).await {
            Ok(count) if count > 0 => {}
            _ => return text,
        }
    }
}

/// The environment has the variables that AWS's own libraries read. Plain requests to foreign hosts, such as
/// to the metadata service at 169.254.169.254, would pass the proxy, which records such requests.
#[tokio::test]
async fn a_secret_of_a_shoot_never_uses_the_rights_of_the_seed() -> Result<()> {
    let (ec2, metadata) = (Recorder::start().await?, Recorder::start().await?);
    // Any file that exists.
    let token = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut process = Command::new(env::current_exe()?);
    process
        .args(["--ignored", "--exact", "tenant::uses_the_secret_alone"])
        .env(EC2, &ec2.endpoint)
        .env("AWS_ACCESS_KEY_ID", "AKIASEED")
        .env("AWS_SECRET_ACCESS_KEY", "of the seed")
        .env("AWS_SESSION_TOKEN", "of-the-seed")
        .env("AWS_PROFILE", "seed")
        .env("AWS_ROLE_ARN", "arn:aws:iam::1:role/seed")
        .env("AWS_WEB_IDENTITY_TOKEN_FILE", token)
        .env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token)
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null());
    for name in [
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_STS",
        "AWS_METADATA_ENDPOINT",
        "HTTP_PROXY",
        "http_proxy",
    ] {
        process.env(name, &metadata.endpoint);
    }
    let ended = process.output().await?;
    let output = String::from_utf8_lossy(&ended.stdout).into_owned();
    ensure!(
        ended.status.success() && output.contains("1 passed"),
        "{output}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    ensure!(metadata.heads().is_empty(), "{:?}", metadata.heads());
    let heads = ec2.heads();
    ensure!(
        heads.len() == 1 && heads[0].contains("credential=akiatest/") && !heads[0].contains("security-token"),
        "{heads:?}"
    );
    Ok(())
}

/// Runs in a separate process, with the environment of a seed.
#[tokio::test]
#[ignore = "needs the environment that the test above gives"]
async fn uses_the_secret_alone() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let access = Ec2Access::new(Some(env::var(EC2).context("no address of EC2")?));
    let permit = Permit::sole("a test");
    let keys = credentials().data().clone();
    let open = |data| access.open(&Credentials::new("garden/aws", data), "eu-west-1", &permit);
    refused(open(keys.clone())?.tell(&Call::new("DescribeVpcs")).await)?;

    ensure!(open(BTreeMap::new()).is_err(), "an empty Secret has rights");
    for key in [
        "roleARN",
        "role_arn",
        "token",
        "webIdentityTokenFile",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "credential_process",
        "credentialsFile",
        "profile",
        "config",
        "endpoint",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ] {
        for data in [keys.clone(), BTreeMap::new()] {
            let mut data = data;
            data.insert(key.to_owned(), b"x".to_vec());
            let error = open(data).err().with_context(|| format!("{key} is accepted"))?;
            let said = error.to_string();
            ensure!(
                said.contains("garden/aws")
                    && said.contains(&format!("{key:?}"))
                    && said.contains("remove the key"),
                "{said}"
            );
        }
    }
    Ok(())
}
