//! `ownership.json`: whose the store is, as the BackupEntry's actuator writes it and a lost epoch is sealed in it.
//!
//! It is never made here: where it is missing nobody has claimed the place. It changes only from what was read (`If-Match`), and
//! `written` makes each content another one, since a store's tags may be hashes of it.

use super::Store;
use crate::clock;
use crate::error::{Class, Error, Result};
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const OWNERSHIP: &str = "ownership.json";

/// How often a seal that somebody overtook is tried again at once.
const TRIES: u32 = 3;

/// Who may do what with the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holding {
    /// The seed's etcd serves.
    Owned,
    /// It never serves again.
    Sealed,
    /// A later epoch has taken the place and does not serve yet.
    Claimed,
}

/// Whose a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// The shoot.
    pub uid: String,
    /// Its ownership epoch.
    pub epoch: i64,
    /// Who may do what.
    #[serde(rename = "state")]
    pub holding: Holding,
    written: String,
    /// What others have written there.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What became of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// It stands there now, or stood there.
    Sealed,
    /// There is nothing to seal, and why.
    Left(String),
}

/// Whether to seal what was found, in an epoch.
fn judge(found: &Ownership, uid: &str, epoch: i64) -> Result<(), Sealing> {
    let left = |why: String| Err(Sealing::Left(why));
    if found.uid != uid {
        return left(format!("it belongs to the shoot {}", found.uid));
    }
    match (found.epoch.cmp(&epoch), found.holding) {
        (std::cmp::Ordering::Equal, Holding::Sealed) => Err(Sealing::Sealed),
        (std::cmp::Ordering::Equal, _) => Ok(()),
        // Whoever has a later epoch has taken the place, and an earlier one was never this process's.
        (_, holding) => left(format!("it says {holding:?} in epoch {}", found.epoch)),
    }
}

impl Store {
    fn ownership_path(&self) -> Path {
        self.root.clone().join(OWNERSHIP)
    }

    /// Whose the store is, as it stands there at this moment.
    pub async fn ownership(&self) -> Result<Option<Ownership>> {
        Ok(self.ownership_at().await?.map(|(found, _)| found))
    }

    /// Seals the epoch of the store, unless the place is another's.
    pub async fn seal(&self, uid: &str) -> Result<Sealing> {
        let path = self.ownership_path();
        for _ in 0..TRIES {
            let Some((found, version)) = self.ownership_at().await? else {
                return Ok(Sealing::Left("it does not exist".to_owned()));
            };
            if let Err(done) = judge(&found, uid, self.epoch) {
                return Ok(done);
            }
            let sealed = Ownership {
                holding: Holding::Sealed,
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
                // Somebody else, or an earlier try of this whose answer was lost.
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

    fn found(epoch: i64, state: &str) -> Ownership {
        let text = format!(
            r#"{{"uid":"u","epoch":{epoch},"seed":"a","state":"{state}","written":"then","later":[1]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn only_what_is_of_this_shoot_and_epoch_is_sealed() {
        assert_eq!(judge(&found(3, "Owned"), "u", 3), Ok(()));
        assert_eq!(judge(&found(3, "Claimed"), "u", 3), Ok(()));
        assert_eq!(judge(&found(3, "Sealed"), "u", 3), Err(Sealing::Sealed));
        for (epoch, state, uid) in [
            (4, "Claimed", "u"),
            (4, "Owned", "u"),
            (2, "Owned", "u"),
            (3, "Owned", "v"),
        ] {
            let judged = judge(&found(epoch, state), uid, 3);
            assert!(matches!(judged, Err(Sealing::Left(_))), "{judged:?}");
        }
    }

    #[test]
    fn what_others_have_written_stays() {
        let text = serde_json::to_value(found(3, "Owned")).unwrap();
        assert_eq!(
            (&text["seed"], &text["later"]),
            (&"a".into(), &serde_json::json!([1]))
        );
        assert_eq!(text["state"], "Owned");
    }
}
