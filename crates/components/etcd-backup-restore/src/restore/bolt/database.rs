//! A database file that a restore reads, and to which a restore adds pages.

use super::head::Meta;
use super::node::{Node, PageRange};
use super::page::{BUCKET, Page, broken};
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Largest depth of a tree. No file is large enough for more levels; a page that refers to an ancestor would
/// cause an endless walk.
pub(super) const DEEPEST: usize = 32;
/// Bytes of a bucket's value: its first page, and a sequence that a restore does not need.
const BUCKET_VALUE: u32 = 16;
/// The only file version that etcd has ever used.
const VERSION: u32 = 2;

/// An open database file. Added pages become valid when [`Database::seal`] writes the meta pages.
pub(in crate::restore) struct Database {
    file: File,
    meta: Meta,
    /// How many pages are in use.
    pages: u64,
}

/// The location of a bucket's entry, which names the root page of the bucket.
pub(super) struct Bucket {
    /// Root page. Zero: the bucket is small, and the value holds the only page of the bucket.
    pub(super) root: u64,
    /// Offsets in the file of the value and of the field with its length.
    value_at: u64,
    length_at: u64,
    pub(super) kept_within: Option<Page>,
}

impl Database {
    /// Opens a database file; no other process may use the file.
    pub(in crate::restore) fn open(path: &Path) -> Result<Self> {
        let mut file = File::options().read(true).write(true).open(path)?;
        let meta = Meta::read(&mut file)?.ok_or_else(|| broken("neither of its meta pages is valid"))?;
        if meta.version() != VERSION {
            return Err(broken(format!("it is of the unknown version {}", meta.version())));
        }
        if meta.page_size == 0 || file.metadata()?.len() < meta.pages.saturating_mul(meta.page_size as u64) {
            return Err(broken("it is shorter than its head says"));
        }
        let pages = meta.pages;
        Ok(Self { file, meta, pages })
    }

    pub(super) fn page_size(&self) -> usize {
        self.meta.page_size
    }

    /// Bytes in use.
    pub(in crate::restore) fn size(&self) -> u64 {
        self.at(self.pages)
    }

    fn at(&self, page: u64) -> u64 {
        page.saturating_mul(self.meta.page_size as u64)
    }

    /// Reads a page with its overflow pages.
    pub(super) fn page(&self, id: u64) -> Result<(Page, PageRange)> {
        let outside = || broken(format!("page {id} is not in the file"));
        if id < 2 || id >= self.pages {
            return Err(outside());
        }
        let mut bytes = vec![0; self.meta.page_size];
        self.file.read_exact_at(&mut bytes, self.at(id))?;
        let pages = u64::from(Page::overflow(&bytes)?) + 1;
        if id + pages > self.pages {
            return Err(outside());
        }
        if pages > 1 {
            let all = usize::try_from(pages).map_err(|_| outside())?;
            bytes.resize(all.saturating_mul(self.meta.page_size), 0);
            self.file
                .read_exact_at(&mut bytes[self.meta.page_size..], self.at(id + 1))?;
        }
        let page = Page::new(bytes)?;
        if page.id()? != id {
            return Err(broken(format!("page {id} takes itself for another")));
        }
        Ok((page, PageRange { id, pages }))
    }

    pub(super) fn bucket(&self, name: &str) -> Result<Bucket> {
        self.find(name)?
            .ok_or_else(|| broken(format!("it has no bucket {name}")))
    }

    fn find(&self, name: &str) -> Result<Option<Bucket>> {
        let mut id = self.meta.root;
        for _ in 0..DEEPEST {
            let (page, _) = self.page(id)?;
            if page.is_leaf()? {
                return find_bucket(&page, self.at(id), name);
            }
            let children = page.children()?;
            let below = children.iter().take_while(|child| child.key <= name.as_bytes());
            let Some(below) = below.last() else {
                return Ok(None);
            };
            id = below.id;
        }
        Err(too_deep())
    }

    /// Calls `each` for every entry of a bucket, in the order of the keys; no call if the bucket does not
    /// exist.
    pub(in crate::restore) fn each_if_any(
        &self,
        bucket: &str,
        each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.find(bucket)? {
            Some(_) => self.each(bucket, each),
            None => Ok(()),
        }
    }

    /// Gives every entry of a bucket, in the order of the keys.
    pub(in crate::restore) fn each(
        &self,
        bucket: &str,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let bucket = self.bucket(bucket)?;
        if let Some(page) = &bucket.kept_within {
            return each_of(page, &mut each);
        }
        // Pages that are still to be read, the next page last.
        let (mut left, mut read) = (vec![bucket.root], 0);
        while let Some(id) = left.pop() {
            let (page, _) = self.page(id)?;
            read += 1;
            if read > self.pages {
                return Err(broken("pages refer to each other in a circle"));
            }
            if page.is_leaf()? {
                each_of(&page, &mut each)?;
            } else {
                left.extend(page.children()?.iter().rev().map(|child| child.id));
            }
        }
        Ok(())
    }

    /// Writes a node; returns its first page.
    pub(super) fn write(&mut self, node: &Node) -> Result<u64> {
        let needed = node.pages(self.meta.page_size);
        let place = match node.place {
            Some(place) if place.pages >= needed => place,
            Some(_) => return Err(broken("a node has outgrown its place")),
            None => {
                let place = PageRange {
                    id: self.pages,
                    pages: needed,
                };
                self.pages += needed;
                place
            }
        };
        let content = node.content(place, self.meta.page_size)?;
        self.file.write_all_at(&content, self.at(place.id))?;
        Ok(place.id)
    }

    /// Sets the new root page of a bucket.
    pub(super) fn begin_with(&self, bucket: &str, root: u64) -> Result<()> {
        let bucket = self.bucket(bucket)?;
        self.file.write_all_at(&root.to_le_bytes(), bucket.value_at)?;
        self.file
            .write_all_at(&BUCKET_VALUE.to_le_bytes(), bucket.length_at)
    }

    /// Makes all added pages valid; returns the bytes in use.
    pub(in crate::restore) fn seal(self) -> Result<u64> {
        let end = self.at(self.pages);
        if self.file.metadata()?.len() < end {
            self.file.set_len(end)?;
        }
        self.meta.write(&self.file, self.pages)?;
        Ok(end)
    }
}

pub(super) fn too_deep() -> std::io::Error {
    broken("a tree has too many levels")
}

/// Searches a bucket in a leaf that begins at an offset in the file.
fn find_bucket(page: &Page, at: u64, name: &str) -> Result<Option<Bucket>> {
    let values = page.entries()?;
    let Some(found) = values
        .iter()
        .find(|value| value.key == name.as_bytes() && value.flags & BUCKET != 0)
    else {
        return Ok(None);
    };
    let short = || broken(format!("the bucket {name} is too short"));
    let (head, within) = found.value.split_at_checked(16).ok_or_else(short)?;
    let root = u64::from_le_bytes(head[..8].try_into().map_err(|_| short())?);
    Ok(Some(Bucket {
        root,
        value_at: at + found.value_at as u64,
        // The last of the four numbers of an element.
        length_at: at + found.element_at as u64 + 12,
        kept_within: (root == 0).then(|| Page::new(within.to_vec())).transpose()?,
    }))
}

fn each_of(page: &Page, each: &mut impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    for entry in page.entries()? {
        each(entry.key, entry.value)?;
    }
    Ok(())
}
