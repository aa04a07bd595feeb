//! A mapping of the document, whose fields are looked up by name, and how a place in it is called in
//! messages.

use super::document::{Content, Fields, Node, line};

/// Where something stands.
#[derive(Clone)]
pub(super) struct Place {
    /// Counted from 1.
    pub line: Option<usize>,
    /// The way down to it: `controllerLeaders[2].name`; empty for the document as a whole.
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

    /// This element of the list here, counted from 0.
    pub(super) fn element(&self, index: usize, element: &Node) -> Self {
        Self {
            line: line(element.referenced),
            field: format!("{}[{index}]", self.field),
        }
    }
}

/// A mapping and where it stands.
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

    /// Where a field stands: at its key; one that is not there, where the mapping is.
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
