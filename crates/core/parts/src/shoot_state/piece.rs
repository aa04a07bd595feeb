//! A piece of the state of a shoot. Pieces are streamed, so that no process holds all pieces in memory.
//!
//! Pieces are ordered by [`Key`]: pieces of the gardenlet, states of extension objects, and the objects that
//! these states refer to. Collection and reading both use this order, so that two streams of pieces merge in
//! a single pass.

use api::{
    gardencore::{ExtensionResourceState, GardenerResourceData, ShootStateSpec},
    meta::{CrossVersionObjectReference, ResourceData},
};
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

use super::entries;
use crate::secrets::config;

/// Longer than each name of an object (253), so that a cut part equals no such name.
const MOST_PART: usize = 254;

/// The API version of a reference, with the default `v1` for an absent version.
pub(crate) fn version(api_version: Option<&str>) -> &str {
    api_version.unwrap_or("v1")
}

/// An entry of the three lists of a ShootState.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Piece {
    Gardener(GardenerResourceData),
    Extension(ExtensionResourceState),
    Resource(ResourceData),
}

/// Identity of a piece, and position in the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u8, String, String, String);

impl Key {
    pub(crate) fn gardener(type_: &str, name: &str) -> Self {
        Self(0, type_.to_owned(), name.to_owned(), String::new())
    }

    pub(crate) fn extension(kind: &str, name: Option<&str>, purpose: Option<&str>) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self(1, kind.to_owned(), text(name), text(purpose))
    }

    pub(crate) fn resource(reference: &CrossVersionObjectReference) -> Self {
        Self::object(&reference.kind, &reference.name, reference.api_version.as_deref())
    }

    pub(crate) fn object(kind: &str, name: &str, api_version: Option<&str>) -> Self {
        let version = version(api_version).to_owned();
        Self(2, kind.to_owned(), name.to_owned(), version)
    }

    /// The name, if the key is of a gardenlet's piece of this type.
    pub(crate) fn gardener_name(&self, type_: &str) -> Option<&str> {
        (self.0 == 0 && self.1 == type_).then_some(self.2.as_str())
    }

    /// The key with parts that are cut behind the length of the longest name of an object. A hostile source
    /// writes parts of any length.
    pub(crate) fn cut(self) -> Self {
        let cut = |text: String| text.chars().take(MOST_PART).collect::<String>();
        Self(self.0, cut(self.1), cut(self.2), cut(self.3))
    }

    /// Whether the piece is a Secret that a gardenlet creates once in the life of a shoot.
    pub(crate) fn is_own_secret(&self) -> bool {
        let name = self.gardener_name(entries::ENTRY_TYPE);
        name.is_some_and(|name| config::CARRIED.contains(&name))
    }
}

impl Piece {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Gardener(entry) => Key::gardener(&entry.type_, &entry.name),
            Self::Extension(entry) => {
                Key::extension(&entry.kind, entry.name.as_deref(), entry.purpose.as_deref())
            }
            Self::Resource(entry) => Key::object(&entry.kind, &entry.name, entry.api_version.as_deref()),
        }
    }

    /// The piece in the text of a state: a line of JSON.
    pub(crate) fn to_line(&self) -> Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)
            .map_err(|error| Error::bug(format!("{} does not encode", self.describe())).caused_by(error))?;
        line.push(b'\n');
        Ok(line)
    }

    /// The piece in a line, or `None` for an invalid line. The decoder's error is dropped, because the error
    /// text could quote key material.
    pub(crate) fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The name of the piece in messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Gardener(entry) => format!("{} {}", entry.type_, entry.name),
            Self::Extension(entry) => format!(
                "the state of {} {}",
                entry.kind,
                entry.name.as_deref().unwrap_or_default()
            ),
            Self::Resource(entry) => format!("{} {}", entry.kind, entry.name),
        }
    }

    /// Appends the piece to the right list.
    pub(crate) fn put_into(self, spec: &mut ShootStateSpec) {
        match self {
            Self::Gardener(entry) => spec.gardener.push(entry),
            Self::Extension(entry) => spec.extensions.push(entry),
            Self::Resource(entry) => spec.resources.push(entry),
        }
    }
}

/// The pieces of the three lists, sorted by key: a user may have edited the lists in a different order.
pub(crate) fn pieces_of(spec: ShootStateSpec) -> Vec<Piece> {
    let gardener = spec.gardener.into_iter().map(Piece::Gardener);
    let extensions = spec.extensions.into_iter().map(Piece::Extension);
    let resources = spec.resources.into_iter().map(Piece::Resource);
    let mut all: Vec<_> = gardener.chain(extensions).chain(resources).collect();
    all.sort_by_key(Piece::key);
    all
}
