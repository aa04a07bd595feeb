//! Location and credentials of a store: flags, and the files of a mounted Secret.

use super::listing::{Client, Names};
use crate::error::{Class, Error, Result};
use object_store::{
    RetryConfig,
    aws::{AmazonS3Builder, AwsCredential},
    local::LocalFileSystem,
    signer::Url,
};
use permit::{Bucket, Permit, StoreConnector, aws_domain, external_credentials};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a request to the store, a part of 5 MiB included. The timeout must be longer than such a part
/// takes on a slow link.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of a connection attempt to the store.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which a failing request is retried. The time must be shorter than the time after which the callers
/// of a final snapshot give up.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Kind of object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// Any store with the S3 protocol.
    #[default]
    #[value(name = "S3", alias = "aws", alias = "local-s3")]
    S3,
    /// A folder; the container is its path.
    #[value(name = "Local")]
    Local,
}

/// Location of a store, from flags, and the permit for requests.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Protocol.
    pub provider: Provider,
    /// Bucket, or folder for `Local`; from the Secret (`bucketName`) where empty.
    pub container: String,
    /// Prefix of the objects inside the bucket, without the `v2` of the layout.
    pub prefix: String,
    /// Mounted Secret.
    pub credentials_dir: Option<PathBuf>,
    /// Overrides the Secret's `endpoint`.
    pub endpoint: Option<String>,
    /// Each request needs this permit at the moment in which the request leaves.
    pub permit: Permit,
}

/// Content of the mounted Secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    /// The token of temporary keys.
    session_token: Option<String>,
    region: String,
    endpoint: Option<String>,
    bucket: String,
    ca: Option<String>,
}

impl Credentials {
    fn is_plain(&self) -> bool {
        let endpoint = self.endpoint.as_ref();
        endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
    }

    fn endpoint(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!("https://s3.{}.{}", self.region, aws_domain(&self.region)),
        }
    }

    /// The URL of the bucket, as the library builds the URL.
    fn url(&self) -> String {
        format!("{}/{}", self.endpoint().trim_end_matches('/'), self.bucket)
    }

    /// The library builds a URL from these values and panics on an invalid URL.
    fn check(&self) -> Result<()> {
        let wrong = |what: String| {
            Err(Error::new(
                Class::Configuration,
                format!("the object store's {what}; correct it in the backup Secret, or the flag"),
            ))
        };
        let is_plain = |text: &str| {
            !text.is_empty()
                && !text.starts_with('.')
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        for (name, text) in [("bucketName", &self.bucket), ("region", &self.region)] {
            if !is_plain(text) {
                return wrong(format!("{name} is no name ({text:?})"));
            }
        }
        let Some(endpoint) = &self.endpoint else {
            return Ok(());
        };
        match Url::parse(endpoint) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
            Ok(_) => wrong("endpoint is no URL of a server (http or https)".to_owned()),
            Err(e) => wrong(format!("endpoint is no URL ({e})")),
        }
    }
}

impl StoreConfig {
    fn file(&self, name: &str) -> Result<Option<String>> {
        let Some(dir) = &self.credentials_dir else {
            return Ok(None);
        };
        let path = dir.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::new(
                Class::Configuration,
                format!("cannot read {}: {e}", path.display()),
            )),
        }
    }

    /// A role or a token file in the Secret would be ignored, while the operator believes that the keys are
    /// not used.
    fn refuse_external_credentials(&self) -> Result<()> {
        let names = self.credentials_dir.iter().flat_map(std::fs::read_dir).flatten();
        let names = names.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let names: Vec<_> = names.collect();
        match external_credentials(names.iter().map(String::as_str)) {
            None => Ok(()),
            Some(key) => Err(Error::new(
                Class::Configuration,
                format!(
                    "the backup Secret has the key {key}: roles and web identity are not supported for backups; remove the key, and \
                     use accessKeyID, secretAccessKey and, for temporary keys, sessionToken"
                ),
            )),
        }
    }

    /// Reads the mounted Secret.
    pub(super) fn credentials(&self) -> Result<Credentials> {
        let bucket = if self.container.is_empty() {
            self.file("bucketName")?
        } else {
            Some(self.container.clone())
        };
        let Some(bucket) = bucket else {
            return Err(Error::new(
                Class::Configuration,
                "no bucket is named; set --store-container",
            ));
        };
        if self.provider == Provider::Local {
            return Ok(Credentials {
                bucket,
                ..Credentials::default()
            });
        }
        self.refuse_external_credentials()?;
        let required = |name: &str, found: Option<String>| {
            found.ok_or_else(|| {
                let dir = self.credentials_dir.as_ref().map_or("<--store-credentials-dir>".into(), |d| d.to_string_lossy());
                Error::new(
                    Class::Credentials,
                    format!("the object store's {name} is missing; the backup Secret mounted at {dir} must have the key {name}"),
                )
            })
        };
        let credentials = Credentials {
            access_key_id: required("accessKeyID", self.file("accessKeyID")?)?,
            secret_access_key: required("secretAccessKey", self.file("secretAccessKey")?)?,
            session_token: self.file("sessionToken")?,
            region: self.file("region")?.unwrap_or_else(|| "us-east-1".to_owned()),
            endpoint: match &self.endpoint {
                Some(endpoint) => Some(endpoint.clone()),
                None => self.file("endpoint")?,
            },
            bucket,
            ca: self.file("ca.crt")?,
        };
        credentials.check()?;
        Ok(credentials)
    }

    /// The image has no certificates of its own. So the store's certificate is checked against the built-in
    /// authorities, or only against the Secret's `ca.crt`.
    fn connector(&self, credentials: &Credentials) -> Result<StoreConnector> {
        let connector = StoreConnector::new(&self.permit, CONNECT_TIMEOUT, REQUEST_TIMEOUT);
        match &credentials.ca {
            Some(ca) => Ok(connector.trusting(authorities(ca)?)),
            None => Ok(connector),
        }
    }

    /// Builds a client. No request is sent yet.
    pub(super) fn connect(&self, credentials: &Credentials) -> Result<Client> {
        if self.provider == Provider::Local {
            let folder = PathBuf::from(&credentials.bucket);
            std::fs::create_dir_all(&folder).map_err(|e| {
                Error::new(
                    Class::Store,
                    format!("cannot create the store's folder {}: {e}", folder.display()),
                )
            })?;
            let local = LocalFileSystem::new_with_prefix(&folder)
                .map_err(|e| Error::store("opening the folder", &e))?;
            return Ok(Client {
                objects: Arc::new(local),
                names: Names::Folder(folder),
            });
        }
        let connector = self.connector(credentials)?;
        let retry = RetryConfig {
            max_retries: 5,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        let bucket = Bucket {
            client: connector.client(),
            url: credentials.url(),
            region: credentials.region.clone(),
            credential: AwsCredential {
                key_id: credentials.access_key_id.clone(),
                secret_key: credentials.secret_access_key.clone(),
                token: credentials.session_token.clone(),
            },
            retry: retry.clone(),
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&credentials.bucket)
            .with_region(&credentials.region)
            // The library knows only a single domain of AWS.
            .with_endpoint(credentials.endpoint())
            .with_access_key_id(&credentials.access_key_id)
            .with_secret_access_key(&credentials.secret_access_key)
            .with_allow_http(credentials.is_plain())
            .with_http_connector(connector)
            .with_retry(retry);
        if let Some(token) = &credentials.session_token {
            builder = builder.with_token(token);
        }
        let client = builder.build().map_err(|e| {
            Error::new(
                Class::Configuration,
                format!("the object store's settings cannot be used: {e}"),
            )
        })?;
        Ok(Client {
            objects: Arc::new(client),
            names: Names::Bucket(bucket, std::sync::Once::new()),
        })
    }
}

/// The authorities of the Secret's `ca.crt`.
fn authorities(ca: &str) -> Result<RootCertStore> {
    let wrong = |why: &dyn std::fmt::Display| {
        Error::new(
            Class::Configuration,
            format!("the store's ca.crt cannot be used: {why}"),
        )
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.map_err(|e| wrong(&e))?;
        roots.add(certificate).map_err(|e| wrong(&e))?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn told(change: impl FnOnce(&mut Credentials)) -> Option<String> {
        let mut credentials = Credentials {
            region: "us-east-1".into(),
            endpoint: Some("https://store.example.com:9000".into()),
            bucket: "backups".into(),
            ..Credentials::default()
        };
        change(&mut credentials);
        credentials.check().err().map(|e| e.to_string())
    }

    /// A server that answers each request by "not found" and gives the head of the request.
    async fn answer_one(listener: &tokio::net::TcpListener) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::<u8>::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    }

    fn mounted(files: &[(&str, &str)]) -> (tempfile::TempDir, StoreConfig) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("accessKeyID", "AKIA"), ("secretAccessKey", "s3cret")]
            .iter()
            .chain(files)
        {
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
        let path = object_store::path::Path::from("a");
        let (head, _) = tokio::join!(
            answer_one(&listener),
            client
                .objects
                .get_opts(&path, object_store::GetOptions::default())
        );
        assert!(head.contains("x-amz-security-token: t0ken"), "{head}");
        let (head, _) = tokio::join!(answer_one(&listener), client.names.below(&path));
        assert!(head.contains("x-amz-security-token: t0ken"), "{head}");
    }

    #[test]
    fn a_role_in_the_backup_secret_is_refused() {
        for key in ["roleARN", "token", "webIdentityTokenFile", "credential_process"] {
            let (_folder, config) = mounted(&[(key, "x")]);
            let refused = config
                .credentials()
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default();
            assert!(
                refused.contains(&format!("has the key {key}")) && refused.contains("remove the key"),
                "{refused}"
            );
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
        assert_eq!(told(|_| {}), None);
        assert_eq!(told(|c| c.endpoint = None), None);
        for endpoint in ["store", "store:9000", "ftp://store", "http://", "http://a b"] {
            let told = told(|c| c.endpoint = Some(endpoint.into())).unwrap_or_default();
            assert!(told.contains("endpoint is no URL"), "{endpoint}: {told}");
        }
        for name in ["", "..", "a/b", "a b", "a?b"] {
            let bucket = told(|c| c.bucket = name.into()).unwrap_or_default();
            assert!(bucket.contains("bucketName is no name"), "{name}: {bucket}");
            let region = told(|c| c.region = name.into()).unwrap_or_default();
            assert!(region.contains("region is no name"), "{name}: {region}");
        }
    }
}
