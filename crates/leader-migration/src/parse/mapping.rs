//! A mapping of the document with lookup by field name, and the names of places in messages.

use super::document::{Content, Fields, Node, line};

/// The place of a value.
#[derive(Clone)]
pub(super) struct Place {
    /// Counted from 1.
    pub line: Option<usize>,
    /// The path to the value: `controllerLeaders[2].name`; empty for the document as a whole.
    pub field: String,
}

impl Place {
    /// The whole document.
    pub(super) fn of(document: &Node) -> Self {
        Self {
            line: line(document.referenced),
            field: String::new(),
        }
    }

    /// The place of an element of the list at this place; `index` is counted from 0.
    pub(super) fn element(&self, index: usize, element: &Node) -> Self {
        Self {
            line: line(element.referenced),
            field: format!("{}[{index}]", self.field),
        }
    }
}

/// A mapping and its place.
pub(super) struct Mapping<'d> {
    pub place: Place,
    pub fields: &'d Fields,
}

impl<'d> Mapping<'d> {
    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&'d Content> {
        let found = self.fields.iter().find(|(key, _)| key.value == name);
        found.map(|(_, node)| &node.value)
    }

    /// The place of a field: the place of the key, or of the mapping where the key is missing.
    pub(super) fn place(&self, name: &str) -> Place {
        let key = self.fields.iter().find(|(key, _)| key.value == name);
        let field = match self.place.field.as_str() {
            "" => name.to_owned(),
            around => format!("{around}.{name}"),
        };
        Place {
            line: key.map_or(self.place.line, |(key, _)| line(key.referenced)),
            field,
        }
    }
}
