//! Parses text to a single YAML document with the place of every value and key, and explains common YAML
//! mistakes.
//!
//! The crate serde-saphyr reads the text and gives the places, but has no tree type, so this module defines a
//! tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    Error, ExternalMessageSource, Location, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned,
    granit_parser::ErrorKind,
};

use crate::error::{Problem, ProblemKind};

/// A value and its place.
pub(super) type Node = Spanned<Content>;
/// Keys and values of a mapping, in order.
pub(super) type Fields = [(Spanned<String>, Node)];

/// The kind of a value. The content of numbers and booleans is not needed.
pub(super) enum Content {
    Null,
    Bool,
    Number,
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(Spanned<String>, Node)>),
}

impl Content {
    /// The kind in words.
    pub(super) fn shape(&self) -> &'static str {
        match self {
            Self::Null => "empty",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// The line of a place, counted from 1; `None` if unknown.
pub(super) fn line(place: Location) -> Option<usize> {
    usize::try_from(place.line()).ok().filter(|line| *line > 0)
}

/// Reads the only document in `text`.
pub(super) fn read(text: &str) -> Result<Node, Problem> {
    // The words `on` and `no`, booleans to Kubernetes, are not text here either: the default of serde-saphyr.
    let options = serde_saphyr::options! {
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let document: Node = serde_saphyr::from_str_with_options(text, options.clone())
        .and_then(|document| {
            // The first read ignores invalid YAML after the end of the document (`...`), so the text is read
            // a second time.
            serde_saphyr::from_multiple_with_options::<IgnoredAny>(text, options)?;
            Ok(document)
        })
        .map_err(|error| wrong(text, &error))?;
    if let Content::Null = document.value {
        return Err(Problem {
            kind: ProblemKind::Syntax,
            line: None,
            field: String::new(),
            what: "is empty: write a LeaderMigrationConfiguration, or remove --leader-migration-config to use the default \
                   configuration"
                .to_owned(),
        });
    }
    Ok(document)
}

/// Explains a YAML error.
fn wrong(text: &str, error: &Error) -> Problem {
    let mut field = "";
    let what = match error {
        Error::ExternalMessage { source, .. } if is_bare_star(text, source) => {
            field = "component";
            r#"an unquoted * begins a YAML alias: put every * in quotes, component: "*""#.to_owned()
        }
        Error::UnknownAnchor { .. } => {
            "a value that begins with * is a YAML alias, and what it stands for is not defined: put the value in quotes"
                .to_owned()
        }
        Error::UnsupportedTag { tag, .. } => {
            format!("a value that begins with ! has a YAML tag, and {tag} is not known: put the value in quotes")
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the field {key:?} is here for the second time: keep one")
        }
        Error::MultipleDocuments { .. } => {
            "a second YAML document begins here: give each manager one file with one LeaderMigrationConfiguration"
                .to_owned()
        }
        other => format!("is not valid YAML: {other}"),
    };
    Problem {
        kind: ProblemKind::Syntax,
        line: error.location().and_then(line),
        field: field.to_owned(),
        what,
    }
}

/// A `*` without a name after it, as in the example of the KEP. Such text is invalid YAML.
fn is_bare_star(text: &str, source: &ExternalMessageSource) -> bool {
    let ExternalMessageSource::Parser(error) = source else {
        return false;
    };
    matches!(error.kind(), ErrorKind::MissingAnchorOrAliasName)
        && text.chars().nth(error.marker().index()) == Some('*')
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::Bool)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = list.next_element()? {
            found.push(element);
        }
        Ok(Content::List(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = map.next_entry()? {
            found.push(entry);
        }
        Ok(Content::Mapping(found))
    }
}
