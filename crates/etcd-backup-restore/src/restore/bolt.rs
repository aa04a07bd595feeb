//! A look at the head of etcd's database file, before a tool maps it into memory.
//!
//! The file begins with two meta pages, of which the valid one with the higher transaction counts. It says how many
//! pages there must be; a file that was cut is found by that although the pages that are left may be consistent.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a page's header, which the meta data follow.
const HEADER: usize = 16;
const MAGIC: u32 = 0xED0C_DAED;
/// Place of the checksum in the meta data: everything before it is covered.
const CHECKSUM: usize = 56;

struct Meta {
    page_size: u64,
    pages: u64,
    transaction: u64,
}

/// What is wrong with the file, if anything is.
pub(super) fn fault(database: &Path) -> std::io::Result<Option<String>> {
    let mut file = File::open(database)?;
    let length = file.metadata()?.len();
    // Two pages, of whatever size the machine had that made it.
    let mut head = Vec::new();
    file.by_ref().take(2 * 64 * 1024).read_to_end(&mut head)?;
    let sizes = [4096, 8192, 16_384, 65_536];
    let candidates = std::iter::once(0)
        .chain(sizes)
        .filter_map(|at| meta(head.get(at..)?));
    let Some(meta) = candidates.max_by_key(|meta| meta.transaction) else {
        return Ok(Some("neither of its meta pages is valid".to_owned()));
    };
    let needed = meta.pages.saturating_mul(meta.page_size);
    Ok((length < needed).then(|| format!("it has {length} bytes, and {needed} are in use")))
}

fn meta(page: &[u8]) -> Option<Meta> {
    let meta = page.get(HEADER..HEADER + CHECKSUM + 8)?;
    let word = |at: usize| Some(u64::from_le_bytes(meta.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_le_bytes(meta.get(at..at + 4)?.try_into().ok()?));
    if half(0)? != MAGIC || word(CHECKSUM)? != fnv1a(&meta[..CHECKSUM]) {
        return None;
    }
    Some(Meta {
        page_size: u64::from(half(8)?),
        pages: word(40)?,
        transaction: word(48)?,
    })
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
        // The newer one is torn: the older one counts, and wants more pages than there are.
        file[17] ^= 1;
        assert!(fault_of(&file).unwrap().contains("bytes"));
        assert!(fault_of(b"").unwrap().contains("meta pages"));
        assert!(fault_of(&[1; 10_000]).unwrap().contains("meta pages"));
        assert!(fault_of(&page(3, 7)).unwrap().contains("12288 are in use"));
    }
}
