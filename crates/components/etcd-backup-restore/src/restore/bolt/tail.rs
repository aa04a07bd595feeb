//! Adding entries at the end of a bucket.

use super::database::{DEEPEST, Database, too_deep};
use super::node::{Element, Node, PageRange, What};
use super::page::{Page, broken};
use std::io::Result;

/// The end of a bucket, where entries are added: the last leaf, and the branches above it up to the root.
/// Memory holds only these nodes; a full node is written and a new node follows.
pub(in crate::restore) struct Tail {
    bucket: String,
    /// From the leaf to the root.
    levels: Vec<Node>,
}

impl Tail {
    /// Begins to append to a bucket, behind its last entry.
    pub(in crate::restore) fn open(database: &Database, name: &str) -> Result<Self> {
        let bucket = database.bucket(name)?;
        let mut levels = Vec::new();
        let mut below = match &bucket.kept_within {
            Some(page) => {
                levels.push(node(page, None)?);
                None
            }
            None => Some(bucket.root),
        };
        while let Some(id) = below.take() {
            if levels.len() == DEEPEST {
                return Err(too_deep());
            }
            let (page, place) = database.page(id)?;
            let node = node(&page, Some(place))?;
            below = match node.elements.last().map(|element| &element.what) {
                Some(What::Child(id)) => Some(*id),
                Some(What::Value(_)) => None,
                None if node.is_leaf() => None,
                None => return Err(broken("a branch has no children")),
            };
            levels.push(node);
        }
        levels.reverse();
        Ok(Self {
            bucket: name.to_owned(),
            levels,
        })
    }

    /// Replaces all entries of a bucket with `entries`, which must be in the order of their keys.
    pub(in crate::restore) fn refill(
        database: &mut Database,
        bucket: &str,
        entries: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let mut tail = Self {
            bucket: bucket.to_owned(),
            levels: vec![Node::leaf()],
        };
        for (key, value) in entries {
            tail.push(database, key, value)?;
        }
        tail.finish(database)
    }

    /// The last key, if there is any.
    pub(in crate::restore) fn last_key(&self) -> Option<&[u8]> {
        let leaf = self.levels.first()?;
        leaf.elements.last().map(|element| element.key.as_slice())
    }

    /// Adds an entry, with a key higher than the last key.
    pub(in crate::restore) fn push(&mut self, to: &mut Database, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        if self.last_key().is_some_and(|last| last >= key.as_slice()) {
            return Err(broken("an entry does not come behind the last one"));
        }
        self.add(
            to,
            0,
            Element {
                key,
                what: What::Value(value),
            },
        )
    }

    fn add(&mut self, to: &mut Database, level: usize, element: Element) -> Result<()> {
        let node = &mut self.levels[level];
        if node.elements.is_empty() || node.size + element.size() <= to.page_size() {
            node.push(element);
            return Ok(());
        }
        // A branch needs two children: the next branch begins with the last child of this branch.
        let taken_along = if node.is_leaf() || node.elements.len() < 3 {
            None
        } else {
            node.pop()
        };
        self.close(to, level)?;
        let next = &mut self.levels[level];
        for element in taken_along.into_iter().chain([element]) {
            next.push(element);
        }
        Ok(())
    }

    /// Writes a full node and begins the next node of its level.
    fn close(&mut self, to: &mut Database, level: usize) -> Result<()> {
        let next = if self.levels[level].is_leaf() {
            Node::leaf()
        } else {
            Node::branch()
        };
        let full = std::mem::replace(&mut self.levels[level], next);
        let is_root = level + 1 == self.levels.len();
        if is_root {
            self.levels.push(Node::branch());
        }
        let id = to.write(&full)?;
        // The branch above already refers to a node that was in the file before.
        if full.place.is_none() || is_root {
            self.link(to, level + 1, full, id)?;
        }
        Ok(())
    }

    fn link(&mut self, to: &mut Database, level: usize, child: Node, id: u64) -> Result<()> {
        let first = child.elements.into_iter().next();
        let key = first
            .ok_or_else(|| broken("a node without entries would be written"))?
            .key;
        self.add(
            to,
            level,
            Element {
                key,
                what: What::Child(id),
            },
        )
    }

    /// Writes the remaining nodes, and the new root of the bucket.
    pub(in crate::restore) fn finish(mut self, to: &mut Database) -> Result<()> {
        let mut level = 0;
        loop {
            let node = std::mem::replace(&mut self.levels[level], Node::leaf());
            let id = to.write(&node)?;
            level += 1;
            if level == self.levels.len() {
                return to.begin_with(&self.bucket, id);
            }
            if node.place.is_none() {
                self.link(to, level, node, id)?;
            }
        }
    }
}

fn node(page: &Page, place: Option<PageRange>) -> Result<Node> {
    let mut node = if page.is_leaf()? {
        Node::leaf()
    } else {
        Node::branch()
    };
    node.place = place;
    if node.is_leaf() {
        for entry in page.entries()? {
            if entry.flags != 0 {
                return Err(broken("a bucket of entries holds another bucket"));
            }
            node.push(Element {
                key: entry.key.to_vec(),
                what: What::Value(entry.value.to_vec()),
            });
        }
    } else {
        for child in page.children()? {
            node.push(Element {
                key: child.key.to_vec(),
                what: What::Child(child.id),
            });
        }
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::head::Meta;
    use super::super::page::{HEADER, LEAF};
    use super::*;
    use std::fs::File;
    use std::path::{Path, PathBuf};

    const PAGE: usize = 4096;

    /// A minimal file with a single empty bucket, kept within the bucket of all buckets.
    fn file(folder: &Path) -> PathBuf {
        let mut bucket = vec![0; 16];
        bucket.extend(0_u64.to_le_bytes());
        bucket.extend([2, 0, 0, 0, 0, 0, 0, 0]);
        let mut node = Node::leaf();
        node.push(Element {
            key: b"key".to_vec(),
            what: What::Value(bucket),
        });
        let mut root = node.content(PageRange { id: 2, pages: 1 }, PAGE).unwrap();
        root[HEADER] = 1;
        assert_eq!(root[8], LEAF.to_le_bytes()[0]);
        let mut content = vec![0; 2 * PAGE];
        content.extend(root);
        let path = folder.join("db");
        std::fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        Meta::new(PAGE, 2).write(&file, 3).unwrap();
        path
    }

    fn entries(numbers: std::ops::Range<u32>) -> Vec<(Vec<u8>, Vec<u8>)> {
        // Long keys, so that a small number of keys makes a tree of many levels; some values need overflow
        // pages.
        let value = |n: u32| vec![u8::try_from(n % 251).unwrap(); if n % 97 == 5 { 3 * PAGE } else { 10 }];
        numbers
            .map(|n| ([&n.to_be_bytes()[..], &[7; 1000]].concat(), value(n)))
            .collect()
    }

    fn add(path: &Path, numbers: std::ops::Range<u32>) {
        let mut database = Database::open(path).unwrap();
        let mut tail = Tail::open(&database, "key").unwrap();
        for (key, value) in entries(numbers) {
            tail.push(&mut database, key, value).unwrap();
        }
        tail.finish(&mut database).unwrap();
        database.seal().unwrap();
    }

    fn all(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let each = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        };
        Database::open(path).unwrap().each("key", each).unwrap();
        found
    }

    /// The levels of a tree; checks that branches have at least two children and begin with the first key
    /// below.
    fn levels(database: &Database, id: u64, first: Option<&[u8]>) -> usize {
        let (page, _) = database.page(id).unwrap();
        let node = node(&page, None).unwrap();
        if let Some(first) = first {
            assert_eq!(node.elements[0].key, first);
        }
        assert!(node.elements.is_sorted_by(|a, b| a.key < b.key));
        if node.is_leaf() {
            return 1;
        }
        assert!(node.elements.len() > 1, "page {id} has a single child");
        let below: Vec<_> = page
            .children()
            .unwrap()
            .iter()
            .map(|child| levels(database, child.id, Some(child.key)))
            .collect();
        assert!(below.iter().all(|levels| *levels == below[0]));
        below[0] + 1
    }

    #[test]
    fn a_tree_that_grows_by_many_levels_in_several_goes_keeps_every_entry_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let mut end = 0;
        for more in [0, 1, 2, 3, 1, 40, 1, 1, 700, 1, 300] {
            add(&path, end..end + more);
            end += more;
            assert!(all(&path) == entries(0..end), "with {end} entries");
            let database = Database::open(&path).unwrap();
            let root = database.bucket("key").unwrap().root;
            let levels = levels(&database, root, None);
            assert!(levels > 4 || end < 700, "{levels}");
        }
    }

    #[test]
    fn an_entry_that_does_not_come_last_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        add(&path, 5..6);
        let mut database = Database::open(&path).unwrap();
        let mut tail = Tail::open(&database, "key").unwrap();
        for n in [4, 5] {
            let (key, value) = entries(n..n + 1).remove(0);
            assert!(tail.push(&mut database, key, value).is_err(), "{n}");
        }
    }

    #[test]
    fn other_entries_take_the_place_of_all_that_were_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        add(&path, 0..50);
        let mut database = Database::open(&path).unwrap();
        Tail::refill(&mut database, "key", entries(20..300)).unwrap();
        database.seal().unwrap();
        assert!(all(&path) == entries(20..300));
        assert!(Tail::open(&Database::open(&path).unwrap(), "lease").is_err());
    }

    #[test]
    fn a_file_that_is_broken_anywhere_is_read_or_refused_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        add(&path, 0..40);
        let intact = std::fs::read(&path).unwrap();
        let broken = folder.path().join("broken");
        let pages = (2..intact.len() / PAGE).flat_map(|page| page * PAGE..page * PAGE + 80);
        for at in pages.chain(0..96).chain(PAGE..PAGE + 96) {
            for bits in [0x01, 0xff] {
                let mut content = intact.clone();
                content[at] ^= bits;
                std::fs::write(&broken, content).unwrap();
                let read = Database::open(&broken).and_then(|database| {
                    database.each("key", |_, _| Ok(()))?;
                    Tail::open(&database, "key").map(drop)
                });
                // The result does not matter: the read must only return.
                let _ = read;
            }
        }
        for length in [0, 1, PAGE, 3 * PAGE, intact.len() - 1] {
            std::fs::write(&broken, &intact[..length]).unwrap();
            assert!(Database::open(&broken).is_err(), "{length}");
        }
    }
}
