//! The two meta pages at the head of the file.
//!
//! Of the valid meta pages the page with the higher transaction counts. The meta page states the number of
//! pages of the file. So a truncated file is detected even if the remaining pages are consistent.

use super::page::HEADER;
use std::fs::File;
use std::io::{Read, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u32 = 0xED0C_DAED;
/// Bytes of the meta data, with the checksum at their end.
const LENGTH: usize = 64;
/// Offset of the checksum, which covers everything before it.
const CHECKSUM: usize = 56;
/// The file stores no list of free pages: a page that no tree refers to is free, as in every database that
/// etcd has opened.
const NO_FREE_LIST: u64 = u64::MAX;
const FREE_LIST: usize = 32;
const PAGES: usize = 40;
const TRANSACTION: usize = 48;

/// The valid meta data.
#[derive(Clone)]
pub(super) struct Meta {
    bytes: [u8; LENGTH],
    pub(super) page_size: usize,
    /// First page of the bucket of all buckets.
    pub(super) root: u64,
    /// How many pages are in use.
    pub(super) pages: u64,
    transaction: u64,
}

impl Meta {
    /// Reads those that count; `None` where neither page is valid.
    pub(super) fn read(file: &mut File) -> Result<Option<Self>> {
        // Two pages; the page size depends on the machine that created the file.
        let mut head = Vec::new();
        file.by_ref().take(2 * 64 * 1024).read_to_end(&mut head)?;
        let sizes = [4096, 8192, 16_384, 65_536];
        let candidates = std::iter::once(0)
            .chain(sizes)
            .filter_map(|at| Self::parse(head.get(at..)?));
        Ok(candidates.max_by_key(|meta| meta.transaction))
    }

    fn parse(page: &[u8]) -> Option<Self> {
        let bytes: [u8; LENGTH] = page.get(HEADER..HEADER + LENGTH)?.try_into().ok()?;
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if half(0)? != MAGIC || word(CHECKSUM)? != fnv1a(&bytes[..CHECKSUM]) {
            return None;
        }
        Some(Self {
            page_size: usize::try_from(half(8)?).ok()?,
            root: word(16)?,
            pages: word(PAGES)?,
            transaction: word(TRANSACTION)?,
            bytes,
        })
    }

    #[cfg(test)]
    pub(super) fn new(page_size: usize, root: u64) -> Self {
        let mut meta = Self {
            bytes: [0; LENGTH],
            page_size,
            root,
            pages: 0,
            transaction: 7,
        };
        meta.bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        meta.bytes[4] = 2;
        meta.bytes[8..12].copy_from_slice(&u32::try_from(page_size).unwrap_or_default().to_le_bytes());
        meta.set(16, root);
        meta
    }

    pub(super) fn version(&self) -> u32 {
        let [_, _, _, _, a, b, c, d, ..] = self.bytes;
        u32::from_le_bytes([a, b, c, d])
    }

    fn set(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Writes both meta pages for a file that has grown. Both pages state the same content, as in a snapshot,
    /// because the former state of the file is gone.
    pub(super) fn write(mut self, file: &File, pages: u64) -> Result<()> {
        self.set(FREE_LIST, NO_FREE_LIST);
        self.set(PAGES, pages);
        let newest = self.transaction;
        for transaction in [newest.saturating_sub(1), newest] {
            self.set(TRANSACTION, transaction);
            self.set(CHECKSUM, fnv1a(&self.bytes[..CHECKSUM]));
            let place = (transaction % 2) * self.page_size as u64 + HEADER as u64;
            file.write_all_at(&self.bytes, place)?;
        }
        Ok(())
    }
}

/// Describes the fault of a database file, if there is a fault; checked before a tool maps the file into
/// memory.
pub(in crate::restore) fn fault(database: &Path) -> Result<Option<String>> {
    let mut file = File::open(database)?;
    let length = file.metadata()?.len();
    let Some(meta) = Meta::read(&mut file)? else {
        return Ok(Some("neither of its meta pages is valid".to_owned()));
    };
    let needed = meta.pages.saturating_mul(meta.page_size as u64);
    Ok((length < needed).then(|| format!("it has {length} bytes, and {needed} are in use")))
}

/// The hash that the meta pages are sealed with.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page(pages: u64, transaction: u64) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[16..20].copy_from_slice(&MAGIC.to_le_bytes());
        page[24..28].copy_from_slice(&4096_u32.to_le_bytes());
        page[56..64].copy_from_slice(&pages.to_le_bytes());
        page[64..72].copy_from_slice(&transaction.to_le_bytes());
        let sum = fnv1a(&page[16..72]);
        page[72..80].copy_from_slice(&sum.to_le_bytes());
        page
    }

    fn fault_of(content: &[u8]) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        fault(file.path()).unwrap()
    }

    #[test]
    fn cut_and_foreign_files_are_found() {
        let mut file = [page(3, 7), page(9, 6), vec![0; 4096]].concat();
        assert_eq!(fault_of(&file), None);
        // The newer meta page is torn: the older counts, and states more pages than the file has.
        file[17] ^= 1;
        assert!(fault_of(&file).unwrap().contains("bytes"));
        assert!(fault_of(b"").unwrap().contains("meta pages"));
        assert!(fault_of(&[1; 10_000]).unwrap().contains("meta pages"));
        assert!(fault_of(&page(3, 7)).unwrap().contains("12288 are in use"));
    }
}
