//! The address of a bucket, and the connection to the bucket.

use std::{sync::Arc, time::Duration};

use api::meta::ErrorCode;
use extension::context::Credentials;
use object_store::{
    RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3, AmazonS3Builder, AwsCredential, AwsCredentialProvider},
    client::{HttpClient, HttpConnector},
    signer::Url,
};
use permit_object_store::{
    Bucket, StoreConnector, WebIdentity, WebIdentityKeys, WebIdentityRole, aws_domain,
};
use runtime::{Error, Result, client::Permit};

/// Timeout of a request. Longer than the removal of a thousand objects takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Timeout of a connection; short, so that a dead store does not occupy a worker.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Time for retries of a failing request. Shorter than the heartbeat interval of the waiting object.
const RETRY_WITHIN: Duration = Duration::from_secs(15);

/// Bounds each request. Trusts the built-in authorities, because the image has none.
pub fn connector(permit: &Permit) -> StoreConnector {
    StoreConnector::new(permit, CONNECT_WITHIN, ANSWER_WITHIN)
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: 3,
        retry_timeout: RETRY_WITHIN,
        ..RetryConfig::default()
    }
}

/// The address of a bucket. The constructor checks the URL from the Secret, because the library assumes a
/// valid URL.
pub struct BucketAddress {
    url: Url,
    region: String,
    /// The role that the Secret names instead of the keys of an account.
    role: Option<WebIdentityRole>,
    /// The bucket's name.
    pub name: String,
}

impl BucketAddress {
    /// `region` counts if the credentials name no region.
    pub fn from_secret(credentials: &Credentials, name: &str, region: &str) -> Result<Self> {
        let wrong = |key: &str, what: String| {
            let message = format!(
                "key {key:?} of the Secret {} {what}: correct it",
                credentials.origin()
            );
            Error::config(ErrorCode::ErrConfigurationProblem, message)
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            let message =
                format!("{name:?} cannot be the name of a bucket: use letters, digits, '-' and '.'");
            return Err(Error::config(ErrorCode::ErrConfigurationProblem, message));
        }
        let region = credentials
            .optional_text("region")?
            .unwrap_or_else(|| region.to_owned());
        if !region.chars().all(is_plain) {
            return Err(wrong("region", format!("is no name of a region ({region:?})")));
        }
        let endpoint = credentials.optional_text("endpoint")?;
        let role = read_role(credentials, &region, endpoint.as_ref())?;
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.{}", aws_domain(&region)));
        let mut url: Url = endpoint
            .parse()
            .map_err(|e| wrong("endpoint", format!("is no URL ({e})")))?;
        let known = matches!(url.scheme(), "http" | "https");
        let (Ok(mut path), true) = (url.path_segments_mut(), known) else {
            return Err(wrong("endpoint", "is no URL of a server".to_owned()));
        };
        path.pop_if_empty().push(name);
        drop(path);
        Ok(Self {
            url,
            region,
            role,
            name: name.to_owned(),
        })
    }

    /// The keys that sign requests. The keys of a role are asked for by the first request.
    pub fn provide_keys(
        &self,
        credentials: &Credentials,
        client: HttpClient,
    ) -> Result<AwsCredentialProvider> {
        let Some(role) = &self.role else {
            return Ok(Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: credentials.text("accessKeyID")?,
                secret_key: credentials.text("secretAccessKey")?,
                token: credentials.optional_text("sessionToken")?,
            })));
        };
        // The Secret is read for each operation on a bucket, so the token is not older.
        let token = credentials.text("token")?;
        let keys = WebIdentity::new(role.clone(), client, retry(), move || Ok(token.clone()));
        Ok(Arc::new(keys))
    }

    /// The bucket for requests of the S3 protocol.
    pub fn bucket(&self, credentials: AwsCredentialProvider, client: HttpClient) -> Bucket {
        Bucket {
            client,
            url: self.url.as_str().trim_end_matches('/').to_owned(),
            region: self.region.clone(),
            credentials,
            retry: retry(),
        }
    }

    /// A client for the objects of the bucket. `origin` is the Secret, for messages.
    pub fn client(
        &self,
        credentials: AwsCredentialProvider,
        origin: &str,
        connector: impl HttpConnector,
    ) -> Result<AmazonS3> {
        AmazonS3Builder::new()
            // The endpoint includes the bucket: the library adds nothing.
            .with_endpoint(self.url.as_str())
            .with_virtual_hosted_style_request(true)
            .with_bucket_name(&self.name)
            .with_region(&self.region)
            .with_credentials(credentials)
            .with_allow_http(self.url.scheme() == "http")
            .with_http_connector(connector)
            .with_retry(retry())
            .build()
            .map_err(|e| {
                let message = format!("the Secret {origin} names no usable object store ({e}): correct it");
                Error::config(ErrorCode::ErrConfigurationProblem, message)
            })
    }

    /// The region in the request for a new bucket: empty for the default region us-east-1.
    pub fn location(&self) -> String {
        let region = &self.region;
        if region == "us-east-1" {
            return String::new();
        }
        format!(
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        )
    }
}

/// The role that a Secret names instead of the keys of an account.
fn read_role(
    credentials: &Credentials,
    region: &str,
    endpoint: Option<&String>,
) -> Result<Option<WebIdentityRole>> {
    let keys = WebIdentityKeys {
        role_arn: credentials.optional_text("roleARN")?,
        token: credentials.optional_text("token")?,
        sts_endpoint: credentials.optional_text("stsEndpoint")?,
        store_endpoint: endpoint.cloned(),
        region: region.to_owned(),
    };
    let names: Vec<_> = credentials.data().keys().map(String::as_str).collect();
    keys.read_role(&names).map_err(|why| {
        let message = format!("the Secret {} {why}", credentials.origin());
        Error::config(ErrorCode::ErrConfigurationProblem, message)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn parse_address(endpoint: Option<&str>, region: &str, name: &str) -> Result<BucketAddress> {
        let mut data = BTreeMap::from([("region".to_owned(), region.into())]);
        data.extend(endpoint.map(|endpoint| ("endpoint".to_owned(), endpoint.into())));
        let credentials = Credentials::new("garden/backup", data);
        BucketAddress::from_secret(&credentials, name, "")
    }

    #[test]
    fn a_bucket_is_a_url() -> Result<()> {
        for (endpoint, region, name, url) in [
            (None, "eu-west-1", "b", "https://s3.eu-west-1.amazonaws.com/b"),
            (
                None,
                "cn-north-1",
                "b",
                "https://s3.cn-north-1.amazonaws.com.cn/b",
            ),
            (Some("http://host:9000"), "r", "b", "http://host:9000/b"),
            (Some("https://host/s3/"), "r", "b", "https://host/s3/b"),
        ] {
            assert_eq!(parse_address(endpoint, region, name)?.url.as_str(), url);
        }
        Ok(())
    }

    #[test]
    fn what_is_no_server_is_told() {
        for (endpoint, region) in [
            (Some("nonsense"), "r"),
            (Some("mailto:nobody"), "r"),
            (Some("ftp://host"), "r"),
            (Some("http://a b"), "r"),
            (None, "a b"),
            (None, "</LocationConstraint>"),
        ] {
            assert_refused(&parse_address(endpoint, region, "b"));
        }
    }

    /// The bucket's URL must not become the URL of the server, or of an object in a different bucket.
    #[test]
    fn what_is_no_bucket_is_told() {
        for name in ["", ".", "..", "a/b", "a?b", "a b", "%2e%2e"] {
            assert_refused(&parse_address(Some("http://host"), "r", name));
        }
    }

    fn assert_refused(place: &Result<BucketAddress>) {
        let what = place.as_ref().map(|place| place.url.to_string());
        assert!(
            matches!(&what, Err(error) if error.codes() == [ErrorCode::ErrConfigurationProblem]),
            "{what:?}"
        );
    }

    #[test]
    fn a_secret_with_credentials_elsewhere_or_half_a_role_is_refused() {
        for (key, part) in [
            ("roleARN", "add token"),
            ("token", "add roleARN"),
            ("credential_process", "remove the key"),
        ] {
            let data = BTreeMap::from([(key.to_owned(), b"x".to_vec())]);
            let refused = BucketAddress::from_secret(&Credentials::new("garden/backup", data), "b", "r");
            assert_refused(&refused);
            let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(
                message.contains(&format!("the Secret garden/backup has the key {key}"))
                    && message.contains(part),
                "{message}"
            );
        }
    }

    #[tokio::test]
    async fn temporary_keys_have_their_session_token() -> Result<()> {
        // As the process does at its start.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let keys = ["accessKeyID", "secretAccessKey", "sessionToken"];
        let data = keys.map(|key| (key.to_owned(), key.as_bytes().to_vec())).into();
        let credentials = Credentials::new("garden/backup", data);
        let place = BucketAddress::from_secret(&credentials, "b", "r")?;
        let connector = || connector(&Permit::sole("a test"));
        let keys = place.provide_keys(&credentials, connector().client())?;
        let bucket = place.bucket(Arc::clone(&keys), connector().client());
        let client = place.client(keys, credentials.origin(), connector())?;
        for keys in [&bucket.credentials, client.credentials()] {
            let credential = keys.get_credential().await;
            let token = credential.ok().and_then(|credential| credential.token.clone());
            assert_eq!(token.as_deref(), Some("sessionToken"));
        }
        Ok(())
    }

    #[test]
    fn a_bucket_is_told_of_its_region() -> Result<()> {
        assert_eq!(parse_address(None, "us-east-1", "b")?.location(), "");
        let told = parse_address(None, "eu-west-1", "b")?.location();
        assert!(
            told.contains("<LocationConstraint>eu-west-1</LocationConstraint>"),
            "{told}"
        );
        Ok(())
    }
}
