//! The owner record of a shoot (R17-10; docs/ownership.md): two names that belong together, and what may become of what stands
//! there. Pure: what was read in, what is to change out.
//!
//! An epoch only goes up, and its end is for ever. So whoever comes late, with whatever it has read or slept over, changes nothing.

use api::{
    constants::{OWNERSHIP_EPOCH, OWNERSHIP_EPOCH_LABEL, OWNERSHIP_FORGOTTEN},
    extensions::{DNSRecord, RecordType},
    meta::ErrorCode,
};
use cloud_local::dns::{Change, Held, absolute};
use hickory_proto::rr::Name;
use kube::ResourceExt;
use runtime::{Error, Result};

/// The longest identity, in bytes. Seeds' identities have some 100.
const LONGEST_IDENTITY: usize = 255;

/// One seed's claim to one shoot in one epoch, as a DNSRecord makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// Has one text: whose the shoot is.
    pub(super) name: Name,
    /// Has one text: the epoch.
    pub(super) epoch_name: Name,
    identity: String,
    epoch: i64,
    /// With its removal nobody's epoch is left either.
    forgotten: bool,
}

/// A change of both names at once.
pub(super) type Changes = [Change; 2];

impl Claim {
    /// The claim of a DNSRecord; none where it is an ordinary record.
    pub(super) fn of(record: &DNSRecord) -> Result<Option<Self>> {
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
                "{identity:?} in spec.values is no seed identity (1 to {LONGEST_IDENTITY} visible ASCII characters without \
                 quotes, backslashes and spaces): correct it"
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

    /// Its epoch.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// As for a shoot that goes for good.
    pub(super) fn forgotten(self) -> Self {
        Self {
            forgotten: true,
            ..self
        }
    }

    /// What makes the record that of this claim. None: it is already. An error: it is not to become so, now or ever.
    pub(super) fn write(&self, epoch: &Held, owner: &Held) -> Result<Option<Changes>> {
        let (stood, whose) = (self.epoch_in(epoch)?, self.owner_in(owner)?);
        let name = &self.name;
        match (stood, whose) {
            (None, None) => {}
            (None, Some(whose)) => {
                return Err(wrong(format!(
                    "{name} names {whose}, and {} has no epoch: it is no record of ours, or half of one. It is left alone; \
                     remove the text of {name} if nobody else needs it",
                    self.epoch_name
                )));
            }
            (Some(stood), _) if stood < self.epoch => {}
            (Some(stood), whose) if stood > self.epoch => {
                return Err(wrong(format!(
                    "{name} is of ownership epoch {stood} ({}), and this DNSRecord of {}: the shoot went on elsewhere, and this \
                     seed must not take it back",
                    whose.unwrap_or("nobody's"),
                    self.epoch
                )));
            }
            (Some(_), Some(whose)) if whose == self.identity => return Ok(None),
            (Some(stood), Some(whose)) => {
                return Err(wrong(format!(
                    "{name} names {whose} in ownership epoch {stood}, and this DNSRecord {}: an epoch has one owner, and that \
                     does not change",
                    self.identity
                )));
            }
            (Some(stood), None) => {
                return Err(wrong(format!(
                    "{name} was removed in ownership epoch {stood}: this epoch has ended for ever, and a hand-over begins \
                     another one",
                )));
            }
        }
        let become_ours = [Some(self.epoch.to_string()), Some(self.identity.clone())];
        Ok(Some(self.changes([epoch, owner], become_ours)))
    }

    /// What takes away what this claim has written. None: nothing of it is there (any more).
    ///
    /// The epoch stays, so that whoever was the owner in it knows that it is over (R17-50), unless the claim is to be forgotten.
    pub(super) fn remove(&self, epoch: &Held, owner: &Held) -> Option<Changes> {
        // What cannot be understood is not ours, and holds up no deletion.
        let stood = self.epoch_in(epoch).ok()??;
        let whose = self.owner_in(owner).ok()?;
        let is_ours = whose == Some(self.identity.as_str());
        if self.forgotten {
            // An epoch of ours from which the owner was removed before goes, too.
            return (stood <= self.epoch && (is_ours || whose.is_none()))
                .then(|| self.changes([epoch, owner], [None, None]));
        }
        (stood == self.epoch && is_ours)
            .then(|| self.changes([epoch, owner], [Some(self.epoch.to_string()), None]))
    }

    fn changes(&self, [epoch, owner]: [&Held; 2], [becomes, becomes_of]: [Option<String>; 2]) -> Changes {
        [
            Change {
                name: self.epoch_name.clone(),
                was: text(epoch).map(str::to_owned),
                becomes,
            },
            Change {
                name: self.name.clone(),
                was: text(owner).map(str::to_owned),
                becomes: becomes_of,
            },
        ]
    }

    fn epoch_in(&self, held: &Held) -> Result<Option<i64>> {
        let name = &self.epoch_name;
        match held {
            Held::Nothing => Ok(None),
            Held::Text(text) => match epoch_of(text) {
                Some(epoch) => Ok(Some(epoch)),
                None => Err(not_ours(
                    name,
                    &format!("has the text {:?}, which is no epoch", short(text)),
                )),
            },
            Held::Other(what) => Err(not_ours(name, what)),
        }
    }

    fn owner_in<'a>(&self, held: &'a Held) -> Result<Option<&'a str>> {
        match held {
            Held::Nothing => Ok(None),
            Held::Text(text) if is_identity(text) => Ok(Some(text)),
            Held::Text(text) => Err(not_ours(
                &self.name,
                &format!("has the text {:?}, which is no seed identity", short(text)),
            )),
            Held::Other(what) => Err(not_ours(&self.name, what)),
        }
    }
}

/// Where the epoch of the owner record of this name stands.
pub(super) fn epoch_name(owner: &Name) -> Result<Name> {
    owner.prepend_label(OWNERSHIP_EPOCH_LABEL).map_err(|error| {
        wrong(format!(
            "there is no room for \"{OWNERSHIP_EPOCH_LABEL}.\" in front of the name {owner}: {error}"
        ))
    })
}

fn text(held: &Held) -> Option<&str> {
    match held {
        Held::Text(text) => Some(text),
        Held::Nothing | Held::Other(_) => None,
    }
}

/// Decimal digits, no sign, no leading zero; from 1.
fn epoch_of(text: &str) -> Option<i64> {
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn is_identity(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte);
    (1..=LONGEST_IDENTITY).contains(&text.len()) && text.bytes().all(is_fine)
}

/// As much of a foreign text as belongs into a message.
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
