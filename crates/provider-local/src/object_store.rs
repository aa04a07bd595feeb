//! An S3 object store: buckets, and removal of objects. Snapshots are written and read by other processes.

use std::time::Duration;

use api::meta::ErrorCode;
use extension::context::Credentials;
use reqwest::{Client, Method, Response, StatusCode, Url};
use runtime::{Error, Permit, Result};
use rusty_s3::{
    Bucket, S3Action, UrlStyle,
    actions::{CreateBucket, ListObjectsV2, ObjectIdentifier},
};

/// How long a signed request may be on its way. Short: it is signed when it is sent.
const SIGNED_FOR: Duration = Duration::from_secs(60);
/// Time for one request. Longer than the removal of a thousand objects takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Time for a connection; short, so that a dead store does not occupy a worker.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A bucket with the credentials for it.
pub struct Store {
    client: Client,
    bucket: Bucket,
    credentials: rusty_s3::Credentials,
    origin: String,
    permit: Permit,
}

impl Store {
    /// The bucket `name`. `region` counts where the credentials name none.
    pub fn open(credentials: &Credentials, name: &str, region: &str, permit: &Permit) -> Result<Self> {
        let origin = credentials.origin().to_owned();
        let region = credentials
            .optional_text("region")?
            .unwrap_or_else(|| region.to_owned());
        let wrong = |what: String| {
            let message = format!("key \"endpoint\" of the Secret {origin} {what}: correct it");
            Error::config(ErrorCode::ErrConfigurationProblem, message)
        };
        let (endpoint, style) = match credentials.optional_text("endpoint")? {
            Some(endpoint) => (endpoint, UrlStyle::Path),
            None => (
                format!("https://s3.{region}.amazonaws.com"),
                UrlStyle::VirtualHost,
            ),
        };
        let endpoint: Url = endpoint.parse().map_err(|e| wrong(format!("is no URL ({e})")))?;
        // No certificates are read where none are needed: the image has none.
        let client = Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN);
        let client = if endpoint.scheme() == "http" {
            client.tls_certs_only([])
        } else {
            client
        };
        let client = client
            .build()
            .map_err(|e| Error::bug(format!("no HTTP client can be made: {}", e.without_url())))?;
        let bucket = Bucket::new(endpoint, style, name.to_owned(), region)
            .map_err(|e| wrong(format!("is unusable ({e})")))?;
        let secret = credentials.text("secretAccessKey")?;
        let credentials = rusty_s3::Credentials::new(credentials.text("accessKeyID")?, secret);
        Ok(Self {
            client,
            bucket,
            credentials,
            origin,
            permit: permit.clone(),
        })
    }

    /// Makes the bucket. That it is there and ours already is success.
    pub async fn create_bucket(&self) -> Result<()> {
        let action = CreateBucket::new(&self.bucket, &self.credentials);
        let doing = format!("could not make bucket {}", self.bucket.name());
        let answer = self
            .send(
                Method::PUT,
                action.sign(SIGNED_FOR),
                Some((action.body(), None)),
                &doing,
            )
            .await?;
        match self.refusal(answer, &doing).await? {
            None => Ok(()),
            Some(refusal) if refusal.code == "BucketAlreadyOwnedByYou" => Ok(()),
            Some(refusal) if refusal.code == "BucketAlreadyExists" => self.bucket_is_ours().await,
            Some(refusal) => Err(refusal.error),
        }
    }

    /// Removes the bucket with all objects in it. That it is gone already is success.
    pub async fn delete_bucket(&self) -> Result<()> {
        self.delete_below("").await?;
        let doing = format!("could not remove bucket {}", self.bucket.name());
        let url = self.bucket.delete_bucket(&self.credentials).sign(SIGNED_FOR);
        let answer = self.send(Method::DELETE, url, None, &doing).await?;
        match self.refusal(answer, &doing).await? {
            None => Ok(()),
            Some(refusal) if refusal.missing => Ok(()),
            Some(refusal) => Err(refusal.error),
        }
    }

    /// Removes all objects whose names begin with `prefix`. That the bucket is gone already is success.
    pub async fn delete_below(&self, prefix: &str) -> Result<()> {
        let mut first_before = None;
        loop {
            // Always the first page: the one before is gone. A continuation token would skip objects in some stores.
            let page = self.first_page(prefix).await?;
            let Some(first) = page.first().map(|object| object.key.clone()) else {
                return Ok(());
            };
            if first_before.as_ref() == Some(&first) {
                return Err(Error::transient(format!(
                    "object {first} of bucket {} was removed and is still there",
                    self.bucket.name()
                )));
            }
            self.delete_objects(&page).await?;
            first_before = Some(first);
        }
    }

    async fn first_page(&self, prefix: &str) -> Result<Vec<ObjectIdentifier>> {
        let doing = format!("could not list bucket {}", self.bucket.name());
        let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
        action.with_prefix(prefix.to_owned());
        let answer = self
            .send(Method::GET, action.sign(SIGNED_FOR), None, &doing)
            .await?;
        let text = match self.answer(answer, &doing).await? {
            Ok(text) => text,
            Err(refusal) if refusal.missing => return Ok(Vec::new()),
            Err(refusal) => return Err(refusal.error),
        };
        let page =
            ListObjectsV2::parse_response(&text).map_err(|e| Error::transient(format!("{doing}: {e}")))?;
        Ok(page
            .contents
            .into_iter()
            .map(|object| ObjectIdentifier::new(object.key))
            .collect())
    }

    async fn delete_objects(&self, objects: &[ObjectIdentifier]) -> Result<()> {
        let doing = format!("could not remove objects of bucket {}", self.bucket.name());
        let mut action = self
            .bucket
            .delete_objects(Some(&self.credentials), objects.iter());
        action.set_quiet(true);
        let url = action.sign(SIGNED_FOR);
        let (body, md5) = action.body_with_md5();
        let answer = self
            .send(Method::POST, url, Some((body, Some(md5))), &doing)
            .await?;
        let text = self
            .answer(answer, &doing)
            .await?
            .map_err(|refusal| refusal.error)?;
        let answer = rusty_s3::actions::DeleteObjectsResponse::parse(&text)
            .map_err(|e| Error::transient(format!("{doing}: {e}")))?;
        match answer.errors.first() {
            None => Ok(()),
            Some(error) => Err(Error::transient(format!("{doing}: {error:?}"))),
        }
    }

    async fn bucket_is_ours(&self) -> Result<()> {
        let doing = format!("could not use bucket {}", self.bucket.name());
        let url = self.bucket.head_bucket(Some(&self.credentials)).sign(SIGNED_FOR);
        let answer = self.send(Method::HEAD, url, None, &doing).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "{doing}: it belongs to another account; remove it there or use that account's credentials"
            ),
        ))
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<(String, Option<String>)>,
        doing: &str,
    ) -> Result<Response> {
        let is_read = method.is_safe();
        let mut request = self.client.request(method, url);
        if let Some((body, md5)) = body {
            if let Some(md5) = md5 {
                request = request.header("Content-MD5", md5);
            }
            request = request.body(body);
        }
        let sending = request.send();
        let answer = if is_read {
            self.permit.guard(sending).await?
        } else {
            self.permit.effect(sending).await?
        };
        // The URL holds a signature.
        answer.map_err(|e| Error::transient(format!("{doing}: {}", chain(&e.without_url()))))
    }

    /// The text of a good answer, or why the store refused.
    async fn answer(&self, answer: Response, doing: &str) -> Result<std::result::Result<String, Refusal>> {
        let status = answer.status();
        let text = answer
            .text()
            .await
            .map_err(|e| Error::transient(format!("{doing}: {}", chain(&e.without_url()))))?;
        Ok(if status.is_success() {
            Ok(text)
        } else {
            Err(refusal(status, &text, doing, &self.origin))
        })
    }

    async fn refusal(&self, answer: Response, doing: &str) -> Result<Option<Refusal>> {
        Ok(self.answer(answer, doing).await?.err())
    }
}

struct Refusal {
    code: String,
    missing: bool,
    error: Error,
}

/// Sorts a refusal into those that someone must mend and those that may pass.
fn refusal(status: StatusCode, text: &str, doing: &str, origin: &str) -> Refusal {
    let code = element(text, "Code").unwrap_or_default().to_owned();
    let said = element(text, "Message").unwrap_or_default();
    let said = format!(
        "{doing}: the object store answered {} {code} {said}",
        status.as_u16()
    );
    let said = said.trim_end();
    let error = match (status.as_u16(), code.as_str()) {
        (
            _,
            "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken" | "NotSignedUp",
        )
        | (401, _) => Error::config(
            ErrorCode::ErrInfraUnauthenticated,
            format!("{said}; correct accessKeyID and secretAccessKey in the Secret {origin}"),
        ),
        (403, _) => Error::config(
            ErrorCode::ErrInfraUnauthorized,
            format!("{said}; grant the account of the Secret {origin} this permission"),
        ),
        (_, "TooManyBuckets") => Error::config(
            ErrorCode::ErrInfraQuotaExceeded,
            format!("{said}; remove buckets or raise the quota"),
        ),
        (_, "InvalidBucketName" | "IllegalLocationConstraintException") => Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("{said}; correct name or region"),
        ),
        _ => Error::transient(said),
    };
    let missing = code == "NoSuchBucket" || (code.is_empty() && status == StatusCode::NOT_FOUND);
    Refusal { code, missing, error }
}

/// Content of the first XML element of this name, as S3 errors have it.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(content, _)| content)
}

/// An error with its causes: reqwest shows only the outermost.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_carry_codes_and_what_to_do() {
        for (status, text, code, missing) in [
            (
                403,
                "<Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>",
                Some(ErrorCode::ErrInfraUnauthenticated),
                false,
            ),
            (
                403,
                "<Error><Code>AccessDenied</Code></Error>",
                Some(ErrorCode::ErrInfraUnauthorized),
                false,
            ),
            (
                400,
                "<Error><Code>TooManyBuckets</Code></Error>",
                Some(ErrorCode::ErrInfraQuotaExceeded),
                false,
            ),
            (404, "<Error><Code>NoSuchBucket</Code></Error>", None, true),
            (503, "<Error><Code>SlowDown</Code></Error>", None, false),
            (404, "", None, true),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let refusal = refusal(status, text, "could not list bucket b", "garden/backup");
            assert_eq!(refusal.error.codes().first().copied(), code, "{text}");
            assert_eq!(refusal.missing, missing, "{text}");
        }
    }
}
