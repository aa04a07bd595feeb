//! The claim of a seed: the owner record's name, the seed's identity, and the epoch.

use hickory_proto::rr::Name;

/// The label in front of the owner record's name for the epoch. The epoch has a separate name so that the
/// owner record keeps exactly one value (R17-10).
const EPOCH_LABEL: &str = "epoch";

/// The longest valid identity, in bytes. Identities of seeds have some 100.
const LONGEST_IDENTITY: usize = 255;

/// A seed's claim to a single shoot in a single epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnershipClaim {
    pub(crate) owner_name: Name,
    pub(crate) epoch_name: Name,
    pub(crate) identity: String,
    pub(crate) epoch: i64,
}

/// The claim is invalid: no record could confirm the claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The owner record's name is invalid.
    #[error(
        "the owner record's name {name:?} is no DNS name with room for \"{EPOCH_LABEL}.\" in front: {why}"
    )]
    Name {
        /// The name as given.
        name: String,
        /// The reason.
        why: String,
    },
    /// The identity is invalid.
    #[error(
        "the seed identity {0:?} must be 1 to {LONGEST_IDENTITY} visible ASCII characters without quotes, backslashes and spaces"
    )]
    Identity(String),
    /// The epoch is below 1.
    #[error("the epoch is {0}; the first one is 1")]
    Epoch(i64),
}

impl OwnershipClaim {
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

    /// The claimed epoch.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The name of the record that carries the epoch, with a trailing dot. The same update writes this record
    /// and the owner record.
    #[must_use]
    pub fn epoch_name(&self) -> String {
        self.epoch_name.to_ascii()
    }
}

/// Parses a name and adds the trailing dot if missing. The root is refused, because no record has that name.
pub(crate) fn absolute(name: &str) -> Result<Name, String> {
    let mut parsed = Name::from_ascii(name).map_err(|error| error.to_string())?;
    if parsed.num_labels() == 0 {
        return Err("it is empty".to_owned());
    }
    parsed.set_fqdn(true);
    Ok(parsed)
}

/// Whether the text is a valid identity. A value with quotes or spaces was damaged before the value reached
/// the record. Such a value names no seed, so no seed loses a shoot by the value.
#[must_use]
pub fn is_identity(text: &str) -> bool {
    (1..=LONGEST_IDENTITY).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte))
}

/// Parses the epoch of a record's value: decimal digits, no sign, no leading zero.
#[must_use]
pub fn epoch_of(text: &str) -> Option<i64> {
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
