//! Credentials that a user wrote: a Secret, or the files of a Secret.

use std::collections::BTreeMap;

use api::meta::ErrorCode;

use crate::{Error, Result};

/// Content of a credentials Secret. `Debug` does not print the values.
pub struct Credentials {
    origin: String,
    data: BTreeMap<String, Vec<u8>>,
}

impl Credentials {
    /// Credentials that do not come from a Secret of the seed; `origin` names the source in messages.
    #[must_use]
    pub fn new(origin: impl Into<String>, data: BTreeMap<String, Vec<u8>>) -> Self {
        Self {
            origin: origin.into(),
            data,
        }
    }

    /// The source of the credentials for messages: `namespace/name` of the Secret.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// All entries.
    #[must_use]
    pub fn data(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.data
    }

    /// The text of an entry that must be there.
    pub fn text(&self, key: &str) -> Result<String> {
        self.optional_text(key)?.ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("the Secret {} has no key {key:?}: add it", self.origin),
            )
        })
    }

    /// The text of an optional entry; an empty entry counts as missing.
    pub fn optional_text(&self, key: &str) -> Result<Option<String>> {
        let Some(value) = self.data.get(key) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value).map_err(|_| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "key {key:?} of the Secret {} is not text: correct it",
                    self.origin
                ),
            )
        })?;
        Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
    }
}
