//! What a seed says of itself: this shoot's record, my identity, my epoch.

use hickory_proto::rr::Name;

/// The label in front of the owner record's name under which the epoch stands. It has a name of its own so
/// that the owner record keeps exactly one value (R17-10).
const EPOCH_LABEL: &str = "epoch";

/// The longest identity that is understood, in bytes. Seeds' identities have some 100.
const LONGEST_IDENTITY: usize = 255;

/// One seed's claim to one shoot in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub(crate) owner_name: Name,
    pub(crate) epoch_name: Name,
    pub(crate) identity: String,
    pub(crate) epoch: i64,
}

/// A claim that no record could confirm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The owner record's name.
    #[error(
        "the owner record's name {name:?} is no DNS name with room for \"{EPOCH_LABEL}.\" in front: {why}"
    )]
    Name {
        /// As it was given.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The identity.
    #[error(
        "the seed identity {0:?} must be 1 to {LONGEST_IDENTITY} visible ASCII characters without quotes, backslashes and spaces"
    )]
    Identity(String),
    /// The epoch.
    #[error("the epoch is {0}; the first one is 1")]
    Epoch(i64),
}

impl Claim {
    /// The claim of the seed `identity` to be the owner in `epoch` (1 or more). `owner_name` is the owner
    /// record's name, `owner.<shoot>.<project>.<internal domain>` (R17-10, R17-13).
    pub fn new(owner_name: &str, identity: &str, epoch: i64) -> Result<Self, ClaimError> {
        let wrong = |why: String| ClaimError::Name {
            name: owner_name.to_owned(),
            why,
        };
        let name = absolute(owner_name).map_err(wrong)?;
        let epoch_name = name
            .prepend_label(EPOCH_LABEL)
            .map_err(|error| wrong(error.to_string()))?;
        if !is_identity(identity) {
            return Err(ClaimError::Identity(identity.to_owned()));
        }
        if epoch < 1 {
            return Err(ClaimError::Epoch(epoch));
        }
        Ok(Self {
            owner_name: name,
            epoch_name,
            identity: identity.to_owned(),
            epoch,
        })
    }

    /// The epoch that is claimed.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The name of the record that carries the epoch, with a dot at its end. It is written in the same update
    /// as the owner record.
    #[must_use]
    pub fn epoch_name(&self) -> String {
        self.epoch_name.to_ascii()
    }
}

/// A name with a dot at its end, whatever was written. The root is no name of anything here.
pub(crate) fn absolute(name: &str) -> Result<Name, String> {
    let mut parsed = Name::from_ascii(name).map_err(|error| error.to_string())?;
    if parsed.num_labels() == 0 {
        return Err("it is empty".to_owned());
    }
    parsed.set_fqdn(true);
    Ok(parsed)
}

/// Whether this can be an identity. A value with quotes or spaces was damaged on its way into the record: it
/// names nobody, so that it takes nothing from anybody.
#[must_use]
pub fn is_identity(text: &str) -> bool {
    (1..=LONGEST_IDENTITY).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte))
}

/// The epoch that a record's value says: decimal digits, no sign, no leading zero.
#[must_use]
pub fn epoch_of(text: &str) -> Option<i64> {
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
