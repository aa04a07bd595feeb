//! An S3 object store: buckets, and removal of objects. Further processes write and read snapshots.
//!
//! The client comes from the crate `object_store`. That crate has no method for a bucket, so this module
//! signs and sends the requests for buckets. Listings and removals use [`permit_object_store::Bucket`],
//! because that client sees every key and every version.

mod place;
mod refusal;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::meta::ErrorCode;
use extension::context::Credentials;
use object_store::{
    Error as StoreError, ObjectStoreExt,
    aws::AmazonS3,
    client::{HttpClient, HttpError, HttpErrorKind, HttpRequest},
    path::Path,
    signer::{Method, Signer},
};
use permit_object_store::{
    Bucket, Listed, ListedObject, REMOVED_AT_ONCE, RefusedRemoval, WebIdentityCause, WebIdentityError,
};
use runtime::{Error, Result, client::Permit, error::with_causes};

use place::BucketAddress;
use refusal::{S3Error, Telling};

/// Validity of a signed request. Short, because the request is signed when sent.
const SIGNED_FOR: Duration = Duration::from_secs(60);

/// A client for the objects of a bucket, in the type of the library. `region` counts if the credentials name
/// no region.
pub fn objects(credentials: &Credentials, name: &str, region: &str, permit: &Permit) -> Result<AmazonS3> {
    let place = BucketAddress::from_secret(credentials, name, region)?;
    let connector = place::connector(permit);
    let keys = place.provide_keys(credentials, connector.client())?;
    place.client(keys, credentials.origin(), connector)
}

/// A bucket with credentials.
pub struct Store {
    s3: AmazonS3,
    bucket: Bucket,
    client: HttpClient,
    place: BucketAddress,
    origin: String,
}

impl Store {
    /// The bucket `name`. `region` counts if the credentials name no region.
    pub fn open(credentials: &Credentials, name: &str, region: &str, permit: &Permit) -> Result<Self> {
        let place = BucketAddress::from_secret(credentials, name, region)?;
        let client = place::connector(permit).client();
        let keys = place.provide_keys(credentials, client.clone())?;
        let telling = Telling(client.clone());
        Ok(Self {
            bucket: place.bucket(Arc::clone(&keys), HttpClient::new(telling.clone())),
            s3: place.client(keys, credentials.origin(), telling)?,
            client,
            place,
            origin: credentials.origin().to_owned(),
        })
    }

    /// Creates the bucket. An existing bucket of the same account is success.
    pub async fn create_bucket(&self) -> Result<()> {
        let Err(error) = self.ask(Method::PUT, self.place.location()).await else {
            return Ok(());
        };
        match S3Error::find_in(&error).map(|refusal| refusal.code.as_str()) {
            Some("BucketAlreadyOwnedByYou") => Ok(()),
            Some("BucketAlreadyExists") => self.bucket_is_ours().await,
            _ => Err(self.failed("make", &error)),
        }
    }

    /// Removes the bucket with all objects. A bucket that is already gone is success.
    pub async fn delete_bucket(&self) -> Result<()> {
        self.delete_below("").await?;
        match self.ask(Method::DELETE, String::new()).await {
            Err(error) if !S3Error::find_in(&error).is_some_and(S3Error::is_missing) => {
                Err(self.failed("remove", &error))
            }
            _ => Ok(()),
        }
    }

    /// The content of an object; `None` if the object or the bucket does not exist.
    pub async fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let content = async { self.s3.get(path).await?.bytes().await };
        match content.await {
            Ok(content) => Ok(Some(content.to_vec())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) if S3Error::find_in(&error).is_some_and(S3Error::names_nothing) => Ok(None),
            Err(error) => Err(self.failed(&format!("read {path} of"), &error)),
        }
    }

    /// Removes all objects below the folder `prefix`, with every version. A bucket that is already gone is
    /// success.
    pub async fn delete_below(&self, prefix: &str) -> Result<()> {
        self.delete_below_but(prefix, |_| false).await
    }

    /// As [`Self::delete_below`], except for objects that `is_kept` selects. A refused removal does not end
    /// the removal of the rest.
    pub async fn delete_below_but(&self, prefix: &str, is_kept: fn(&str) -> bool) -> Result<()> {
        let prefix = Path::from(prefix);
        let prefix = Some(format!("{prefix}/")).filter(|_| !prefix.is_root());
        let prefix = prefix.unwrap_or_default();
        let mut listed = Listed::Versions;
        let mut refused = Vec::<RefusedRemoval>::new();
        let mut removed_plainly = BTreeSet::new();
        let mut first_before = None;
        loop {
            let is_left = |key: &str| is_kept(key) || refused.iter().any(|refused| refused.key == key);
            // Always the first page: the page before is gone. A continuation token would skip objects in some
            // stores.
            let Some(page) = self.first_page(listed, &prefix, is_left).await? else {
                listed = Listed::Objects;
                continue;
            };
            let Some(first) = page.first().cloned() else {
                return self.finish_removal(&refused);
            };
            if first_before.as_ref() == Some(&first) && !removed_plainly.contains(&first.key) {
                return Err(Error::transient(format!(
                    "object {:?} of bucket {} was removed and still exists; remove the object by hand",
                    first.key, self.place.name
                )));
            }
            refused.extend(self.remove(&page, &mut removed_plainly).await?);
            first_before = Some(first);
        }
    }

    /// Removes versions. If the store refuses the only version, `null`, removes the object without a version.
    /// In a bucket without versions, the account may only have the right to remove objects. The removal
    /// without a version happens once per key, because each such removal adds a delete marker in a bucket
    /// with versions.
    async fn remove(
        &self,
        page: &[ListedObject],
        removed_plainly: &mut BTreeSet<String>,
    ) -> Result<Vec<RefusedRemoval>> {
        let failed = |error| self.failed("remove objects of", &error);
        let mut refused = self.bucket.remove(page).await.map_err(failed)?;
        let denied = refused.iter().filter(|refused| refused.code == "AccessDenied");
        let denied: BTreeSet<_> = denied.map(|refused| refused.key.clone()).collect();
        let versions = page.chunk_by(|a, b| a.key == b.key);
        let objects: Vec<_> = versions
            .filter_map(|versions| match versions {
                [only] if only.version.as_deref() == Some("null") => Some(only.key.clone()),
                _ => None,
            })
            .filter(|key| denied.contains(key) && removed_plainly.insert(key.clone()))
            .map(|key| ListedObject {
                key,
                ..ListedObject::default()
            })
            .collect();
        refused.retain(|refused| !objects.iter().any(|object| object.key == refused.key));
        refused.extend(self.bucket.remove(&objects).await.map_err(failed)?);
        Ok(refused)
    }

    fn finish_removal(&self, refused: &[RefusedRemoval]) -> Result<()> {
        let Some(first) = refused.first() else {
            return Ok(());
        };
        let message = format!(
            "the object store refused to remove {} objects of bucket {}, such as {:?} ({}); all others are removed. Grant the \
             account of the Secret {} the removal of objects and versions, or wait until their retention ends",
            refused.len(),
            self.place.name,
            first.key,
            first.code,
            self.origin
        );
        if refused.iter().all(|refused| refused.code == "AccessDenied") {
            return Err(Error::config(ErrorCode::ErrInfraUnauthorized, message));
        }
        Err(Error::transient(message))
    }

    /// The first objects to remove; `None` if the store does not list versions, or not for this account.
    async fn first_page(
        &self,
        listed: Listed,
        prefix: &str,
        is_left: impl Fn(&str) -> bool,
    ) -> Result<Option<Vec<ListedObject>>> {
        let (mut wanted, mut position) = (Vec::new(), None);
        loop {
            let page = self.bucket.page(listed, prefix, position.as_ref()).await;
            let (page, next) = match page {
                Err(StoreError::NotImplemented { .. }) if listed == Listed::Versions => return Ok(None),
                Err(error)
                    if listed == Listed::Versions
                        && S3Error::find_in(&error).is_some_and(S3Error::is_permission_denied) =>
                {
                    self.report_versions_stay();
                    return Ok(None);
                }
                Err(error) if S3Error::find_in(&error).is_some_and(S3Error::is_missing) => {
                    return Ok(Some(Vec::new()));
                }
                page => page.map_err(|error| self.failed("list", &error))?,
            };
            // A store that does not know the parameter answers with objects.
            if listed == Listed::Versions && page.iter().any(|object| object.version.is_none()) {
                return Ok(None);
            }
            wanted.extend(page.into_iter().filter(|object| !is_left(&object.key)));
            if wanted.len() >= REMOVED_AT_ONCE || next.is_none() {
                return Ok(Some(wanted));
            }
            if next == position {
                return Err(Error::transient(format!(
                    "could not list bucket {}: the object store returned the same continuation token again",
                    self.place.name
                )));
            }
            position = next;
        }
    }

    fn report_versions_stay(&self) {
        tracing::warn!(
            bucket = self.place.name,
            secret = self.origin,
            "the account of the Secret may not list versions: old versions of removed objects stay, if the bucket has versions; \
             grant s3:ListBucketVersions and s3:DeleteObjectVersion, or add a lifecycle rule for noncurrent versions"
        );
    }

    async fn bucket_is_ours(&self) -> Result<()> {
        match self.ask(Method::HEAD, String::new()).await {
            Err(error) if S3Error::find_in(&error).is_some() => Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "could not use bucket {}: it belongs to another account; remove it there or use that account's credentials",
                    self.place.name
                ),
            )),
            asked => asked.map_err(|error| self.failed("use", &error)),
        }
    }

    /// Sends a request for the bucket.
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
            Ok(answer) => S3Error::read(answer).await,
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
        if let Some(failure) = WebIdentityError::find(error) {
            return classify_role(failure, &format!("{doing} with the Secret {}", self.origin));
        }
        match S3Error::find_in(error) {
            Some(refusal) => refusal.error(&doing, &self.origin),
            None => Error::transient(format!("{doing}: {}", with_causes(error))),
        }
    }
}

/// The class of a role without keys. `doing` is the failed action.
pub fn classify_role(failure: &WebIdentityError, doing: &str) -> Error {
    let message = format!("{doing}: {failure}");
    let code = match failure.cause() {
        WebIdentityCause::Token => ErrorCode::ErrInfraUnauthenticated,
        WebIdentityCause::Denied => ErrorCode::ErrInfraUnauthorized,
        WebIdentityCause::Secret => ErrorCode::ErrConfigurationProblem,
        WebIdentityCause::Unavailable => return Error::transient(message),
    };
    Error::config(code, message)
}

#[cfg(test)]
mod tests;
