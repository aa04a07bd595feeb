//! An S3 object store: buckets, and removal of objects. Snapshots are written and read by other processes.
//!
//! It is the client of the crate `object_store` throughout. For what that has no method, a bucket itself, it signs the request
//! and sends it.

mod place;
mod refusal;

use std::time::Duration;

use api::meta::ErrorCode;
use extension::context::Credentials;
use futures::{StreamExt, TryStreamExt, future, stream};
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt,
    aws::AmazonS3,
    client::{HttpClient, HttpError, HttpErrorKind, HttpRequest},
    path::Path,
    signer::{Method, Signer},
};
use runtime::{Error, Permit, Result};

use place::Place;
use refusal::{Refusal, Telling};

/// How long a signed request may be on its way. Short: it is signed when it is sent.
const SIGNED_FOR: Duration = Duration::from_secs(60);
/// How many objects a store removes by one request at most.
const PAGE: usize = 1000;

/// A client for the objects of a bucket, as the library has it. `region` counts where the credentials name none.
pub fn objects(credentials: &Credentials, name: &str, region: &str, permit: &Permit) -> Result<AmazonS3> {
    Place::of(credentials, name, region)?.client(credentials, place::connector(permit))
}

/// A bucket with the credentials for it.
pub struct Store {
    s3: AmazonS3,
    client: HttpClient,
    place: Place,
    origin: String,
}

impl Store {
    /// The bucket `name`. `region` counts where the credentials name none.
    pub fn open(credentials: &Credentials, name: &str, region: &str, permit: &Permit) -> Result<Self> {
        let place = Place::of(credentials, name, region)?;
        let client = place::connector(permit).client();
        Ok(Self {
            s3: place.client(credentials, Telling(client.clone()))?,
            client,
            place,
            origin: credentials.origin().to_owned(),
        })
    }

    /// Makes the bucket. That it is there and ours already is success.
    pub async fn create_bucket(&self) -> Result<()> {
        let Err(error) = self.ask(Method::PUT, self.place.location()).await else {
            return Ok(());
        };
        match Refusal::of(&error).map(|refusal| refusal.code.as_str()) {
            Some("BucketAlreadyOwnedByYou") => Ok(()),
            Some("BucketAlreadyExists") => self.bucket_is_ours().await,
            _ => Err(self.failed("make", &error)),
        }
    }

    /// Removes the bucket with all objects in it. That it is gone already is success.
    pub async fn delete_bucket(&self) -> Result<()> {
        self.delete_below("").await?;
        match self.ask(Method::DELETE, String::new()).await {
            Err(error) if !Refusal::of(&error).is_some_and(Refusal::is_missing) => {
                Err(self.failed("remove", &error))
            }
            _ => Ok(()),
        }
    }

    /// The content of an object; none where it, or the bucket, is not there.
    pub async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let content = async { self.s3.get(path).await?.bytes().await };
        match content.await {
            Ok(content) => Ok(Some(content.to_vec())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) if Refusal::of(&error).is_some_and(Refusal::names_nothing) => Ok(None),
            Err(error) => Err(self.failed(&format!("read {path} of"), &error)),
        }
    }

    /// Removes all objects whose names begin with the folder `prefix`. That the bucket is gone already is success.
    pub async fn delete_below(&self, prefix: &str) -> Result<()> {
        self.delete_below_but(prefix, |_| false).await
    }

    /// As [`Self::delete_below`], but for those that are kept.
    pub async fn delete_below_but(&self, prefix: &str, is_kept: fn(&Path) -> bool) -> Result<()> {
        let mut first_before = None;
        loop {
            // Always the first page: the one before is gone. A continuation token would skip objects in some stores.
            let page = self.first_page(&Path::from(prefix), is_kept).await?;
            let Some(first) = page.first().cloned() else {
                return Ok(());
            };
            if first_before.as_ref() == Some(&first) {
                return Err(Error::transient(format!(
                    "object {first} of bucket {} was removed and is still there; if its name ends with a slash, remove it yourself",
                    self.place.name
                )));
            }
            let removed = self
                .s3
                .delete_stream(stream::iter(page.into_iter().map(Ok)).boxed());
            removed
                .try_for_each(|_| future::ready(Ok(())))
                .await
                .map_err(|error| self.failed("remove objects of", &error))?;
            first_before = Some(first);
        }
    }

    async fn first_page(&self, prefix: &Path, is_kept: fn(&Path) -> bool) -> Result<Vec<Path>> {
        let found = self.s3.list(Some(prefix)).map_ok(|object| object.location);
        let wanted = found.try_filter(|location| future::ready(!is_kept(location)));
        let page: std::result::Result<_, StoreError> = wanted.take(PAGE).try_collect().await;
        match page {
            Err(error) if Refusal::of(&error).is_some_and(Refusal::is_missing) => Ok(Vec::new()),
            page => page.map_err(|error| self.failed("list", &error)),
        }
    }

    async fn bucket_is_ours(&self) -> Result<()> {
        match self.ask(Method::HEAD, String::new()).await {
            Err(error) if Refusal::of(&error).is_some() => Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "could not use bucket {}: it belongs to another account; remove it there or use that account's credentials",
                    self.place.name
                ),
            )),
            asked => asked.map_err(|error| self.failed("use", &error)),
        }
    }

    /// Asks for the bucket itself.
    async fn ask(&self, method: Method, body: String) -> std::result::Result<(), StoreError> {
        let url = self
            .s3
            .signed_url(method.clone(), &Path::default(), SIGNED_FOR)
            .await?;
        let mut request = HttpRequest::new(body.into());
        *request.method_mut() = method;
        let answered = match url.as_str().parse() {
            Ok(uri) => {
                *request.uri_mut() = uri;
                self.client.execute(request).await
            }
            Err(e) => Err(HttpError::new(HttpErrorKind::Unknown, e)),
        };
        let refused = match answered {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => Refusal::read(answer).await,
            Err(error) => error,
        };
        Err(StoreError::Generic {
            store: "S3",
            source: Box::new(refused),
        })
    }

    fn failed(&self, what: &str, error: &StoreError) -> Error {
        if let Some(refused) = runtime::error::refusal(error) {
            return refused.clone().into();
        }
        let doing = format!("could not {what} bucket {}", self.place.name);
        match Refusal::of(error) {
            Some(refusal) => refusal.error(&doing, &self.origin),
            None => Error::transient(format!("{doing}: {}", chain(error))),
        }
    }
}

/// An error with those of its causes that it does not tell itself.
fn chain(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
