//! The bucket as second witness: `ownership.json`, read at this moment.

use super::status::OwnershipStatus;
use crate::store::{Ownership, Store};
use futures::future::BoxFuture;
use ownership::{OwnershipObject, SecondWitness, Testimony};
use std::sync::Arc;

/// Reads the store of a shoot.
pub(super) struct Bucket {
    pub(super) store: Arc<Store>,
    /// Uid of the shoot.
    pub(super) uid: String,
    /// The gardenlet's reports to this process.
    pub(super) status: Arc<OwnershipStatus>,
}

impl SecondWitness for Bucket {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async {
            match self.store.ownership().await {
                Ok(found) => testimony(found.as_ref(), &self.uid),
                Err(e) => Testimony::Silent(e.to_string()),
            }
        })
    }

    fn sealing_was_reported(&self, epoch: i64) -> bool {
        self.status.is_sealing(epoch)
    }
}

/// The meaning of the object.
fn testimony(found: Option<&Ownership>, uid: &str) -> Testimony {
    if let Some(found) = found.filter(|found| found.uid != uid) {
        return Testimony::Silent(format!("it belongs to the shoot {}, not to {uid}", found.uid));
    }
    OwnershipObject::testimony(found.map(Ownership::object).as_ref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_stands_there_is_what_is_said() {
        let found = |state: &str| -> Ownership {
            let text = format!(r#"{{"uid":"u","epoch":3,"seed":"a","state":"{state}","written":"then"}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let owned = Testimony::Owned { epoch: 3, left: None };
        assert_eq!(testimony(Some(&found("Owned")), "u"), owned);
        assert_eq!(
            testimony(Some(&found("Sealed")), "u"),
            Testimony::Sealed { epoch: 3 }
        );
        assert_eq!(
            testimony(Some(&found("Claimed")), "u"),
            Testimony::Claimed { epoch: 3 }
        );
        assert_eq!(testimony(None, "u"), Testimony::Missing);
        // The object of a different shoot says nothing about this shoot.
        assert!(matches!(
            testimony(Some(&found("Sealed")), "v"),
            Testimony::Silent(_)
        ));
    }
}
