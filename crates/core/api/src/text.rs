//! Text that users and tenants write, for a status, an Event or a terminal. A tenant writes parts of such a
//! text: a line feed forges a further Event, an escape sequence hides lines of a terminal.

use std::borrow::Cow;

/// The text without control characters and line ends: each such character is shown as `\u{a}`.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// The text, with each character of the choice as an escape sequence such as `\u{1b}`.
#[must_use]
pub fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) {
            escaped.extend(character.escape_unicode());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Control characters, separators of lines, and marks that change the direction of text.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_character() {
        let hostile = "y\u{1b}[1A\nWarning\u{9b}31m\u{202e}\u{2028}\u{7}";
        let shown = "y\\u{1b}[1A\\u{a}Warning\\u{9b}31m\\u{202e}\\u{2028}\\u{7}";
        assert_eq!(one_line(hostile), shown);
        assert_eq!(one_line(shown), shown, "a second time");
        assert!(matches!(one_line("ä: 3 of 4"), Cow::Borrowed(_)));
    }
}
