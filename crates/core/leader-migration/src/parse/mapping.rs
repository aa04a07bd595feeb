//! A mapping of the document with lookup by field name, and the names of places in messages.

use super::document::{Content, Fields, Node, line};

/// The position of a value in the document.
#[derive(Clone)]
pub(super) struct Position {
    /// Counted from 1.
    pub line: Option<usize>,
    /// The path to the value: `controllerLeaders[2].name`; empty for the document as a whole.
    pub field: String,
}

impl Position {
    /// The position of the whole document.
    pub(super) fn of_document(document: &Node) -> Self {
        Self {
            line: line(document.referenced),
            field: String::new(),
        }
    }

    /// The position of an element of the list at this position; `index` is counted from 0.
    pub(super) fn element(&self, index: usize, element: &Node) -> Self {
        Self {
            line: line(element.referenced),
            field: format!("{}[{index}]", self.field),
        }
    }
}

/// A mapping and the position of the mapping.
pub(super) struct Mapping<'d> {
    pub position: Position,
    pub fields: &'d Fields,
}

impl<'d> Mapping<'d> {
    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&'d Content> {
        let found = self.fields.iter().find(|(key, _)| key.value == name);
        found.map(|(_, node)| &node.value)
    }

    /// The position of a field: the position of the key, or of the mapping where the key is missing.
    pub(super) fn field_position(&self, name: &str) -> Position {
        let key = self.fields.iter().find(|(key, _)| key.value == name);
        let field = match self.position.field.as_str() {
            "" => name.to_owned(),
            around => format!("{around}.{name}"),
        };
        Position {
            line: key.map_or(self.position.line, |(key, _)| line(key.referenced)),
            field,
        }
    }
}
