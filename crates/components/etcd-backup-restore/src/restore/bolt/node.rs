//! A page in the making.

use super::page::{BRANCH, ELEMENT, HEADER, LEAF, broken};
use std::io::Result;

/// A node of a tree, with its elements in the order of their keys.
pub(super) struct Node {
    kind: u16,
    /// The pages of the node in the file; `None` for a new node.
    pub(super) place: Option<PageRange>,
    pub(super) elements: Vec<Element>,
    /// Bytes of the node.
    pub(super) size: usize,
}

/// Pages that belong to a node.
#[derive(Clone, Copy)]
pub(super) struct PageRange {
    pub(super) id: u64,
    pub(super) pages: u64,
}

pub(super) struct Element {
    pub(super) key: Vec<u8>,
    pub(super) what: What,
}

pub(super) enum What {
    Value(Vec<u8>),
    Child(u64),
}

impl Element {
    fn value(&self) -> &[u8] {
        match &self.what {
            What::Value(value) => value,
            What::Child(_) => &[],
        }
    }

    /// Bytes that the element needs in its page.
    pub(super) fn size(&self) -> usize {
        ELEMENT + self.key.len() + self.value().len()
    }
}

impl Node {
    pub(super) fn leaf() -> Self {
        Self::empty(LEAF)
    }

    pub(super) fn branch() -> Self {
        Self::empty(BRANCH)
    }

    fn empty(kind: u16) -> Self {
        Self {
            kind,
            place: None,
            elements: Vec::new(),
            size: HEADER,
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.kind == LEAF
    }

    pub(super) fn push(&mut self, element: Element) {
        self.size += element.size();
        self.elements.push(element);
    }

    pub(super) fn pop(&mut self) -> Option<Element> {
        let element = self.elements.pop()?;
        self.size -= element.size();
        Some(element)
    }

    /// Number of pages that the node needs.
    pub(super) fn pages(&self, page_size: usize) -> u64 {
        self.size.div_ceil(page_size) as u64
    }

    /// The content of the node's pages.
    pub(super) fn content(&self, at: PageRange, page_size: usize) -> Result<Vec<u8>> {
        let too_large = |_| broken("a node is too large");
        let count = u16::try_from(self.elements.len()).map_err(too_large)?;
        let overflow = u32::try_from(at.pages - 1).map_err(too_large)?;
        let pages = usize::try_from(self.pages(page_size)).map_err(too_large)?;
        let mut content = Vec::with_capacity(pages * page_size);
        content.extend(at.id.to_le_bytes());
        content.extend(self.kind.to_le_bytes());
        content.extend(count.to_le_bytes());
        content.extend(overflow.to_le_bytes());
        let mut place = HEADER + self.elements.len() * ELEMENT;
        for element in &self.elements {
            // Counted from the element.
            let away = u32::try_from(place - content.len()).map_err(too_large)?;
            let key = u32::try_from(element.key.len()).map_err(too_large)?;
            let value = u32::try_from(element.value().len()).map_err(too_large)?;
            match element.what {
                What::Value(_) => {
                    for number in [0, away, key, value] {
                        content.extend(number.to_le_bytes());
                    }
                }
                What::Child(id) => {
                    content.extend(away.to_le_bytes());
                    content.extend(key.to_le_bytes());
                    content.extend(id.to_le_bytes());
                }
            }
            place += element.size() - ELEMENT;
        }
        for element in &self.elements {
            content.extend(&element.key);
            content.extend(element.value());
        }
        content.resize(pages * page_size, 0);
        Ok(content)
    }
}
