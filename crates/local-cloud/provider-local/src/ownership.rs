//! `ownership.json`: the owner of a shoot's backups, beside the folder of the snapshots.
//!
//! `{"uid", "epoch", "seed", "state", "written", "origin", "formerOrigins"}`. Each write requires the content
//! that was read before (`If-Match`), or an absent object (`If-None-Match`), so that only one of two
//! competing seeds succeeds. `written` makes each content unique, since a store's tags may be hashes of the
//! content. A store that ignores the condition is refused, because both writes would succeed.
//!
//! A seed takes the seed's own folder (`Owned`). For a takeover without the help of the source, the seed
//! announces the claim in the source's folder (`Claimed`). From then on, no process of an earlier epoch reads
//! there that the process owns the shoot. `origin` is the epoch whose end is the begin of the new epoch, if
//! the snapshots of that epoch are in this folder. That is so in a claimed folder, and in a folder whose
//! owner also had the shoot in that epoch. The crate `ownership` decides on allowed transitions.

use ::ownership::{Mark, OwnershipObject};
use api::{
    constants::{CONFIRMATION_FORCE_DELETION, OPERATION, operation::RECONCILE},
    meta::ErrorCode,
};
use mutation::Mutation;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult,
    UpdateVersion, path::Path,
};
use permit_object_store::{WebIdentityError, create_object};
use runtime::{Error, Result, clock, error::refusal};
use serde::{Deserialize, Serialize};

use crate::object_store::classify_role;

/// The wanted content.
pub struct BackupClaim {
    /// The bucket, for messages.
    pub bucket: String,
    /// Folder in the bucket.
    pub folder: String,
    /// The shoot.
    pub uid: String,
    /// The ownership epoch of the shoot.
    pub epoch: i64,
    /// The owner seed; empty if unknown.
    pub seed: String,
    /// `Owned` in the seed's own folder, `Claimed` in the folder of the seed from which the shoot is taken
    /// over.
    pub state: State,
    /// The epoch whose end is the begin of this epoch, if the snapshots are here. For a claimed folder, an
    /// unknown origin is guessed.
    pub origin: Option<i64>,
}

/// The rights on the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The seed's etcd serves.
    Owned,
    /// The seed's etcd never serves again.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<i64>,
    /// The epochs of this folder that `origin` continues, the newest first. An epoch may end before the etcd
    /// of the epoch has started: then the data are in one of these epochs.
    #[serde(rename = "formerOrigins", default, skip_serializing_if = "Vec::is_empty")]
    former_origins: Vec<i64>,
}

impl Ownership {
    fn object(&self) -> OwnershipObject {
        OwnershipObject {
            epoch: self.epoch,
            mark: match self.state {
                State::Owned => Mark::Owned,
                State::Sealed => Mark::Sealed,
                State::Claimed => Mark::Claimed,
            },
        }
    }

    /// The epoch whose snapshots are here.
    fn origin(&self) -> Option<i64> {
        self.object().data_epoch(self.origin)
    }

    /// The epochs of this folder that `origin` continues; empty if the folder does not state the epochs.
    fn origins_before(&self, origin: i64) -> Vec<i64> {
        let own = (self.state != State::Claimed && self.epoch == origin).then_some(self.origin);
        let is_line = own.is_some() || self.origin == Some(origin);
        let before = own
            .flatten()
            .into_iter()
            .chain(self.former_origins.iter().copied());
        before.filter(|former| is_line && *former < origin).collect()
    }
}

/// Writes the claim's epoch into the folder. No write if the folder already has the epoch.
pub async fn claim(store: &dyn ObjectStore, claim: &BackupClaim) -> Result<()> {
    let path = path(claim);
    let (mode, found) = match store.get(&path).await {
        Err(StoreError::NotFound { .. }) => (PutMode::Create, None),
        Err(e) => return Err(failed(claim, &e)),
        Ok(found) => {
            let version = version(&found.meta);
            let content = found.bytes().await.map_err(|e| failed(claim, &e))?;
            (PutMode::Update(version), Some(understand(&content, claim)?))
        }
    };
    let now = found.as_ref().map(Ownership::object);
    let written = match claim.state {
        State::Claimed => OwnershipObject::claim(now.as_ref(), claim.epoch),
        State::Owned | State::Sealed => OwnershipObject::own(now.as_ref(), claim.epoch),
    };
    if written.is_none() {
        return Ok(());
    }
    probe(store, claim).await?;
    let guessed = found.as_ref().and_then(Ownership::origin);
    let origin = claim.origin.or(guessed.filter(|_| claim.state == State::Claimed));
    let ownership = Ownership {
        uid: claim.uid.clone(),
        epoch: claim.epoch,
        seed: claim.seed.clone(),
        state: claim.state,
        written: clock::now_rfc3339_nano(),
        origin,
        former_origins: found
            .as_ref()
            .zip(origin)
            .map(|(found, origin)| found.origins_before(origin))
            .unwrap_or_default(),
    };
    let content = serde_json::to_vec(&ownership)
        .map_err(|e| Error::bug("an ownership does not serialise").caused_by(e))?;
    let mode = if Mutation::PlaceTakenWithoutCondition.is_active() {
        PutMode::Overwrite
    } else {
        mode
    };
    match put_object(store, &path, content, mode).await {
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

/// The path of `ownership.json`.
#[must_use]
pub fn path(claim: &BackupClaim) -> Path {
    Path::from(format!("{}/ownership.json", claim.folder))
}

/// Whether the author of the claim may remove the objects beside this content. A folder without content was
/// never taken, or the removal has begun. The check runs once, because a store removes objects without
/// conditions.
pub fn may_be_removed(content: Option<&[u8]>, claim: &BackupClaim) -> Result<()> {
    let Some(content) = content else {
        return Ok(());
    };
    understand(content, claim).map(|_| ()).map_err(|why| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "the backups in {} are not removed: {why}; to delete this BackupEntry and leave them, annotate it with \
                 {CONFIRMATION_FORCE_DELETION}=true",
                claim.folder
            ),
        )
    })
}

/// The parsed content, unless the content belongs to a different shoot or a later epoch.
fn understand(content: &[u8], claim: &BackupClaim) -> Result<Ownership> {
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
    if found.epoch > claim.epoch && !Mutation::PlaceOfLaterEpochTaken.is_active() {
        return Err(wrong(format!(
            "{place} is of ownership epoch {}, and this BackupEntry of {}: the shoot went on elsewhere, and this entry must \
             not serve it any more",
            found.epoch, claim.epoch
        )));
    }
    Ok(found)
}

fn version(meta: &object_store::ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: meta.e_tag.clone(),
        version: meta.version.clone(),
    }
}

async fn put_object(
    store: &dyn ObjectStore,
    path: &Path,
    content: Vec<u8>,
    mode: PutMode,
) -> object_store::Result<PutResult> {
    let content = PutPayload::from(content);
    if mode == PutMode::Create {
        return create_object(store, path, content).await;
    }
    let options = PutOptions {
        mode,
        ..PutOptions::default()
    };
    store.put_opts(path, content, options).await
}

/// Proves on a temporary object that the store honours conditions.
async fn probe(store: &dyn ObjectStore, claim: &BackupClaim) -> Result<()> {
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
        // Only this call uses the object, so `NotFound` means a missing bucket.
        Err(StoreError::NotFound { .. }) => Err(bucket_is_gone(claim)),
        Err(e) => Err(failed(claim, &e)),
    }
}

/// The bucket was removed or never existed. An empty bucket in place of the source's bucket would not help,
/// because the backups are needed.
fn bucket_is_gone(claim: &BackupClaim) -> Error {
    let BackupClaim { bucket, folder, .. } = claim;
    let what = match (claim.state, claim.origin) {
        (State::Claimed, _) | (_, Some(_)) => format!(
            "bucket {bucket} does not exist, and the backups that the shoot goes on with were in it, below {folder}: make the bucket \
             again and put them back (from a replica of it), or correct spec.bucketName of this BackupEntry; nothing was begun"
        ),
        (State::Owned | State::Sealed, None) => format!(
            "bucket {bucket} does not exist: annotate its BackupBucket with {OPERATION}={RECONCILE}, which makes it again, and empty, or \
             correct spec.bucketName of this BackupEntry"
        ),
    };
    Error::config(ErrorCode::ErrInfraDependencies, what)
}

async fn honours_conditions(store: &dyn ObjectStore, path: &Path) -> object_store::Result<bool> {
    let write = |content: &str, mode| put_object(store, path, content.as_bytes().to_vec(), mode);
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
        // A store that cannot distinguish versions, or always refuses, is unusable too.
        Err(StoreError::NotImplemented { .. } | StoreError::Precondition { .. }) => return Ok(false),
        other => other?,
    };
    match write("4", PutMode::Update(first)).await {
        Ok(_) => Ok(false),
        Err(StoreError::Precondition { .. }) => Ok(true),
        Err(e) => Err(e),
    }
}

fn failed(claim: &BackupClaim, error: &StoreError) -> Error {
    if let Some(refused) = refusal(error) {
        return refused.clone().into();
    }
    let doing = format!(
        "could not take the place {} in bucket {}",
        claim.folder, claim.bucket
    );
    if let Some(failure) = WebIdentityError::find(error) {
        return classify_role(failure, &doing);
    }
    let what = format!("{doing}: {error}");
    match error {
        StoreError::Unauthenticated { .. } => Error::config(ErrorCode::ErrInfraUnauthenticated, what),
        StoreError::PermissionDenied { .. } => Error::config(ErrorCode::ErrInfraUnauthorized, what),
        _ => Error::transient(what),
    }
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;
