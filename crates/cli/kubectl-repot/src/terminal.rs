//! Text of objects for a terminal. A tenant writes parts of this text: an escape sequence could hide lines of
//! a plan before the approval, or put a command into the clipboard.

use std::borrow::Cow;

pub use api::text::one_line;
use api::text::{escape, is_hidden};

/// The text without control characters but line ends: each such character is shown as `\u{1b}`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |character| is_hidden(character) && character != '\n')
}

/// JSON without characters that a terminal interprets. A parser reads the same value.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut visible = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) && character != '\n' {
            // Each such character is a single UTF-16 unit.
            let digits = format!("{:04x}", u32::from(character));
            visible.extend(["\\u", &digits]);
        } else {
            visible.push(character);
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOSTILE: &str = "y\u{1b}[1A\u{1b}[2Kgarden-bank/core\n\u{9b}31m\u{202e}\u{7}";

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let shown = "y\\u{1b}[1A\\u{1b}[2Kgarden-bank/core\n\\u{9b}31m\\u{202e}\\u{7}";
        assert_eq!(visible(HOSTILE), shown);
        assert_eq!(one_line(HOSTILE), shown.replace('\n', "\\u{a}"));
        assert!(matches!(visible("ä: 3 of 4\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_has_the_same_value() {
        let value = serde_json::json!({"message": HOSTILE});
        let text = visible_json(&format!("{value:#}"));
        assert!(
            !text.contains(|character| is_hidden(character) && character != '\n'),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
