//! The owner record of a shoot (R17-10; docs/understand/ownership.md): two names that belong together, and
//! the allowed changes. Pure: the input is the record that was read, the output is the change. The crate
//! `ownership` (`Record`) decides on allowed transitions. This module parses records and phrases refusals.
//!
//! An epoch only increases, and the end of an epoch is final. So a late writer changes nothing, regardless of
//! the state that the writer has read or slept over.

use ::ownership::{ClaimError, ClaimRefusal, Conditional, Record, epoch_of, is_identity};
use api::{
    constants::{OWNERSHIP_EPOCH, OWNERSHIP_EPOCH_LABEL, OWNERSHIP_FORGOTTEN},
    extensions::{DNSRecord, RecordType},
    meta::ErrorCode,
};
use cloud_local::dns::{Change, TextRecord, absolute};
use hickory_proto::rr::Name;
use kube::ResourceExt;
use mutation::Mutation;
use runtime::{Error, Result};

/// A seed's claim to a shoot in an epoch, expressed by a DNSRecord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordClaim {
    /// The name of the text with the owner of the shoot.
    pub(super) name: Name,
    /// The name of the text with the epoch.
    pub(super) epoch_name: Name,
    identity: String,
    epoch: i64,
    /// The removal of the record also removes the epoch.
    forgotten: bool,
}

/// A change of both names at once.
pub(super) type Changes = [Change; 2];

impl RecordClaim {
    /// The claim of a DNSRecord; `None` for an ordinary record.
    pub(super) fn from_record(record: &DNSRecord) -> Result<Option<Self>> {
        let Some(epoch) = record.annotations().get(OWNERSHIP_EPOCH) else {
            return Ok(None);
        };
        let spec = &record.spec;
        if spec.record_type != RecordType::TXT {
            return Ok(None);
        }
        let epoch = epoch_of(epoch).ok_or_else(|| {
            wrong(format!(
                "annotation {OWNERSHIP_EPOCH} is {epoch:?}, and must be a number from 1: correct it"
            ))
        })?;
        let [identity] = spec.values.as_slice() else {
            return Err(wrong(format!(
                "the owner record {} has {} values in spec.values: give one, the seed's identity",
                spec.name,
                spec.values.len()
            )));
        };
        if !is_identity(identity) {
            return Err(wrong(format!(
                "{}, in spec.values of {}: correct it",
                ClaimError::Identity(identity.clone()),
                spec.name
            )));
        }
        let name = absolute(&spec.name)?;
        let epoch_name = epoch_name(&name)?;
        let forgotten = record.annotations().get(OWNERSHIP_FORGOTTEN);
        Ok(Some(Self {
            name,
            epoch_name,
            identity: identity.clone(),
            epoch,
            forgotten: forgotten.is_some_and(|value| value == "true"),
        }))
    }

    /// The epoch of the claim.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The claim of a shoot that is deleted for good.
    pub(super) fn forgotten(self) -> Self {
        Self {
            forgotten: true,
            ..self
        }
    }

    /// The change that writes this claim. `None`: the record already matches. An error: the claim is refused,
    /// now or for ever.
    pub(super) fn write(&self, epoch: &TextRecord, owner: &TextRecord) -> Result<Option<Changes>> {
        let found = self.parse_record(epoch, owner)?;
        let write = match found.claim(self.identity.clone(), self.epoch) {
            Err(_) if Mutation::OwnerRecordReplaced.is_active() => {
                let becomes = Record {
                    identity: Some(self.identity.clone()),
                    epoch: Some(self.epoch),
                };
                Some(Conditional {
                    tests: found,
                    becomes,
                })
            }
            write => write.map_err(|barred| wrong(self.why(barred)))?,
        };
        Ok(write.map(|write| self.changes(write)))
    }

    /// The change that removes this claim's values. `None`: no value of the claim exists (any more).
    ///
    /// The epoch stays, so that the owner in that epoch learns of the end (R17-50), unless the claim is to be
    /// forgotten.
    pub(super) fn remove(&self, epoch: &TextRecord, owner: &TextRecord) -> Option<Changes> {
        // An invalid record is foreign, and must not hold up a deletion.
        let found = self.parse_record(epoch, owner).ok()?;
        let write = if self.forgotten {
            found.delete(&self.identity, self.epoch)
        } else {
            found.leave(&self.identity, self.epoch)
        };
        write.map(|write| self.changes(write))
    }

    fn why(&self, barred: ClaimRefusal<String>) -> String {
        let (name, mine) = (&self.name, self.epoch);
        match barred {
            ClaimRefusal::NoEpoch { identity } => format!(
                "{name} names {identity}, and {} has no epoch: it is no record of ours, or half of one. It is left alone; \
                 remove the text of {name} if nobody else needs it",
                self.epoch_name
            ),
            ClaimRefusal::LaterEpoch { epoch, identity } => format!(
                "{name} is of ownership epoch {epoch} ({}), and this DNSRecord of {mine}: the shoot went on elsewhere, and this \
                 seed must not take it back",
                identity.as_deref().unwrap_or("nobody's")
            ),
            ClaimRefusal::AnotherOwner { identity } => format!(
                "{name} names {identity} in ownership epoch {mine}, and this DNSRecord {}: an epoch has one owner, and that \
                 does not change",
                self.identity
            ),
            ClaimRefusal::Ended => format!(
                "{name} was removed in ownership epoch {mine}: this epoch has ended for ever, and a hand-over begins another one"
            ),
        }
    }

    fn changes(&self, write: Conditional<Record<String>>) -> Changes {
        let Conditional { tests, becomes } = write;
        let text = |epoch: Option<i64>| epoch.map(|epoch| epoch.to_string());
        [
            Change {
                name: self.epoch_name.clone(),
                was: text(tests.epoch),
                becomes: text(becomes.epoch),
            },
            Change {
                name: self.name.clone(),
                was: tests.identity,
                becomes: becomes.identity,
            },
        ]
    }

    /// The parsed record, if all values are valid.
    fn parse_record(&self, epoch: &TextRecord, owner: &TextRecord) -> Result<Record<String>> {
        let epoch = self.epoch_in(epoch)?;
        Ok(Record {
            identity: self.owner_in(owner)?.map(str::to_owned),
            epoch,
        })
    }

    fn epoch_in(&self, found: &TextRecord) -> Result<Option<i64>> {
        let name = &self.epoch_name;
        match found {
            TextRecord::Nothing => Ok(None),
            TextRecord::Text(text) => match epoch_of(text) {
                Some(epoch) => Ok(Some(epoch)),
                None => Err(not_ours(
                    name,
                    &format!("has the text {:?}, which is no epoch", short(text)),
                )),
            },
            TextRecord::Other(what) => Err(not_ours(name, what)),
        }
    }

    fn owner_in<'a>(&self, found: &'a TextRecord) -> Result<Option<&'a str>> {
        match found {
            TextRecord::Nothing => Ok(None),
            TextRecord::Text(text) if is_identity(text) => Ok(Some(text)),
            TextRecord::Text(text) => Err(not_ours(
                &self.name,
                &format!("has the text {:?}, which is no seed identity", short(text)),
            )),
            TextRecord::Other(what) => Err(not_ours(&self.name, what)),
        }
    }
}

/// The name of the epoch text for the owner record of this name.
pub(super) fn epoch_name(owner: &Name) -> Result<Name> {
    owner.prepend_label(OWNERSHIP_EPOCH_LABEL).map_err(|error| {
        wrong(format!(
            "there is no room for \"{OWNERSHIP_EPOCH_LABEL}.\" in front of the name {owner}: {error}"
        ))
    })
}

/// A foreign text, cut for a message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn not_ours(name: &Name, what: &str) -> Error {
    wrong(format!(
        "{name} {what}: it is not ours and is left alone; remove it if nobody else needs it"
    ))
}

fn wrong(message: String) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
