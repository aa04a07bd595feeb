//! Reads pages. A page is untrusted: each offset is checked against the bytes that were read.

use std::io::{Error, ErrorKind, Result};

/// Bytes before the elements of a page.
pub(super) const HEADER: usize = 16;
/// Bytes of an element, beside its key and value.
pub(super) const ELEMENT: usize = 16;
/// The page holds other pages.
pub(super) const BRANCH: u16 = 1;
/// The page holds values.
pub(super) const LEAF: u16 = 2;
/// The value is a bucket.
pub(super) const BUCKET: u32 = 1;

/// An error for a malformed file.
pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

/// A page with its overflow pages, or a page that is kept within the value of its bucket.
pub(super) struct Page {
    bytes: Vec<u8>,
}

/// An element of a leaf. Places count from the start of the page.
pub(super) struct Entry<'a> {
    pub(super) flags: u32,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) element_at: usize,
    pub(super) value_at: usize,
}

/// An element of a branch.
pub(super) struct Child<'a> {
    pub(super) key: &'a [u8],
    pub(super) id: u64,
}

impl Page {
    pub(super) fn new(bytes: Vec<u8>) -> Result<Self> {
        let page = Self { bytes };
        match page.flags()? {
            BRANCH | LEAF => Ok(page),
            other => Err(broken(format!("a page is of the unknown kind {other}"))),
        }
    }

    /// Number of overflow pages behind the first page.
    pub(super) fn overflow(first: &[u8]) -> Result<u32> {
        number(first, 12).map(u32::from_le_bytes)
    }

    /// The page number that the page states.
    pub(super) fn id(&self) -> Result<u64> {
        number(&self.bytes, 0).map(u64::from_le_bytes)
    }

    fn flags(&self) -> Result<u16> {
        number(&self.bytes, 8).map(u16::from_le_bytes)
    }

    pub(super) fn is_leaf(&self) -> Result<bool> {
        Ok(self.flags()? == LEAF)
    }

    fn count(&self) -> Result<usize> {
        number(&self.bytes, 10).map(|count| usize::from(u16::from_le_bytes(count)))
    }

    /// Elements of a leaf.
    pub(super) fn entries(&self) -> Result<Vec<Entry<'_>>> {
        let read = |index: usize| {
            let at = HEADER + index * ELEMENT;
            let (key, value_at) = self.piece(at, at + 4, at + 8)?;
            let length = half(&self.bytes, at + 12)?;
            Ok(Entry {
                flags: number(&self.bytes, at).map(u32::from_le_bytes)?,
                key,
                value: self.slice(value_at, length)?,
                element_at: at,
                value_at,
            })
        };
        (0..self.count()?).map(read).collect()
    }

    /// Elements of a branch.
    pub(super) fn children(&self) -> Result<Vec<Child<'_>>> {
        let read = |index: usize| {
            let at = HEADER + index * ELEMENT;
            let (key, _) = self.piece(at, at, at + 4)?;
            let id = number(&self.bytes, at + 8).map(u64::from_le_bytes)?;
            Ok(Child { key, id })
        };
        (0..self.count()?).map(read).collect()
    }

    /// The key of an element, and the offset behind the key.
    fn piece(&self, element: usize, place_at: usize, length_at: usize) -> Result<(&[u8], usize)> {
        let at = element.saturating_add(half(&self.bytes, place_at)?);
        let length = half(&self.bytes, length_at)?;
        Ok((self.slice(at, length)?, at.saturating_add(length)))
    }

    fn slice(&self, at: usize, length: usize) -> Result<&[u8]> {
        self.bytes
            .get(at..at.saturating_add(length))
            .ok_or_else(|| broken("a page refers to bytes behind its end"))
    }
}

/// As many bytes as a number of that size has.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let found = bytes.get(at..at + N).and_then(|found| found.try_into().ok());
    found.ok_or_else(|| broken("a page ends too early"))
}

fn half(bytes: &[u8], at: usize) -> Result<usize> {
    let found = number(bytes, at).map(u32::from_le_bytes)?;
    usize::try_from(found).map_err(|_| broken("a page holds a length that no machine has"))
}
