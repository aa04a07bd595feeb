//! Location and credentials of a store: flags, and the files of a mounted Secret.

use super::listing::{Client, Names};
use crate::error::{Class, Error, Result};
use object_store::{
    RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3Builder, AwsCredential, AwsCredentialProvider},
    client::HttpClient,
    local::LocalFileSystem,
    signer::Url,
};
use permit::Permit;
use permit_object_store::{
    Bucket, StoreConnector, WebIdentity, WebIdentityKeys, WebIdentityRole, aws_domain,
};
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

/// Content of the mounted Secret. The token of a role is not part of the content: a renewed token keeps the
/// client, and the client reads the token when the client needs new keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The role that issues the keys; the keys below are empty then.
    role: Option<WebIdentityRole>,
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

    /// The role that the mounted Secret names instead of the keys of an account.
    fn read_role(&self, region: &str, endpoint: Option<&str>) -> Result<Option<WebIdentityRole>> {
        let names = self.credentials_dir.iter().flat_map(std::fs::read_dir).flatten();
        let names = names.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let names: Vec<_> = names.collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let keys = WebIdentityKeys {
            role_arn: self.file("roleARN")?,
            token: self.file("token")?,
            sts_endpoint: self.file("stsEndpoint")?,
            store_endpoint: endpoint.map(ToOwned::to_owned),
            region: region.to_owned(),
        };
        let role = keys.read_role(&names);
        role.map_err(|why| Error::new(Class::Configuration, format!("the backup Secret {why}")))
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
        let region = self.file("region")?.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = match &self.endpoint {
            Some(endpoint) => Some(endpoint.clone()),
            None => self.file("endpoint")?,
        };
        let role = self.read_role(&region, endpoint.as_deref())?;
        let account_key = |name: &str| -> Result<String> {
            if role.is_some() {
                return Ok(String::new());
            }
            self.file(name)?.ok_or_else(|| {
                let dir = self.credentials_dir.as_ref().map_or("<--store-credentials-dir>".into(), |d| d.to_string_lossy());
                Error::new(
                    Class::Credentials,
                    format!("the object store's {name} is missing; the backup Secret mounted at {dir} must have the key {name}"),
                )
            })
        };
        let credentials = Credentials {
            access_key_id: account_key("accessKeyID")?,
            secret_access_key: account_key("secretAccessKey")?,
            session_token: self.file("sessionToken")?,
            role,
            region,
            endpoint,
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

    /// The keys that sign requests. The first request asks for the keys of a role, with the token that the
    /// Secret has then.
    fn provide_keys(
        &self,
        credentials: &Credentials,
        client: HttpClient,
        retry: RetryConfig,
    ) -> AwsCredentialProvider {
        let Some(role) = &credentials.role else {
            return Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: credentials.access_key_id.clone(),
                secret_key: credentials.secret_access_key.clone(),
                token: credentials.session_token.clone(),
            }));
        };
        let config = self.clone();
        let read_token = move || match config.file("token") {
            Ok(Some(token)) => Ok(token),
            Ok(None) => Err("the backup Secret has no key token any more; add the key".to_owned()),
            Err(error) => Err(error.message),
        };
        Arc::new(WebIdentity::new(role.clone(), client, retry, read_token))
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
        let client = connector.client();
        let keys = self.provide_keys(credentials, client.clone(), retry.clone());
        let bucket = Bucket {
            client,
            url: credentials.url(),
            region: credentials.region.clone(),
            credentials: Arc::clone(&keys),
            retry: retry.clone(),
        };
        let builder = AmazonS3Builder::new()
            .with_bucket_name(&credentials.bucket)
            .with_region(&credentials.region)
            // The library knows only a single domain of AWS.
            .with_endpoint(credentials.endpoint())
            .with_credentials(keys)
            .with_allow_http(credentials.is_plain())
            .with_http_connector(connector)
            .with_retry(retry);
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
#[path = "credentials_tests.rs"]
mod tests;
