//! Words in comments that stand for a noun, and comments that are too wide.

/// Words that stand for a noun, so that a reader has to search for the noun.
const VAGUE: &[&str] = &[
    "who",
    "whom",
    "whose",
    "whoever",
    "what",
    "whatever",
    "which",
    "it",
    "its",
    "itself",
    "one",
    "ones",
    "another",
    "other",
    "others",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "something",
    "nothing",
    "anything",
    "everything",
    "they",
    "them",
    "their",
    "theirs",
    "he",
    "him",
    "his",
];

/// Columns that a line with a comment may have.
const WIDEST: usize = 110;

/// Words of comments, and how many of these stand for a noun.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    words: u64,
    vague: u64,
}

impl Share {
    /// Adds the comment lines of a source file.
    pub fn add(&mut self, text: &str) {
        for comment in text.lines().filter_map(comment) {
            let prose = without_code(comment).to_lowercase();
            let words = prose
                .split(|c: char| !(c.is_ascii_alphabetic() || c == '\''))
                .filter(|word| !word.is_empty());
            for word in words {
                self.words += 1;
                self.vague += u64::from(VAGUE.contains(&word));
            }
        }
    }

    /// Tenths of a word per hundred words, rounded up: a share of 9.41 per hundred is 95.
    pub fn tenths_per_hundred(self) -> u64 {
        (self.vague * 1000).div_ceil(self.words.max(1))
    }
}

/// How many lines with only a comment are wider than [`WIDEST`] columns.
pub fn wide_comments(text: &str) -> u64 {
    let wide = text
        .lines()
        .filter(|line| comment(line).is_some() && line.chars().count() > WIDEST);
    wide.count() as u64
}

/// The text of a line that has only a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text))
}

/// The text with each piece of code between backticks counted as a single word.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    for (index, part) in text.split('`').enumerate() {
        prose.push_str(if index % 2 == 0 { part } else { " x " });
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::{Share, wide_comments};

    fn tenths(text: &str) -> u64 {
        let mut share = Share::default();
        share.add(text);
        share.tenths_per_hundred()
    }

    #[test]
    fn only_words_of_comments_that_stand_for_a_noun_count() {
        assert_eq!(tenths("let it = other;\n// the Machine of a Node waits\n"), 0);
        assert_eq!(tenths("/// it waits\n"), 500);
        assert_eq!(tenths("//! It's here, `which it` is code\n"), 0);
        assert_eq!(tenths("// one two three\n"), 334, "a share is rounded up");
    }

    #[test]
    fn only_comments_count_as_wide() {
        let wide = "x".repeat(110);
        assert_eq!(
            wide_comments(&format!("// {wide}\nlet a = \"{wide}\";\n// short\n")),
            1
        );
    }
}
