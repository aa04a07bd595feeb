//! `ownership.json`: whose the backups of a shoot are, beside the folder of its snapshots.
//!
//! `{"uid", "epoch", "seed", "state", "written"}`. It changes by writes only that name what was read before (`If-Match`), or
//! that nothing was there (`If-None-Match`), so that of two seeds that take the place one succeeds. `written` makes each
//! content another one, since a store's tags may be hashes of it. A store that takes such a write whatever it holds is refused:
//! it would let both succeed.

use api::meta::ErrorCode;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult,
    UpdateVersion, path::Path,
};
use runtime::{Error, Result, clock, error::refusal};
use serde::{Deserialize, Serialize};

/// What is to stand there.
pub struct Claim {
    /// The bucket, for messages.
    pub bucket: String,
    /// Folder in it.
    pub folder: String,
    /// The shoot.
    pub uid: String,
    /// Its ownership epoch.
    pub epoch: i64,
    /// The seed that has it; empty where that is not known.
    pub seed: String,
}

/// Who may do what with the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The seed's etcd serves.
    Owned,
    /// It never serves again.
    Sealed,
    /// A later epoch has taken the place and does not serve yet.
    Claimed,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ownership {
    uid: String,
    epoch: i64,
    seed: String,
    state: State,
    written: String,
}

/// Makes the place that of the claim's epoch. Nothing is changed where it is already, or is that of a later one.
pub async fn claim(store: &dyn ObjectStore, claim: &Claim) -> Result<()> {
    let path = Path::from(format!("{}/ownership.json", claim.folder));
    let mode = match store.get(&path).await {
        Err(StoreError::NotFound { .. }) => PutMode::Create,
        Err(e) => return Err(failed(claim, &e)),
        Ok(found) => {
            let version = version(&found.meta);
            let content = found.bytes().await.map_err(|e| failed(claim, &e))?;
            match judge(&content, claim)? {
                Found::Ours => return Ok(()),
                Found::Earlier => PutMode::Update(version),
            }
        }
    };
    probe(store, claim).await?;
    let ownership = Ownership {
        uid: claim.uid.clone(),
        epoch: claim.epoch,
        seed: claim.seed.clone(),
        state: State::Owned,
        written: clock::now_rfc3339_nano(),
    };
    let content = serde_json::to_vec(&ownership)
        .map_err(|e| Error::bug(format!("an ownership does not serialise: {e}")))?;
    match put(store, &path, content, mode).await {
        Ok(_) => Ok(()),
        Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
            Err(Error::transient(format!(
                "{path} in bucket {} was written by somebody else at the same moment",
                claim.bucket
            )))
        }
        Err(e) => Err(failed(claim, &e)),
    }
}

enum Found {
    Ours,
    Earlier,
}

fn judge(content: &[u8], claim: &Claim) -> Result<Found> {
    let place = format!("{}/ownership.json in bucket {}", claim.folder, claim.bucket);
    let wrong = |what: String| Error::config(ErrorCode::ErrConfigurationProblem, what);
    let found: Ownership = serde_json::from_slice(content).map_err(|e| {
        wrong(format!(
            "{place} cannot be understood ({e}): put the right content back"
        ))
    })?;
    if found.uid != claim.uid {
        return Err(wrong(format!(
            "{place} belongs to the shoot {}, not to {}",
            found.uid, claim.uid
        )));
    }
    match found.epoch.cmp(&claim.epoch) {
        std::cmp::Ordering::Less => Ok(Found::Earlier),
        std::cmp::Ordering::Equal => Ok(Found::Ours),
        std::cmp::Ordering::Greater => Err(wrong(format!(
            "{place} is of ownership epoch {}, and this BackupEntry of {}: the shoot went on elsewhere, and this entry must \
             not serve it any more",
            found.epoch, claim.epoch
        ))),
    }
}

fn version(meta: &object_store::ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: meta.e_tag.clone(),
        version: meta.version.clone(),
    }
}

async fn put(
    store: &dyn ObjectStore,
    path: &Path,
    content: Vec<u8>,
    mode: PutMode,
) -> object_store::Result<PutResult> {
    let options = PutOptions {
        mode,
        ..PutOptions::default()
    };
    store.put_opts(path, PutPayload::from(content), options).await
}

/// Proves on an object of its own that the store honours conditions.
async fn probe(store: &dyn ObjectStore, claim: &Claim) -> Result<()> {
    let path = Path::from(format!(
        "{}/conditions-{}",
        claim.folder,
        clock::now().as_nanosecond()
    ));
    let honours = honours_conditions(store, &path).await;
    let removed = store.delete(&path).await;
    match honours {
        Ok(true) => removed.or_else(|e| match e {
            StoreError::NotFound { .. } => Ok(()),
            e => Err(failed(claim, &e)),
        }),
        Ok(false) => Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the object store of bucket {} takes a write whose condition (If-None-Match, If-Match) does not hold, so that two \
                 seeds could hold the backups of one shoot: use a store, or a release of it, with conditional writes",
                claim.bucket
            ),
        )),
        Err(e) => Err(failed(claim, &e)),
    }
}

async fn honours_conditions(store: &dyn ObjectStore, path: &Path) -> object_store::Result<bool> {
    let write = |content: &str, mode| put(store, path, content.as_bytes().to_vec(), mode);
    let first = match write("1", PutMode::Create).await {
        Err(StoreError::NotImplemented { .. }) => return Ok(false),
        first => UpdateVersion::from(first?),
    };
    match write("2", PutMode::Create).await {
        Ok(_) | Err(StoreError::NotImplemented { .. }) => return Ok(false),
        Err(StoreError::AlreadyExists { .. }) => {}
        Err(e) => return Err(e),
    }
    match write("3", PutMode::Update(first.clone())).await {
        // A store that cannot tell versions apart, or always refuses, is of no use either.
        Err(StoreError::NotImplemented { .. } | StoreError::Precondition { .. }) => return Ok(false),
        other => other?,
    };
    match write("4", PutMode::Update(first)).await {
        Ok(_) => Ok(false),
        Err(StoreError::Precondition { .. }) => Ok(true),
        Err(e) => Err(e),
    }
}

fn failed(claim: &Claim, error: &StoreError) -> Error {
    if let Some(refused) = refusal(error) {
        return refused.clone().into();
    }
    let what = format!(
        "could not take the place {} in bucket {}: {error}",
        claim.folder, claim.bucket
    );
    match error {
        StoreError::Unauthenticated { .. } => Error::config(ErrorCode::ErrInfraUnauthenticated, what),
        StoreError::PermissionDenied { .. } => Error::config(ErrorCode::ErrInfraUnauthorized, what),
        _ => Error::transient(what),
    }
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;
