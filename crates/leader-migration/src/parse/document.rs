//! From text to one YAML document, with words for what people get wrong about YAML.

use serde::Deserialize;
use serde_yaml_ng::{Deserializer, Value};

use crate::error::Problem;

/// Reads the one document in `text`.
pub(super) fn read(text: &str) -> Result<Value, Problem> {
    let mut found: Option<Value> = None;
    for document in Deserializer::from_str(text) {
        let value = Value::deserialize(document).map_err(|error| syntax(text, &error))?;
        if found.is_some() {
            return Err(Problem {
                line: second_document(text),
                field: String::new(),
                what: "a second YAML document begins here: give each manager one file with one \
                       LeaderMigrationConfiguration"
                    .to_owned(),
            });
        }
        found = Some(value);
    }
    match found {
        None | Some(Value::Null) => Err(Problem {
            line: None,
            field: String::new(),
            what:
                "is empty: write a LeaderMigrationConfiguration, or remove --leader-migration-config to use \
                   the default configuration"
                    .to_owned(),
        }),
        Some(value) => Ok(value),
    }
}

/// The library does not tell where a second document begins; its content does.
fn second_document(text: &str) -> Option<usize> {
    let markers = text.lines().enumerate().filter(|(_, line)| {
        line.strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    });
    let before = |line: &str| line.trim().is_empty() || line.starts_with('#') || line.starts_with('%');
    // A marker before which nothing stands begins the first document.
    markers
        .filter(|(number, _)| !text.lines().take(*number).all(before))
        .map(|(number, _)| number + 1)
        .next()
}

/// Words for a YAML error.
fn syntax(text: &str, error: &serde_yaml_ng::Error) -> Problem {
    let line = error.location().map(|place| place.line());
    let written = line.and_then(|line| text.lines().nth(line.saturating_sub(1)));
    if written.is_some_and(has_bare_star) {
        return Problem {
            line,
            field: "component".to_owned(),
            what: r#"an unquoted * begins a YAML alias: put every * in quotes, component: "*""#.to_owned(),
        };
    }
    let said = error.to_string();
    let what = if let Some((_, key)) = said.split_once("duplicate entry with key ") {
        let key = key.split(" at line ").next().unwrap_or(key);
        format!("the mapping that begins here has the field {key} twice: keep one")
    } else if said.contains("unknown anchor") {
        "a value that begins with * is a YAML alias, and what it stands for is not defined: put the value in quotes"
            .to_owned()
    } else {
        format!("is not valid YAML: {said}")
    };
    Problem {
        line,
        field: String::new(),
        what,
    }
}

/// Whether the line has `component: *`, as the example of the KEP has it, which is no YAML.
fn has_bare_star(line: &str) -> bool {
    let after_key = |rest: &str| {
        let rest = rest.trim_start_matches(['"', '\'']).trim_start();
        let rest = rest.strip_prefix(':')?.trim_start().strip_prefix('*')?;
        Some(!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
    };
    line.match_indices("component")
        .any(|(at, word)| after_key(&line[at + word.len()..]) == Some(true))
}
