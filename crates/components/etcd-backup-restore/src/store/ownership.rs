//! `ownership.json`: the owner of the store. The actuator of the BackupEntry writes the file, and this
//! process marks a lost epoch in the file as sealed.
//!
//! This process never creates the file: a missing file means that no seed has claimed the store. Writes are
//! conditional on the content that was read (`If-Match`). The field `written` makes each content unique,
//! because a store's ETags may be hashes of the content. The crate `ownership` (`Object`) decides the allowed
//! transitions.

use super::Store;
use crate::clock;
use crate::error::{Class, Error, Result};
use ::ownership::{Mark, OwnershipObject};
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) const OWNERSHIP: &str = "ownership.json";

/// How often a seal that lost against a concurrent write is retried at once.
const TRIES: u32 = 3;

/// [`Mark`], as the file spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Holding {
    Owned,
    Sealed,
    Claimed,
}

impl Holding {
    fn mark(self) -> Mark {
        match self {
            Self::Owned => Mark::Owned,
            Self::Sealed => Mark::Sealed,
            Self::Claimed => Mark::Claimed,
        }
    }

    fn from_mark(mark: Mark) -> Self {
        match mark {
            Mark::Owned => Self::Owned,
            Mark::Sealed => Self::Sealed,
            Mark::Claimed => Self::Claimed,
        }
    }
}

/// The owner of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// The shoot.
    pub uid: String,
    /// Its ownership epoch.
    pub epoch: i64,
    #[serde(rename = "state")]
    holding: Holding,
    written: String,
    /// For a claimed store: the epoch whose snapshots the store holds. For an owned store: the epoch with
    /// whose end this epoch begins, if that epoch was in this store too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<i64>,
    /// The epochs of this store that `origin` continues, the newest first.
    #[serde(rename = "formerOrigins", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former_origins: Vec<i64>,
    /// Fields of the file that this process does not know, kept unchanged.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Ownership {
    /// The epoch and its mark.
    #[must_use]
    pub fn object(&self) -> OwnershipObject {
        OwnershipObject {
            epoch: self.epoch,
            mark: self.holding.mark(),
        }
    }
}

/// The result of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// The file states the seal, from this write or an earlier write.
    Sealed,
    /// There is no epoch to seal, with the reason.
    Left(String),
}

/// The content that seals the epoch, from the content that was read.
fn sealed(found: &Ownership, uid: &str, epoch: i64) -> Result<OwnershipObject, Sealing> {
    if found.uid != uid {
        let why = format!("it belongs to the shoot {}", found.uid);
        return Err(Sealing::Left(why));
    }
    let now = found.object();
    let is_sealed = now.epoch == epoch && now.mark == Mark::Sealed;
    let write = OwnershipObject::seal(Some(&now), epoch).and_then(|write| write.becomes);
    write.ok_or_else(|| {
        if is_sealed {
            return Sealing::Sealed;
        }
        Sealing::Left(format!("it says {:?} in epoch {}", now.mark, now.epoch))
    })
}

impl Store {
    fn ownership_path(&self) -> Path {
        self.root.clone().join(OWNERSHIP)
    }

    /// Reads the current owner from the store.
    pub async fn ownership(&self) -> Result<Option<Ownership>> {
        Ok(self.ownership_at().await?.map(|(found, _)| found))
    }

    /// Seals the epoch of the store, unless the store belongs to a different shoot.
    pub async fn seal(&self, uid: &str) -> Result<Sealing> {
        let path = self.ownership_path();
        for _ in 0..TRIES {
            let Some((found, version)) = self.ownership_at().await? else {
                return Ok(Sealing::Left("it does not exist".to_owned()));
            };
            let becomes = match sealed(&found, uid, self.epoch) {
                Ok(becomes) => becomes,
                Err(done) => return Ok(done),
            };
            let sealed = Ownership {
                epoch: becomes.epoch,
                holding: Holding::from_mark(becomes.mark),
                written: clock::now().to_string(),
                ..found
            };
            let content =
                serde_json::to_vec(&sealed).map_err(|e| Error::new(Class::Configuration, e.to_string()))?;
            let options = PutOptions {
                mode: PutMode::Update(version),
                ..PutOptions::default()
            };
            let put = self
                .client()?
                .put_opts(&path, PutPayload::from(content), options)
                .await;
            match put {
                Ok(_) => return Ok(Sealing::Sealed),
                // A concurrent writer, or an earlier try of this call whose answer was lost.
                Err(StoreError::Precondition { .. } | StoreError::AlreadyExists { .. }) => {}
                Err(StoreError::NotImplemented { .. }) => {
                    return Ok(Sealing::Left("the store has no conditional writes".to_owned()));
                }
                Err(e) => return Err(Error::store(&format!("sealing {path}"), &e)),
            }
        }
        Err(Error::new(
            Class::Store,
            format!("{path} was written by somebody else each time it was to be sealed"),
        ))
    }

    async fn ownership_at(&self) -> Result<Option<(Ownership, UpdateVersion)>> {
        let path = self.ownership_path();
        let failed = |e: &StoreError| Error::store(&format!("reading {path}"), e);
        let found = match self.client()?.get(&path).await {
            Ok(found) => found,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        let version = UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: found.meta.version.clone(),
        };
        let content = found.bytes().await.map_err(|e| failed(&e))?;
        let ownership = serde_json::from_slice(&content).map_err(|e| {
            let what = format!("{path} cannot be understood ({e}); put the right content back");
            Error::new(Class::SnapshotCorrupt, what)
        })?;
        Ok(Some((ownership, version)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stored_owner(epoch: i64, state: &str) -> Ownership {
        let text = format!(
            r#"{{"uid":"u","epoch":{epoch},"seed":"a","state":"{state}","written":"then","later":[1]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn only_what_is_of_this_shoot_and_epoch_is_sealed() {
        let becomes = OwnershipObject {
            epoch: 3,
            mark: Mark::Sealed,
        };
        assert_eq!(sealed(&stored_owner(3, "Owned"), "u", 3), Ok(becomes));
        assert_eq!(sealed(&stored_owner(3, "Sealed"), "u", 3), Err(Sealing::Sealed));
        for (epoch, state, uid) in [
            // No seed has opened the store, and the file states the location of the data: the next owner
            // needs that.
            (3, "Claimed", "u"),
            (4, "Claimed", "u"),
            (4, "Owned", "u"),
            (2, "Owned", "u"),
            (3, "Owned", "v"),
        ] {
            let left = sealed(&stored_owner(epoch, state), uid, 3);
            assert!(matches!(left, Err(Sealing::Left(_))), "{left:?}");
        }
    }

    #[test]
    fn what_others_have_written_stays() {
        let text = serde_json::to_value(stored_owner(3, "Owned")).unwrap();
        assert_eq!(
            (&text["seed"], &text["later"]),
            (&"a".into(), &serde_json::json!([1]))
        );
        assert_eq!(text["state"], "Owned");
    }
}
